package equipoise;

import java.util.Set;
import org.btrplace.model.Instance;
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
 * Fixes what every VM and every node does, where it leads to, and when: the variables that say so in
 * BtrPlace's own model, and no others.
 *
 * <p>Those of a VM that stays where it is say when its old share of a host becomes its new one, which
 * is nothing that a plan says; they are left alone.
 */
public final class CImposed implements ChocoConstraint {

  private final Imposed plan;

  /** Found by BtrPlace, which wants just such a constructor. */
  public CImposed(Imposed plan) {
    this.plan = plan;
  }

  @Override
  public boolean inject(Parameters parameters, ReconfigurationProblem problem) {
    int known = 0;
    try {
      for (VMTransition change : problem.getVMActions()) {
        Doing doing = plan.of(change.getVM());
        known += doing == null ? 0 : 1;
        if (!(doing == null ? stays(change, problem) : does(change, doing, problem))) {
          return false;
        }
      }
      for (NodeTransition change : problem.getNodeActions()) {
        Doing doing = plan.of(change.getNode());
        known += doing == null ? 0 : 1;
        boolean wasOnline = problem.getSourceModel().getMapping().isOnline(change.getNode());
        boolean online = doing == null ? wasOnline : doing.leadsToOnline();
        change.getState().instantiateTo(online ? 1 : 0, Cause.Null);
        if (doing != null) {
          fixTimes(change, doing);
        }
      }
    } catch (ContradictionException never) {
      return false;
    }
    // Of somebody whom BtrPlace has not got it cannot make the plan.
    return known == plan.size();
  }

  private static boolean stays(VMTransition change, ReconfigurationProblem problem)
      throws ContradictionException {
    if (change.getFutureState() != change.getSourceState()) {
      return false;
    }
    if (change.getFutureState() == VMState.RUNNING) {
      int here = problem.getNode(problem.getSourceModel().getMapping().getVMLocation(change.getVM()));
      change.getDSlice().getHoster().instantiateTo(here, Cause.Null);
    }
    return true;
  }

  private static boolean does(VMTransition change, Doing doing, ReconfigurationProblem problem)
      throws ContradictionException {
    if (change.getFutureState() != doing.leadsTo()) {
      return false;
    }
    if (doing.host() != null) {
      change.getDSlice().getHoster().instantiateTo(problem.getNode(doing.host()), Cause.Null);
    }
    if (change instanceof RelocatableVM) {
      // Moved, not made anew elsewhere.
      ((RelocatableVM) change).getRelocationMethod().instantiateTo(0, Cause.Null);
    }
    fixTimes(change, doing);
    return true;
  }

  private static void fixTimes(Transition<?> change, Doing doing) throws ContradictionException {
    change.getStart().instantiateTo(doing.start(), Cause.Null);
    change.getEnd().instantiateTo(doing.end(), Cause.Null);
  }

  /** Those whom the plan moves: when it repairs, BtrPlace moves nobody else. */
  @Override
  public Set<VM> getMisPlacedVMs(Instance instance) {
    return plan.moved();
  }
}
