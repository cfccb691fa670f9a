package equipoise;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import net.minidev.json.JSONArray;
import net.minidev.json.JSONObject;
import org.btrplace.json.JSONConverterException;
import org.btrplace.json.model.ModelConverter;
import org.btrplace.json.model.constraint.ConstraintsConverter;
import org.btrplace.model.Instance;
import org.btrplace.model.Model;
import org.btrplace.model.VM;
import org.btrplace.model.constraint.MinMTTR;
import org.btrplace.model.constraint.SatConstraint;
import org.btrplace.plan.ReconfigurationPlan;
import org.btrplace.plan.event.Action;
import org.btrplace.plan.event.Allocate;
import org.btrplace.plan.event.BootNode;
import org.btrplace.plan.event.BootVM;
import org.btrplace.plan.event.ForgeVM;
import org.btrplace.plan.event.KillVM;
import org.btrplace.plan.event.MigrateVM;
import org.btrplace.plan.event.ResumeVM;
import org.btrplace.plan.event.ShutdownNode;
import org.btrplace.plan.event.ShutdownVM;
import org.btrplace.plan.event.SuspendVM;
import org.btrplace.scheduler.choco.DefaultParameters;
import org.btrplace.scheduler.choco.Parameters;
import org.btrplace.scheduler.choco.duration.DurationEvaluators;

/** A cluster, a plan for it and a constraint, which BtrPlace judges. */
final class TrialQuestion {

  private static final List<Class<? extends Action>> KINDS =
      List.of(
          Allocate.class, BootNode.class, BootVM.class, ForgeVM.class, KillVM.class,
          MigrateVM.class, ResumeVM.class, ShutdownNode.class, ShutdownVM.class, SuspendVM.class);
  private static final ConstraintsConverter CONSTRAINTS = ConstraintsConverter.newBundle();

  private final Model model;
  private final List<PlannedAction> actions;
  private final ImposedPlan plan;
  private final SatConstraint constraint;
  private final boolean repair;

  /** Whether only the final state counts; constraints about times always judge the whole plan. */
  private final boolean isDiscrete;

  /**
   * Reads a question.
   *
   * @throws Unsupported if BtrPlace rejects the constraint
   */
  TrialQuestion(JSONObject record) throws JSONConverterException, Unsupported {
    model = new ModelConverter().fromJSON((JSONObject) record.get("origin"));
    for (Map.Entry<String, Object> unmade : ((JSONObject) record.get("unmade")).entrySet()) {
      VM vm = model.newVM(Integer.parseInt(unmade.getKey()));
      model.getAttributes().put(vm, "template", (String) unmade.getValue());
    }
    actions = PlannedAction.allOf((JSONArray) record.get("actions"));
    plan = new ImposedPlan(actions);
    JSONObject stated = (JSONObject) record.get("constraint");
    constraint = constraintOf(stated);
    isDiscrete = stated != null && Boolean.FALSE.equals(stated.get("continuous"));
    repair = (Boolean) record.get("repair");
  }

  private SatConstraint constraintOf(JSONObject record) throws JSONConverterException, Unsupported {
    if (record == null) {
      return null;
    }
    SatConstraint made;
    try {
      made = (SatConstraint) CONSTRAINTS.fromJSON(model, record);
    } catch (IllegalArgumentException refused) {
      throw new Unsupported(refused.getMessage());
    }
    Object continuous = record.get("continuous");
    if (continuous != null && made.isContinuous() != (Boolean) continuous) {
      String mode = made.isContinuous() ? "discrete" : "continuous";
      throw new Unsupported(record.get("id") + " is never " + mode);
    }
    return made;
  }

  /** The instance with the imposed plan; the constraint comes last, after the plan is fixed. */
  Instance instance() {
    List<SatConstraint> constraints = new ArrayList<>();
    actions.stream()
        .filter(PlannedAction::isOfVm)
        .map(PlannedAction::finalState)
        .forEach(constraints::add);
    constraints.add(plan);
    return instanceWith(constraints);
  }

  /** The instance without the plan: every VM and node must reach its final state, in any way. */
  Instance goal() {
    return instanceWith(new ArrayList<>(actions.stream().map(PlannedAction::finalState).toList()));
  }

  private Instance instanceWith(List<SatConstraint> constraints) {
    if (constraint != null) {
      constraints.add(constraint);
    }
    return new Instance(model, constraints, new MinMTTR());
  }

  /** Whether BtrPlace's checker of the constraint accepts the plan. */
  boolean isAcceptedByChecker() throws Unsupported {
    if (constraint == null) {
      throw new Unsupported("BtrPlace has no checker for this constraint");
    }
    return isDiscrete
        ? PlanChecker.acceptsEnd(constraint, model, actions)
        : PlanChecker.acceptsPlan(constraint, model, actions);
  }

  /** BtrPlace's defaults with the mode and durations of the question and time for its plan. */
  Parameters parameters(int limit) {
    DurationEvaluators durations = new DurationEvaluators();
    KINDS.forEach(kind -> durations.register(kind, (model, element) -> plan.durationOf(element)));
    Parameters parameters = new DefaultParameters().setTimeLimit(limit).doRepair(repair);
    parameters.setDurationEvaluators(durations);
    parameters.getMapper().mapConstraint(ImposedPlan.class, CImposedPlan.class);
    int end = actions.stream().mapToInt(PlannedAction::end).max().orElse(0);
    return parameters.setMaxEnd(Math.max(parameters.getMaxEnd(), end));
  }

  /**
   * Whether a plan is the imposed one.
   *
   * <p>BtrPlace may add an allocation of a resource, which no constraint prevents: that is another
   * plan.
   *
   * @throws IllegalStateException if it differs in anything else, which the imposed plan forbids
   */
  boolean isImposedPlan(ReconfigurationPlan found) throws JSONConverterException {
    List<PlannedAction> missing = new ArrayList<>(actions);
    boolean isExact = true;
    for (Object entry : (JSONArray) PlanWriter.of(found).get("actions")) {
      JSONObject record = (JSONObject) entry;
      if ("allocate".equals(record.get("id"))) {
        isExact = false;
      } else if (!missing.removeIf(action -> action.isSameAs(record))) {
        throw new IllegalStateException("the answer is another plan, with " + record);
      }
      isExact &= PlanWriter.isPlain(record);
    }
    if (!missing.isEmpty()) {
      throw new IllegalStateException("the answer is another plan, without " + missing);
    }
    return isExact;
  }

  /** BtrPlace cannot express a constraint. */
  static final class Unsupported extends Exception {
    private static final long serialVersionUID = 1L;

    Unsupported(String why) {
      super(why);
    }
  }
}
