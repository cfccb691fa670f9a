"""Replays recorded runs of real Batsim and prints a line per run: equal, or the first difference.

python tools/batsim_conformance.py FOLDER [NAME ...]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from equipoise.adapters.batsim.protocol.replay import replay


def main(folder: Path, names: list[str]) -> int:
    """Replay all recorded runs, or the named ones; return 1 if one differs."""
    chosen = names or sorted(path.parent.name for path in folder.glob("*/run.json"))
    equal = 0
    for name in chosen:
        with tempfile.TemporaryDirectory() as out:
            result = replay(folder / name, folder / "inputs", Path(out))
        equal += not result.differences
        print(f"{name:36} {result.messages:5}  {'equal' if not result.differences else 'differs'}")
        for difference in result.differences:
            print(f"    {difference[:400]}")
    print(f"{equal} of {len(chosen)} runs are equal")
    return 0 if equal == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
