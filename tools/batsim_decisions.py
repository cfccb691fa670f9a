"""Compares our policies with recorded runs of batsched, reply by reply; a line per run.

python tools/batsim_decisions.py FOLDER
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from equipoise.adapters.batsim.schedule.compare import compare_decisions
from equipoise.sim.jobs.policies import POLICIES

VARIANTS = {"bs_fcfs": "fcfs", "bs_easy_bf": "easy", "bs_conservative_bf": "conservative"}
"""The policy of each variant of batsched, by the first letters of a recorded run."""


def main(folder: Path) -> int:
    """Compare all runs of these variants; return 1 if one differs."""
    equal = count = 0
    for path in sorted(folder.glob("*/messages.jsonl")):
        name = path.parent.name
        policy = next((VARIANTS[start] for start in VARIANTS if name.startswith(start)), None)
        if policy is None:
            continue
        exchange = [json.loads(line) for line in path.read_text().splitlines()]
        found = compare_decisions(exchange, POLICIES[policy])
        count += 1
        equal += not found.difference
        print(f"{name:36} {policy:13} {found.equal:5}  {found.difference or 'equal'}")
    print(f"{equal} of {count} runs are equal")
    return 0 if equal == count else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
