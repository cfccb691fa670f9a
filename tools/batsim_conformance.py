"""Replays recorded runs of real Batsim and prints a line per run: equal, or the first difference.

python tools/batsim_conformance.py FOLDER [NAME ...]

The exit code is 0 if only runs differ whose difference is explained by name.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from equipoise.adapters.batsim.protocol.replay import EXPLAINED, replay


def main(folder: Path, names: list[str]) -> int:
    """Replay all recorded runs, or the named ones; return 1 if one differs without a reason."""
    chosen = names or sorted(path.parent.name for path in folder.glob("*/run.json"))
    equal, unexplained = 0, 0
    for name in chosen:
        with tempfile.TemporaryDirectory() as out:
            result = replay(folder / name, folder / "inputs", Path(out))
        equal += not result.differences
        print(f"{name:36} {result.messages:5}  {'equal' if not result.differences else 'differs'}")
        for difference in result.differences:
            print(f"    {difference[:400]}")
        if result.differences:
            unexplained += name not in EXPLAINED
            print(f"    reason: {EXPLAINED.get(name, 'unknown')}")
    print(f"{equal} of {len(chosen)} runs are equal")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
