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

/** A cluster, a plan for it and a constraint: what does BtrPlace say of them? */
final class Question {

  private static final List<Class<? extends Action>> KINDS =
      List.of(
          Allocate.class, BootNode.class, BootVM.class, ForgeVM.class, KillVM.class,
          MigrateVM.class, ResumeVM.class, ShutdownNode.class, ShutdownVM.class, SuspendVM.class);
  private static final ConstraintsConverter CONSTRAINTS = ConstraintsConverter.newBundle();

  private final Model model;
  private final List<Doing> doings;
  private final Imposed plan;
  private final SatConstraint constraint;
  private final boolean repair;

  /** Said of a constraint only if it could be otherwise: those about time are about every moment. */
  private final boolean isAboutTheEnd;

  /**
   * Reads a question.
   *
   * @throws NoWords if BtrPlace itself does not let the constraint be said
   */
  Question(JSONObject told) throws JSONConverterException, NoWords {
    model = new ModelConverter().fromJSON((JSONObject) told.get("origin"));
    for (Map.Entry<String, Object> unmade : ((JSONObject) told.get("unmade")).entrySet()) {
      VM vm = model.newVM(Integer.parseInt(unmade.getKey()));
      model.getAttributes().put(vm, "template", (String) unmade.getValue());
    }
    doings = Doing.allOf((JSONArray) told.get("actions"));
    plan = new Imposed(doings);
    JSONObject wanted = (JSONObject) told.get("constraint");
    constraint = constraintOf(wanted);
    isAboutTheEnd = wanted != null && Boolean.FALSE.equals(wanted.get("continuous"));
    repair = (Boolean) told.get("repair");
  }

  private SatConstraint constraintOf(JSONObject told) throws JSONConverterException, NoWords {
    if (told == null) {
      return null;
    }
    SatConstraint made;
    try {
      made = (SatConstraint) CONSTRAINTS.fromJSON(model, told);
    } catch (IllegalArgumentException refused) {
      throw new NoWords(refused.getMessage());
    }
    Object continuous = told.get("continuous");
    if (continuous != null && made.isContinuous() != (Boolean) continuous) {
      String mode = made.isContinuous() ? "discrete" : "continuous";
      throw new NoWords(told.get("id") + " is never " + mode);
    }
    return made;
  }

  /** What BtrPlace is to solve; the constraint comes last, when all about the plan is known. */
  Instance instance() {
    List<SatConstraint> wanted = new ArrayList<>();
    doings.stream().filter(Doing::isOfVm).map(Doing::wish).forEach(wanted::add);
    wanted.add(plan);
    return wanting(wanted);
  }

  /** The same without the plan: every VM and node is to become what it makes of it, in any way. */
  Instance goal() {
    return wanting(new ArrayList<>(doings.stream().map(Doing::wish).toList()));
  }

  private Instance wanting(List<SatConstraint> wanted) {
    if (constraint != null) {
      wanted.add(constraint);
    }
    return new Instance(model, wanted, new MinMTTR());
  }

  /** Whether BtrPlace's own checker of the constraint has nothing against the plan. */
  boolean isChecked() throws NoWords {
    if (constraint == null) {
      throw new NoWords("it is no constraint of BtrPlace's, and has no checker");
    }
    return isAboutTheEnd
        ? Checked.endsWell(constraint, model, doings)
        : Checked.goesWell(constraint, model, doings);
  }

  /** BtrPlace's defaults but for what the question says, and with as much time as the plan takes. */
  Parameters parameters(int limit) {
    DurationEvaluators durations = new DurationEvaluators();
    KINDS.forEach(kind -> durations.register(kind, (some, element) -> plan.durationOf(element)));
    Parameters parameters = new DefaultParameters().setTimeLimit(limit).doRepair(repair);
    parameters.setDurationEvaluators(durations);
    parameters.getMapper().mapConstraint(Imposed.class, CImposed.class);
    int end = doings.stream().mapToInt(Doing::end).max().orElse(0);
    return parameters.setMaxEnd(Math.max(parameters.getMaxEnd(), end));
  }

  /**
   * Whether a plan is the one that was asked about.
   *
   * <p>BtrPlace may add that a VM is given another amount of a resource, which no constraint can
   * keep it from: that is another plan.
   *
   * @throws IllegalStateException if it differs in anything else, which BtrPlace was told not to
   */
  boolean isMet(ReconfigurationPlan found) throws JSONConverterException {
    List<Doing> missing = new ArrayList<>(doings);
    boolean isExact = true;
    for (Object action : (JSONArray) Telling.of(found).get("actions")) {
      JSONObject told = (JSONObject) action;
      if ("allocate".equals(told.get("id"))) {
        isExact = false;
      } else if (!missing.removeIf(doing -> doing.is(told))) {
        throw new IllegalStateException("the answer is another plan, with " + told);
      }
      isExact &= Telling.isPlain(told);
    }
    if (!missing.isEmpty()) {
      throw new IllegalStateException("the answer is another plan, without " + missing);
    }
    return isExact;
  }

  /** BtrPlace does not let a constraint be said. */
  static final class NoWords extends Exception {
    private static final long serialVersionUID = 1L;

    NoWords(String why) {
      super(why);
    }
  }
}
