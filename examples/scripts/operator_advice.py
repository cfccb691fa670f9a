"""For operators: advice for a cluster, what a host failure would do, and a plan to drain a host."""

import sys
from pathlib import Path

import equipoise as eq

EXAMPLES = Path(__file__).resolve().parents[1]


def main() -> int:
    """Print the advice; the exit code is 1 if something is wrong that no move repairs."""
    cluster = eq.load(sys.argv[1] if len(sys.argv) > 1 else EXAMPLES / "small.yaml")
    advice = eq.recommend(cluster, power=True)
    print(advice)
    print()
    print("If r1 failed:")
    print(eq.whatif(cluster, fail=["r1"]))
    print()
    verdict = eq.verify(cluster, eq.load(EXAMPLES / "drain.yaml"))
    print(f"The plan to drain r2: {type(verdict).__name__}")
    return 1 if advice.faults else 0


if __name__ == "__main__":
    sys.exit(main())
