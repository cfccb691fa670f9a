package equipoise;

import java.util.Locale;
import net.minidev.json.JSONArray;
import net.minidev.json.JSONObject;
import org.btrplace.json.JSONConverterException;
import org.btrplace.json.model.ModelConverter;
import org.btrplace.model.Element;
import org.btrplace.plan.ReconfigurationPlan;
import org.btrplace.plan.event.Action;
import org.btrplace.plan.event.ActionVisitor;
import org.btrplace.plan.event.Allocate;
import org.btrplace.plan.event.AllocateEvent;
import org.btrplace.plan.event.BootNode;
import org.btrplace.plan.event.BootVM;
import org.btrplace.plan.event.Event;
import org.btrplace.plan.event.ForgeVM;
import org.btrplace.plan.event.KillVM;
import org.btrplace.plan.event.MigrateVM;
import org.btrplace.plan.event.ResumeVM;
import org.btrplace.plan.event.ShutdownNode;
import org.btrplace.plan.event.ShutdownVM;
import org.btrplace.plan.event.SubstitutedVMEvent;
import org.btrplace.plan.event.SuspendVM;

/**
 * Writes a plan in the JSON of BtrPlace 1.12, for plans of 1.10 and 1.12.
 *
 * <p>BtrPlace's own writers cannot be used: 1.10 and 1.12 write different keys, and the one of 1.12
 * rejects a plan that forges a VM. Both versions have the same visitor of actions.
 */
final class PlanWriter implements ActionVisitor {

  static JSONObject of(ReconfigurationPlan plan) throws JSONConverterException {
    PlanWriter writer = new PlanWriter();
    JSONArray actions = new JSONArray();
    for (Action action : plan.getActions()) {
      JSONObject record = (JSONObject) action.visit(writer);
      record.put("start", action.getStart());
      record.put("end", action.getEnd());
      record.put("hooks", writer.hooks(action));
      actions.add(record);
    }
    return object("origin", new ModelConverter().toJSON(plan.getOrigin()), "actions", actions);
  }

  /** Whether no event is attached to an action. */
  static boolean isPlain(JSONObject record) {
    JSONObject hooks = (JSONObject) record.get("hooks");
    return hooks.values().stream().allMatch(events -> ((JSONArray) events).isEmpty());
  }

  private JSONObject hooks(Action action) {
    JSONObject record = new JSONObject();
    for (Action.Hook hook : Action.Hook.values()) {
      JSONArray events = new JSONArray();
      for (Event event : action.getEvents(hook)) {
        events.add(event.visit(this));
      }
      record.put(hook.name().toLowerCase(Locale.ROOT), events);
    }
    return record;
  }

  @Override
  public Object visit(Allocate a) {
    return object(
        "id", "allocate", "vm", a.getVM(), "rc", a.getResourceId(), "amount", a.getAmount(),
        "on", a.getHost());
  }

  @Override
  public Object visit(AllocateEvent a) {
    return object(
        "id", "allocate", "vm", a.getVM(), "rc", a.getResourceId(), "amount", a.getAmount());
  }

  @Override
  public Object visit(SubstitutedVMEvent a) {
    return object("id", "substitutedVM", "vm", a.getVM(), "newVm", a.getNewVM());
  }

  @Override
  public Object visit(BootNode a) {
    return object("id", "bootNode", "node", a.getNode());
  }

  @Override
  public Object visit(BootVM a) {
    return object("id", "bootVM", "vm", a.getVM(), "on", a.getDestinationNode());
  }

  @Override
  public Object visit(ForgeVM a) {
    return object("id", "forgeVM", "vm", a.getVM());
  }

  @Override
  public Object visit(KillVM a) {
    return object("id", "killVM", "vm", a.getVM(), "on", a.getNode());
  }

  @Override
  public Object visit(MigrateVM a) {
    return object(
        "id", "migrateVM", "vm", a.getVM(), "from", a.getSourceNode(),
        "to", a.getDestinationNode(), "bw", a.getBandwidth());
  }

  @Override
  public Object visit(ResumeVM a) {
    return object(
        "id", "resumeVM", "vm", a.getVM(), "from", a.getSourceNode(),
        "to", a.getDestinationNode());
  }

  @Override
  public Object visit(ShutdownNode a) {
    return object("id", "shutdownNode", "node", a.getNode());
  }

  @Override
  public Object visit(ShutdownVM a) {
    return object("id", "shutdownVM", "vm", a.getVM(), "on", a.getNode());
  }

  @Override
  public Object visit(SuspendVM a) {
    return object(
        "id", "suspendVM", "vm", a.getVM(), "from", a.getSourceNode(),
        "to", a.getDestinationNode());
  }

  /** Makes an object from keys and values in turn; elements become numbers, null is left out. */
  private static JSONObject object(Object... pairs) {
    JSONObject record = new JSONObject();
    for (int i = 0; i < pairs.length; i += 2) {
      Object value = pairs[i + 1];
      if (value != null) {
        record.put((String) pairs[i], value instanceof Element ? ((Element) value).id() : value);
      }
    }
    return record;
  }
}
