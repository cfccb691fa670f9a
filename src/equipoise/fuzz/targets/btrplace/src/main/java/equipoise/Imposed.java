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

/** A whole plan as a constraint: just these actions at just these times, and nothing else. */
public final class Imposed extends SimpleConstraint {

  private final Map<Element, Doing> doings = new HashMap<>();

  Imposed(List<Doing> plan) {
    super(true);
    plan.forEach(doing -> doings.put(doing.element(), doing));
  }

  /** What a VM or a node does; nothing if it is left as it is. */
  Doing of(Element element) {
    return doings.get(element);
  }

  /** How long the action of a VM or a node takes; whatever BtrPlace says of one that has none. */
  int durationOf(Element element) {
    Doing doing = doings.get(element);
    return doing == null ? 1 : doing.end() - doing.start();
  }

  int size() {
    return doings.size();
  }

  Set<VM> moved() {
    Set<VM> moved = new HashSet<>();
    for (Doing doing : doings.values()) {
      if (doing.isMove()) {
        moved.add((VM) doing.element());
      }
    }
    return moved;
  }

  @Override
  public SatConstraintChecker<Imposed> getChecker() {
    return new AllowAllConstraintChecker<>(this) {};
  }
}
