package equipoise;

import java.util.Set;
import org.btrplace.model.Instance;
import org.btrplace.model.Node;
import org.btrplace.model.VM;
import org.btrplace.model.VMState;
import org.btrplace.scheduler.choco.Parameters;
import org.btrplace.scheduler.choco.ReconfigurationProblem;
import org.btrplace.scheduler.choco.constraint.ChocoConstraint;
import org.btrplace.scheduler.choco.transition.NodeTransition;
import org.btrplace.scheduler.choco.transition.RelocatableVM;
import org.btrplace.scheduler.choco.transition.Transition;
import org.btrplace.scheduler.choco.transition.VMTransition;
import org.chocosolver.solver.Cause;
import org.chocosolver.solver.exception.ContradictionException;

/**
 * Fixes the variables of BtrPlace's model for the state, the host and the times of every VM and
 * every node, and no other variables.
 *
 * <p>The times of a VM that stays on its host are not fixed: they say when its old share of the
 * host becomes its new one, which is no part of a plan.
 */
public final class CImposedPlan implements ChocoConstraint {

  private final ImposedPlan plan;

  /** BtrPlace finds and calls this constructor by reflection. */
  public CImposedPlan(ImposedPlan plan) {
    this.plan = plan;
  }

  @Override
  public boolean inject(Parameters parameters, ReconfigurationProblem problem) {
    int known = 0;
    try {
      for (VMTransition change : problem.getVMActions()) {
        PlannedAction action = plan.of(change.getVM());
        known += action == null ? 0 : 1;
        if (!(action == null ? fixUnchanged(change, problem) : fix(change, action, problem))) {
          return false;
        }
      }
      for (NodeTransition change : problem.getNodeActions()) {
        PlannedAction action = plan.of(change.getNode());
        known += action == null ? 0 : 1;
        boolean wasOnline = problem.getSourceModel().getMapping().isOnline(change.getNode());
        boolean online = action == null ? wasOnline : action.leadsToOnline();
        change.getState().instantiateTo(online ? 1 : 0, Cause.Null);
        if (action != null) {
          fixTimes(change, action);
        }
      }
    } catch (ContradictionException never) {
      return false;
    }
    // A VM or node that BtrPlace does not know makes the plan impossible.
    return known == plan.size();
  }

  private static boolean fixUnchanged(VMTransition change, ReconfigurationProblem problem)
      throws ContradictionException {
    if (change.getFutureState() != change.getSourceState()) {
      return false;
    }
    if (change.getFutureState() == VMState.RUNNING) {
      Node here = problem.getSourceModel().getMapping().getVMLocation(change.getVM());
      change.getDSlice().getHoster().instantiateTo(problem.getNode(here), Cause.Null);
    }
    return true;
  }

  private static boolean fix(
      VMTransition change, PlannedAction action, ReconfigurationProblem problem)
      throws ContradictionException {
    if (change.getFutureState() != action.leadsTo()) {
      return false;
    }
    if (action.host() != null) {
      change.getDSlice().getHoster().instantiateTo(problem.getNode(action.host()), Cause.Null);
    }
    if (change instanceof RelocatableVM) {
      // Migrated, not created again on another node.
      ((RelocatableVM) change).getRelocationMethod().instantiateTo(0, Cause.Null);
    }
    fixTimes(change, action);
    return true;
  }

  private static void fixTimes(Transition<?> change, PlannedAction action)
      throws ContradictionException {
    change.getStart().instantiateTo(action.start(), Cause.Null);
    change.getEnd().instantiateTo(action.end(), Cause.Null);
  }

  /** The VMs that the plan moves: in repair mode, BtrPlace moves no other VM. */
  @Override
  public Set<VM> getMisPlacedVMs(Instance instance) {
    return plan.moved();
  }
}
