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
 * Answers what BtrPlace says of plans. A question is a line of JSON, and so is its answer:
 *
 * <pre>
 * {"ask": "hello"} -&gt; {"name", "version"}
 * {"ask": WHAT, "limit_s", "questions": [...]} -&gt; {"answers": [...]} or {"crash"}
 * </pre>
 *
 * <p>WHAT is "accepts" (would its solver make just this plan?), "checks" (has its checker nothing
 * against it?) or "plans" (what would it do to get there, in any way?). An answer is one of
 * {"accepts": true or false}, {"plan": the plan or nothing}, {"crash": what and where}, {"late":
 * true} and {"unsupported": why}. A crash instead of answers is one of ours.
 */
public final class Accept {

  private static final String POM = "/META-INF/maven/org.btrplace/scheduler-choco/pom.properties";

  private Accept() {}

  public static void main(String[] args) throws IOException, ParseException {
    // What a library prints must not mix with the answers.
    PrintStream pipe =
        new PrintStream(new FileOutputStream(FileDescriptor.out), false, StandardCharsets.UTF_8);
    System.setOut(System.err);
    BufferedReader lines =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      JSONObject asked = (JSONObject) new JSONParser(JSONParser.MODE_RFC4627).parse(line);
      pipe.println(answer(asked).toJSONString());
      pipe.flush();
    }
  }

  private static JSONObject answer(JSONObject asked) throws IOException {
    if ("hello".equals(asked.get("ask"))) {
      return object("name", "btrplace").appendField("version", version());
    }
    String what = (String) asked.get("ask");
    int limit = (Integer) asked.get("limit_s");
    JSONArray answers = new JSONArray();
    try {
      for (Object question : (JSONArray) asked.get("questions")) {
        answers.add(each(what, (JSONObject) question, limit));
      }
    } catch (JSONConverterException | RuntimeException error) {
      return object("crash", describe(error));
    }
    return object("answers", answers);
  }

  private static JSONObject each(String what, JSONObject told, int limit)
      throws JSONConverterException {
    try {
      return answered(what, new Question(told), limit);
    } catch (Question.NoWords none) {
      return object("unsupported", none.getMessage());
    }
  }

  private static JSONObject answered(String what, Question question, int limit)
      throws JSONConverterException, Question.NoWords {
    try {
      return switch (what) {
        case "accepts" -> accepts(question, limit);
        case "checks" -> object("accepts", question.isChecked());
        case "plans" -> plans(question, limit);
        default -> throw new JSONConverterException("there is no question " + what);
      };
    } catch (UnstatableProblemException limited) {
      return object("late", true);
    } catch (RuntimeException | StackOverflowError | OutOfMemoryError | AssertionError error) {
      return object("crash", describe(error));
    }
  }

  private static JSONObject accepts(Question question, int limit) throws JSONConverterException {
    ReconfigurationPlan plan = solved(question.instance(), question, limit);
    return object("accepts", plan != null && question.isMet(plan));
  }

  private static JSONObject plans(Question question, int limit) throws JSONConverterException {
    ReconfigurationPlan plan = solved(question.goal(), question, limit);
    return object("plan", plan == null ? null : Telling.of(plan));
  }

  private static ReconfigurationPlan solved(Instance instance, Question question, int limit) {
    return new DefaultChocoScheduler(question.parameters(limit)).solve(instance);
  }

  /** The first error and where in BtrPlace it happened: the same for the same defect. */
  private static String describe(Throwable error) {
    Throwable first = error;
    while (first.getCause() != null) {
      first = first.getCause();
    }
    // The solver's own go on for pages, about the case rather than about the defect.
    String said = String.valueOf(first.getMessage()).lines().findFirst().orElse("");
    return first.getClass().getSimpleName() + ": " + said + " (" + place(first) + ")";
  }

  private static String place(Throwable error) {
    StackTraceElement[] frames = error.getStackTrace();
    for (StackTraceElement frame : frames) {
      if (frame.getClassName().startsWith("org.btrplace.")) {
        return told(frame);
      }
    }
    return frames.length == 0 ? "nowhere" : told(frames[0]);
  }

  private static String told(StackTraceElement frame) {
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
