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
 * Solves one instance with BtrPlace and prints the result as one line of JSON.
 *
 * <p>INSTANCE [-r] [-t SECONDS] [-o PLANFILE]: -r repairs (only misplaced VMs may move), -t limits
 * the search, -o writes the plan. All other parameters have BtrPlace's defaults, including the
 * duration of each action.
 */
public final class Solve {

  private Solve() {}

  public static void main(String[] args) {
    // The output of libraries must not mix with the answer.
    PrintStream answer =
        new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8);
    System.setOut(System.err);
    Map<String, Object> result = new LinkedHashMap<>();
    result.put("status", "error");
    try {
      run(new Request(args), result);
    } catch (Exception | OutOfMemoryError | StackOverflowError | AssertionError error) {
      result.put("status", "error");
      result.put("error", String.valueOf(error));
    }
    answer.println(JSONObject.toJSONString(result));
    System.exit("error".equals(result.get("status")) ? 1 : 0);
  }

  private static void run(Request request, Map<String, Object> result)
      throws IOException, JSONConverterException {
    long start = System.nanoTime();
    Instance instance = JSON.readInstance(request.instance);
    result.put("load_s", since(start));

    DefaultChocoScheduler scheduler = new DefaultChocoScheduler(request.parameters());
    ReconfigurationPlan plan = null;
    String status = "unsat";
    try {
      plan = scheduler.solve(instance);
    } catch (UnstatableProblemException limit) {
      status = "timeout";
    }
    double total = since(start);
    reportTimes(scheduler, result);
    result.put("total_s", total);
    if (plan != null) {
      status = "solved";
      if (request.plan != null) {
        write(plan, request.plan);
      }
    }
    result.put("status", status);
  }

  private static void reportTimes(DefaultChocoScheduler scheduler, Map<String, Object> result) {
    // With a network, each call adds the last stage again: so there is only one call.
    SolvingStatistics work = scheduler.getStatistics();
    if (work instanceof StagedSolvingStatistics) {
      StagedSolvingStatistics staged = (StagedSolvingStatistics) work;
      if (staged.getNbStages() == 2 && staged.getStage(0) == staged.getStage(1)) {
        work = staged.getStage(0);
      }
    }
    // A step that was not reached has a negative duration.
    long build =
        Math.max(0, work.getCoreBuildDuration()) + Math.max(0, work.getSpecializationDuration());
    result.put("build_s", build / 1e3);
    result.put("solve_s", work.getMetrics() == null ? 0.0 : work.getMetrics().timeCount() / 1e3);
  }

  private static void write(ReconfigurationPlan plan, File file)
      throws IOException, JSONConverterException {
    try (OutputStream raw = new FileOutputStream(file);
        OutputStream out = file.getName().endsWith(".gz") ? new GZIPOutputStream(raw) : raw;
        Writer writer = new OutputStreamWriter(out, StandardCharsets.UTF_8)) {
      PlanWriter.of(plan).writeJSONString(writer);
    }
  }

  private static double since(long start) {
    return Math.round((System.nanoTime() - start) / 1e6) / 1e3;
  }

  /** The arguments of the command line. */
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
        throw new IllegalArgumentException("the name of an instance is missing");
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
