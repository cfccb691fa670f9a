package equipoise;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import net.minidev.json.JSONArray;
import net.minidev.json.JSONObject;
import org.btrplace.model.Element;
import org.btrplace.model.Node;
import org.btrplace.model.VM;
import org.btrplace.model.VMState;
import org.btrplace.model.constraint.Killed;
import org.btrplace.model.constraint.Offline;
import org.btrplace.model.constraint.Online;
import org.btrplace.model.constraint.Ready;
import org.btrplace.model.constraint.Running;
import org.btrplace.model.constraint.SatConstraint;
import org.btrplace.model.constraint.Sleeping;

/**
 * An action of a plan that is asked about: who does what, where it leads to, and from when to when.
 *
 * @param id the name of the action in a plan of BtrPlace's
 * @param host where a VM that is to run will be; nothing for the others
 */
record Doing(String id, Element element, Node host, int start, int end) {

  /** Reads the actions of a plan; one VM or node has one action at the most. */
  static List<Doing> allOf(JSONArray actions) {
    List<Doing> found = new ArrayList<>(actions.size());
    Set<Element> busy = new HashSet<>();
    for (Object action : actions) {
      Doing doing = of((JSONObject) action);
      if (!busy.add(doing.element)) {
        throw new IllegalArgumentException(doing.element + " has two actions");
      }
      found.add(doing);
    }
    return found;
  }

  private static Doing of(JSONObject told) {
    String id = (String) told.get("id");
    boolean ofNode = told.containsKey("node");
    Element element =
        ofNode ? new Node((Integer) told.get("node")) : new VM((Integer) told.get("vm"));
    Object host =
        switch (id) {
          case "bootVM" -> told.get("on");
          case "migrateVM", "resumeVM" -> told.get("to");
          default -> null;
        };
    return new Doing(
        id,
        element,
        host == null ? null : new Node((Integer) host),
        (Integer) told.get("start"),
        (Integer) told.get("end"));
  }

  boolean isOfVm() {
    return element instanceof VM;
  }

  boolean isMove() {
    return "migrateVM".equals(id);
  }

  /** Whether a node is on afterwards. */
  boolean leadsToOnline() {
    return "bootNode".equals(id);
  }

  /** The state of a VM afterwards. */
  VMState leadsTo() {
    return switch (id) {
      case "bootVM", "migrateVM", "resumeVM" -> VMState.RUNNING;
      case "shutdownVM", "forgeVM" -> VMState.READY;
      case "suspendVM" -> VMState.SLEEPING;
      case "killVM" -> VMState.KILLED;
      default -> throw new IllegalArgumentException("there is no action " + id);
    };
  }

  /** The state afterwards as a wish: BtrPlace learns of those of VMs by such constraints only. */
  SatConstraint wish() {
    if (element instanceof Node node) {
      return leadsToOnline() ? new Online(node) : new Offline(node);
    }
    VM vm = (VM) element;
    return switch (leadsTo()) {
      case RUNNING -> new Running(vm);
      case READY -> new Ready(vm);
      case SLEEPING -> new Sleeping(vm);
      default -> new Killed(vm);
    };
  }

  /** Whether an action of a plan that BtrPlace made, as {@link Telling} tells it, is this one. */
  boolean is(JSONObject told) {
    Object where = told.get("bootVM".equals(id) ? "on" : "to");
    return id.equals(told.get("id"))
        && told.get(isOfVm() ? "vm" : "node").equals(element.id())
        && told.get("start").equals(start)
        && told.get("end").equals(end)
        && (host == null || where.equals(host.id()));
  }
}
