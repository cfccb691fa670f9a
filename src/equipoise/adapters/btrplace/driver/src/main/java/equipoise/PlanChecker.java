package equipoise;

import java.util.List;
import org.btrplace.model.Mapping;
import org.btrplace.model.Model;
import org.btrplace.model.Node;
import org.btrplace.model.VM;
import org.btrplace.model.constraint.SatConstraint;
import org.btrplace.plan.DefaultReconfigurationPlan;
import org.btrplace.plan.ReconfigurationPlan;
import org.btrplace.plan.event.Action;
import org.btrplace.plan.event.BootNode;
import org.btrplace.plan.event.BootVM;
import org.btrplace.plan.event.ForgeVM;
import org.btrplace.plan.event.KillVM;
import org.btrplace.plan.event.MigrateVM;
import org.btrplace.plan.event.ResumeVM;
import org.btrplace.plan.event.ShutdownNode;
import org.btrplace.plan.event.ShutdownVM;
import org.btrplace.plan.event.SuspendVM;

/** Judges a plan with BtrPlace's checker, which is independent of its solver. */
final class PlanChecker {

  private PlanChecker() {}

  /** Whether the checker of a constraint accepts the final state of a plan. */
  static boolean acceptsEnd(SatConstraint constraint, Model model, List<PlannedAction> actions) {
    Model result = planOf(model, actions).getResult();
    // The result is null if the actions cannot be applied in this order.
    return result != null && constraint.isSatisfied(result);
  }

  /** Whether the checker of a constraint accepts every moment of a plan. */
  static boolean acceptsPlan(SatConstraint constraint, Model model, List<PlannedAction> actions) {
    return constraint.isSatisfied(planOf(model, actions));
  }

  private static ReconfigurationPlan planOf(Model model, List<PlannedAction> actions) {
    ReconfigurationPlan plan = new DefaultReconfigurationPlan(model);
    for (PlannedAction action : actions) {
      plan.add(toBtrPlace(action, model.getMapping()));
    }
    return plan;
  }

  private static Action toBtrPlace(PlannedAction action, Mapping mapping) {
    int start = action.start();
    int end = action.end();
    if (!action.isOfVm()) {
      Node node = (Node) action.element();
      return action.leadsToOnline()
          ? new BootNode(node, start, end)
          : new ShutdownNode(node, start, end);
    }
    VM vm = (VM) action.element();
    Node here = mapping.getVMLocation(vm);
    return switch (action.id()) {
      case "bootVM" -> new BootVM(vm, action.host(), start, end);
      case "migrateVM" -> new MigrateVM(vm, here, action.host(), start, end);
      case "resumeVM" -> new ResumeVM(vm, here, action.host(), start, end);
      case "suspendVM" -> new SuspendVM(vm, here, here, start, end);
      case "shutdownVM" -> new ShutdownVM(vm, here, start, end);
      case "killVM" -> new KillVM(vm, here, start, end);
      case "forgeVM" -> new ForgeVM(vm, start, end);
      default -> throw new IllegalArgumentException("unknown action " + action.id());
    };
  }
}
