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
 * An action of the plan of a question: the VM or node, its target and its times.
 *
 * @param id the name of the action in plans of BtrPlace
 * @param host the target of a VM that runs afterwards; null for other actions
 */
record PlannedAction(String id, Element element, Node host, int start, int end) {

  /** Reads the actions of a plan. A VM or node has at most one action. */
  static List<PlannedAction> allOf(JSONArray records) {
    List<PlannedAction> actions = new ArrayList<>(records.size());
    Set<Element> busy = new HashSet<>();
    for (Object record : records) {
      PlannedAction action = of((JSONObject) record);
      if (!busy.add(action.element)) {
        throw new IllegalArgumentException(action.element + " has two actions");
      }
      actions.add(action);
    }
    return actions;
  }

  private static PlannedAction of(JSONObject record) {
    String id = (String) record.get("id");
    boolean ofNode = record.containsKey("node");
    Element element =
        ofNode ? new Node((Integer) record.get("node")) : new VM((Integer) record.get("vm"));
    Object host =
        switch (id) {
          case "bootVM" -> record.get("on");
          case "migrateVM", "resumeVM" -> record.get("to");
          default -> null;
        };
    return new PlannedAction(
        id,
        element,
        host == null ? null : new Node((Integer) host),
        (Integer) record.get("start"),
        (Integer) record.get("end"));
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
      default -> throw new IllegalArgumentException("unknown action " + id);
    };
  }

  /** The final state as a constraint: BtrPlace reads the final states of VMs only this way. */
  SatConstraint finalState() {
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

  /** Whether an action that {@link PlanWriter} wrote is this one. */
  boolean isSameAs(JSONObject record) {
    Object where = record.get("bootVM".equals(id) ? "on" : "to");
    return id.equals(record.get("id"))
        && record.get(isOfVm() ? "vm" : "node").equals(element.id())
        && record.get("start").equals(start)
        && record.get("end").equals(end)
        && (host == null || where.equals(host.id()));
  }
}
