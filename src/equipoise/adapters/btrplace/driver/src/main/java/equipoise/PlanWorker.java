package equipoise;

import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Properties;
import net.minidev.json.JSONArray;
import net.minidev.json.JSONObject;
import net.minidev.json.parser.JSONParser;
import net.minidev.json.parser.ParseException;
import org.btrplace.json.JSONConverterException;
import org.btrplace.model.Instance;
import org.btrplace.plan.ReconfigurationPlan;
import org.btrplace.scheduler.UnstatableProblemException;
import org.btrplace.scheduler.choco.DefaultChocoScheduler;

/**
 * Answers questions about plans with BtrPlace. A question is a line of JSON, and so is its answer:
 *
 * <pre>
 * {"ask": "hello"} -&gt; {"name", "version"}
 * {"ask": WHAT, "limit_s", "questions": [...]} -&gt; {"answers": [...]} or {"crash"}
 * </pre>
 *
 * <p>WHAT is "accepts" (can the solver make exactly this plan?), "checks" (does the checker accept
 * the plan?) or "plans" (which plan does the solver make for the same final states?). An answer is
 * one of {"accepts": true or false}, {"plan": the plan or null}, {"crash": error and place},
 * {"late": true} and {"unsupported": reason}. A crash instead of answers is a bug of this driver.
 */
public final class PlanWorker {

  private static final String POM = "/META-INF/maven/org.btrplace/scheduler-choco/pom.properties";

  private PlanWorker() {}

  public static void main(String[] args) throws IOException, ParseException {
    // The output of libraries must not mix with the answers.
    PrintStream pipe =
        new PrintStream(new FileOutputStream(FileDescriptor.out), false, StandardCharsets.UTF_8);
    System.setOut(System.err);
    BufferedReader lines =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      JSONObject request = (JSONObject) new JSONParser(JSONParser.MODE_RFC4627).parse(line);
      pipe.println(answer(request).toJSONString());
      pipe.flush();
    }
  }

  private static JSONObject answer(JSONObject request) throws IOException {
    if ("hello".equals(request.get("ask"))) {
      return object("name", "btrplace").appendField("version", version());
    }
    String what = (String) request.get("ask");
    int limit = (Integer) request.get("limit_s");
    JSONArray answers = new JSONArray();
    try {
      for (Object question : (JSONArray) request.get("questions")) {
        answers.add(each(what, (JSONObject) question, limit));
      }
    } catch (JSONConverterException | RuntimeException error) {
      return object("crash", describe(error));
    }
    return object("answers", answers);
  }

  private static JSONObject each(String what, JSONObject record, int limit)
      throws JSONConverterException {
    try {
      return solve(what, new TrialQuestion(record), limit);
    } catch (TrialQuestion.Unsupported reason) {
      return object("unsupported", reason.getMessage());
    }
  }

  private static JSONObject solve(String what, TrialQuestion question, int limit)
      throws JSONConverterException, TrialQuestion.Unsupported {
    try {
      return switch (what) {
        case "accepts" -> accepts(question, limit);
        case "checks" -> object("accepts", question.isAcceptedByChecker());
        case "plans" -> plans(question, limit);
        default -> throw new JSONConverterException("unknown question " + what);
      };
    } catch (UnstatableProblemException limited) {
      return object("late", true);
    } catch (RuntimeException | StackOverflowError | OutOfMemoryError | AssertionError error) {
      return object("crash", describe(error));
    }
  }

  private static JSONObject accepts(TrialQuestion question, int limit)
      throws JSONConverterException {
    ReconfigurationPlan plan = solved(question.instance(), question, limit);
    return object("accepts", plan != null && question.isImposedPlan(plan));
  }

  private static JSONObject plans(TrialQuestion question, int limit) throws JSONConverterException {
    ReconfigurationPlan plan = solved(question.goal(), question, limit);
    return object("plan", plan == null ? null : PlanWriter.of(plan));
  }

  private static ReconfigurationPlan solved(Instance instance, TrialQuestion question, int limit) {
    return new DefaultChocoScheduler(question.parameters(limit)).solve(instance);
  }

  /** The root cause and its place in BtrPlace: the same text for the same defect. */
  private static String describe(Throwable error) {
    Throwable first = error;
    while (first.getCause() != null) {
      first = first.getCause();
    }
    // Only the first line: messages of the solver continue with pages about the single case.
    String message = String.valueOf(first.getMessage()).lines().findFirst().orElse("");
    return first.getClass().getSimpleName() + ": " + message + " (" + place(first) + ")";
  }

  private static String place(Throwable error) {
    StackTraceElement[] frames = error.getStackTrace();
    for (StackTraceElement frame : frames) {
      if (frame.getClassName().startsWith("org.btrplace.")) {
        return format(frame);
      }
    }
    return frames.length == 0 ? "nowhere" : format(frames[0]);
  }

  private static String format(StackTraceElement frame) {
    return frame.getFileName() + ":" + frame.getLineNumber() + " in " + frame.getMethodName();
  }

  private static String version() throws IOException {
    Properties pom = new Properties();
    try (InputStream file = DefaultChocoScheduler.class.getResourceAsStream(POM)) {
      pom.load(file);
    }
    return pom.getProperty("version");
  }

  private static JSONObject object(String key, Object value) {
    JSONObject made = new JSONObject();
    made.put(key, value);
    return made;
  }
}
