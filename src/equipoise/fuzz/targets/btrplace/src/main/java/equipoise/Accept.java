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
import org.btrplace.plan.ReconfigurationPlan;
import org.btrplace.scheduler.UnstatableProblemException;
import org.btrplace.scheduler.choco.DefaultChocoScheduler;

/**
 * Answers whether BtrPlace would accept plans. A question is a line of JSON, and so is its answer:
 *
 * <pre>
 * {"ask": "hello"} -&gt; {"name", "version"}
 * {"ask": "accepts", "limit_s", "questions": [...]} -&gt; {"answers": [...]} or {"crash"}
 * </pre>
 *
 * <p>An answer is one of {"accepts": true or false}, {"crash": what and where}, {"late": true} and
 * {"unsupported": why}. A crash instead of answers is one of ours.
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
    JSONArray answers = new JSONArray();
    try {
      for (Object question : (JSONArray) asked.get("questions")) {
        answers.add(accepts((JSONObject) question, (Integer) asked.get("limit_s")));
      }
    } catch (JSONConverterException | RuntimeException error) {
      return object("crash", describe(error));
    }
    return object("answers", answers);
  }

  private static JSONObject accepts(JSONObject told, int limit) throws JSONConverterException {
    Question question;
    try {
      question = new Question(told);
    } catch (Question.NoWords none) {
      return object("unsupported", none.getMessage());
    }
    try {
      DefaultChocoScheduler scheduler = new DefaultChocoScheduler(question.parameters(limit));
      ReconfigurationPlan plan = scheduler.solve(question.instance());
      return object("accepts", plan != null && question.isMet(plan));
    } catch (UnstatableProblemException limited) {
      return object("late", true);
    } catch (RuntimeException | StackOverflowError | OutOfMemoryError | AssertionError error) {
      return object("crash", describe(error));
    }
  }

  /** The first error and where in BtrPlace it happened: the same for the same defect. */
  private static String describe(Throwable error) {
    Throwable first = error;
    while (first.getCause() != null) {
      first = first.getCause();
    }
    return first.getClass().getSimpleName() + ": " + first.getMessage() + " (" + place(first) + ")";
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
