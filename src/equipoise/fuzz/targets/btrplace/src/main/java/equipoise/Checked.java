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

/** A plan before BtrPlace's own checker, which its solver has no part in. */
final class Checked {

  private Checked() {}

  /** Whether the checker of a constraint has nothing against where a plan leads to. */
  static boolean endsWell(SatConstraint constraint, Model model, List<Doing> doings) {
    Model result = planOf(model, doings).getResult();
    // There is none if the actions cannot follow each other so.
    return result != null && constraint.isSatisfied(result);
  }

  /** Whether it has nothing against any moment of the plan. */
  static boolean goesWell(SatConstraint constraint, Model model, List<Doing> doings) {
    return constraint.isSatisfied(planOf(model, doings));
  }

  private static ReconfigurationPlan planOf(Model model, List<Doing> doings) {
    ReconfigurationPlan plan = new DefaultReconfigurationPlan(model);
    for (Doing doing : doings) {
      plan.add(action(doing, model.getMapping()));
    }
    return plan;
  }

  private static Action action(Doing doing, Mapping mapping) {
    int start = doing.start();
    int end = doing.end();
    if (!doing.isOfVm()) {
      Node node = (Node) doing.element();
      return doing.leadsToOnline()
          ? new BootNode(node, start, end)
          : new ShutdownNode(node, start, end);
    }
    VM vm = (VM) doing.element();
    Node here = mapping.getVMLocation(vm);
    return switch (doing.id()) {
      case "bootVM" -> new BootVM(vm, doing.host(), start, end);
      case "migrateVM" -> new MigrateVM(vm, here, doing.host(), start, end);
      case "resumeVM" -> new ResumeVM(vm, here, doing.host(), start, end);
      case "suspendVM" -> new SuspendVM(vm, here, here, start, end);
      case "shutdownVM" -> new ShutdownVM(vm, here, start, end);
      case "killVM" -> new KillVM(vm, here, start, end);
      case "forgeVM" -> new ForgeVM(vm, start, end);
      default -> throw new IllegalArgumentException("there is no action " + doing.id());
    };
  }
}
