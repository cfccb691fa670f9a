package equipoise;

import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.btrplace.model.Element;
import org.btrplace.model.VM;
import org.btrplace.model.constraint.AllowAllConstraintChecker;
import org.btrplace.model.constraint.SatConstraintChecker;
import org.btrplace.model.constraint.SimpleConstraint;

/** A whole plan as a constraint: exactly these actions at exactly these times. */
public final class ImposedPlan extends SimpleConstraint {

  private final Map<Element, PlannedAction> actions = new HashMap<>();

  ImposedPlan(List<PlannedAction> plan) {
    super(true);
    plan.forEach(action -> actions.put(action.element(), action));
  }

  /** The action of a VM or a node; null if it has none. */
  PlannedAction of(Element element) {
    return actions.get(element);
  }

  /** The duration of the action of a VM or a node; 1 if it has none, which has no effect. */
  int durationOf(Element element) {
    PlannedAction action = actions.get(element);
    return action == null ? 1 : action.end() - action.start();
  }

  int size() {
    return actions.size();
  }

  Set<VM> moved() {
    Set<VM> moved = new HashSet<>();
    for (PlannedAction action : actions.values()) {
      if (action.isMove()) {
        moved.add((VM) action.element());
      }
    }
    return moved;
  }

  @Override
  public SatConstraintChecker<ImposedPlan> getChecker() {
    return new AllowAllConstraintChecker<>(this) {};
  }
}
