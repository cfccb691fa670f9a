package equipoise;

import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.EnumSet;
import java.util.List;
import org.btrplace.safeplace.spec.Constraint;
import org.btrplace.safeplace.spec.SpecScanner;
import org.btrplace.safeplace.testing.DefaultTestCampaign;
import org.btrplace.safeplace.testing.DefectHooks;
import org.btrplace.safeplace.testing.fuzzer.Restriction;
import org.btrplace.safeplace.testing.reporting.Counting;

/**
 * Measures the speed of SafePlace: its own campaigns against BtrPlace, 10 VMs on 10 nodes.
 *
 * <p>TESTS is the number of tests. They run twice: the first run warms up the JVM, and the time of the
 * second one is printed as one line of JSON. A plan that is discarded before its test does not count.
 */
public final class SafePlaceRate {

  private static final List<String> CONSTRAINTS =
      List.of("spread", "gather", "lonely", "fence", "ban");
  private static final int SIZE = 10;

  private SafePlaceRate() {}

  public static void main(String[] args) throws Exception {
    PrintStream answer =
        new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8);
    System.setOut(System.err);
    int each = Math.max(1, Integer.parseInt(args[0]) / CONSTRAINTS.size());
    List<Constraint> known = new SpecScanner().scan();
    run(known, each);
    long start = System.nanoTime();
    int tests = run(known, each);
    double seconds = (System.nanoTime() - start) / 1e9;
    answer.println("{\"tests\": " + tests + ", \"seconds\": " + seconds + "}");
  }

  private static int run(List<Constraint> known, int each) {
    Counting report = new Counting();
    for (String name : CONSTRAINTS) {
      DefaultTestCampaign campaign = new DefaultTestCampaign(name, known);
      campaign.reportTo(report).onDefect(DefectHooks.ignore);
      campaign.limits().clear().tests(each);
      campaign
          .check(name)
          .restriction(EnumSet.allOf(Restriction.class))
          .vms(SIZE)
          .nodes(SIZE)
          .srcOffNodes(0.1)
          .srcVMs(30, 70, 0)
          .dstVMs(30, 70, 0);
      campaign.go();
    }
    return report.success() + report.failures() + report.overFiltering() + report.underFiltering();
  }
}
