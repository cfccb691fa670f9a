package equipoise;

import java.io.File;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.OutputStreamWriter;
import java.io.PrintStream;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.zip.GZIPOutputStream;
import net.minidev.json.JSONObject;
import org.btrplace.json.JSON;
import org.btrplace.json.JSONConverterException;
import org.btrplace.model.Instance;
import org.btrplace.plan.ReconfigurationPlan;
import org.btrplace.scheduler.UnstatableProblemException;
import org.btrplace.scheduler.choco.DefaultChocoScheduler;
import org.btrplace.scheduler.choco.DefaultParameters;
import org.btrplace.scheduler.choco.Parameters;
import org.btrplace.scheduler.choco.runner.SolvingStatistics;
import org.btrplace.scheduler.choco.runner.StagedSolvingStatistics;

/**
 * Asks BtrPlace for one plan and says in one line of JSON what came of it.
 *
 * <p>INSTANCE [-r] [-t SECONDS] [-o PLANFILE]: -r repairs (only misplaced VMs may move), -t limits
 * the search, -o writes the plan. The parameters are those of BtrPlace's own bench: its defaults,
 * among them the default duration of each action.
 */
public final class Solve {

  private Solve() {}

  public static void main(String[] args) {
    // What a library prints must not mix with the answer.
    PrintStream answer =
        new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8);
    System.setOut(System.err);
    Map<String, Object> told = new LinkedHashMap<>();
    told.put("status", "error");
    try {
      run(new Request(args), told);
    } catch (Exception | OutOfMemoryError | StackOverflowError | AssertionError error) {
      told.put("status", "error");
      told.put("error", String.valueOf(error));
    }
    answer.println(JSONObject.toJSONString(told));
    System.exit("error".equals(told.get("status")) ? 1 : 0);
  }

  private static void run(Request request, Map<String, Object> told)
      throws IOException, JSONConverterException {
    long start = System.nanoTime();
    Instance instance = JSON.readInstance(request.instance);
    told.put("load_s", since(start));

    DefaultChocoScheduler scheduler = new DefaultChocoScheduler(request.parameters());
    ReconfigurationPlan plan = null;
    String status = "unsat";
    try {
      plan = scheduler.solve(instance);
    } catch (UnstatableProblemException limit) {
      status = "timeout";
    }
    double total = since(start);
    tellWork(scheduler, told);
    told.put("total_s", total);
    if (plan != null) {
      status = "solved";
      if (request.plan != null) {
        write(plan, request.plan);
      }
    }
    told.put("status", status);
  }

  private static void tellWork(DefaultChocoScheduler scheduler, Map<String, Object> told) {
    // Each call adds the last stage once more when there is a network: call it once only.
    SolvingStatistics work = scheduler.getStatistics();
    if (work instanceof StagedSolvingStatistics) {
      StagedSolvingStatistics staged = (StagedSolvingStatistics) work;
      if (staged.getNbStages() == 2 && staged.getStage(0) == staged.getStage(1)) {
        work = staged.getStage(0);
      }
    }
    // A step that was not reached has a duration below nought.
    long build =
        Math.max(0, work.getCoreBuildDuration()) + Math.max(0, work.getSpecializationDuration());
    told.put("build_s", build / 1e3);
    told.put("solve_s", work.getMetrics() == null ? 0.0 : work.getMetrics().timeCount() / 1e3);
  }

  private static void write(ReconfigurationPlan plan, File file)
      throws IOException, JSONConverterException {
    try (OutputStream raw = new FileOutputStream(file);
        OutputStream out = file.getName().endsWith(".gz") ? new GZIPOutputStream(raw) : raw;
        Writer writer = new OutputStreamWriter(out, StandardCharsets.UTF_8)) {
      Telling.of(plan).writeJSONString(writer);
    }
  }

  private static double since(long start) {
    return Math.round((System.nanoTime() - start) / 1e6) / 1e3;
  }

  /** What the command line asks for. */
  private static final class Request {
    private File instance;
    private File plan;
    private boolean repair;
    private int limit;

    Request(String[] args) {
      for (int i = 0; i < args.length; i++) {
        switch (args[i]) {
          case "-r" -> repair = true;
          case "-t" -> limit = Integer.parseInt(valueOf(args, ++i));
          case "-o" -> plan = new File(valueOf(args, ++i));
          default -> instance = new File(args[i]);
        }
      }
      if (instance == null) {
        throw new IllegalArgumentException("name an instance");
      }
    }

    private static String valueOf(String[] args, int i) {
      if (i == args.length) {
        throw new IllegalArgumentException(args[i - 1] + " needs a value");
      }
      return args[i];
    }

    Parameters parameters() {
      return new DefaultParameters().setTimeLimit(limit).doRepair(repair);
    }
  }
}
