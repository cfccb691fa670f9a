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
 * Tells a plan in the JSON of BtrPlace 1.12, whichever version made it.
 *
 * <p>BtrPlace's own writers will not do: 1.10 and 1.12 have different ones, which write different
 * keys, and that of 1.12 refuses a plan that forges a VM. Both have the same visitor of actions.
 */
final class Telling implements ActionVisitor {

  static JSONObject of(ReconfigurationPlan plan) throws JSONConverterException {
    Telling telling = new Telling();
    JSONArray actions = new JSONArray();
    for (Action action : plan.getActions()) {
      JSONObject told = (JSONObject) action.visit(telling);
      told.put("start", action.getStart());
      told.put("end", action.getEnd());
      told.put("hooks", telling.hooks(action));
      actions.add(told);
    }
    return object("origin", new ModelConverter().toJSON(plan.getOrigin()), "actions", actions);
  }

  /** Whether an action is nothing but itself: no event goes along with it. */
  static boolean isPlain(JSONObject told) {
    JSONObject hooks = (JSONObject) told.get("hooks");
    return hooks.values().stream().allMatch(events -> ((JSONArray) events).isEmpty());
  }

  private JSONObject hooks(Action action) {
    JSONObject told = new JSONObject();
    for (Action.Hook hook : Action.Hook.values()) {
      JSONArray events = new JSONArray();
      for (Event event : action.getEvents(hook)) {
        events.add(event.visit(this));
      }
      told.put(hook.name().toLowerCase(Locale.ROOT), events);
    }
    return told;
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

  /** Keys and values in turn; a VM or a node is told by its number, one that is not there not at all. */
  private static JSONObject object(Object... pairs) {
    JSONObject told = new JSONObject();
    for (int i = 0; i < pairs.length; i += 2) {
      Object value = pairs[i + 1];
      if (value != null) {
        told.put((String) pairs[i], value instanceof Element ? ((Element) value).id() : value);
      }
    }
    return told;
  }
}
