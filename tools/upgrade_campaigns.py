"""Run random upgrade campaigns with failures, and audit each from its journal.

``python tools/upgrade_campaigns.py [FIRST] [NUMBER]`` prints how the campaigns ended and every
finding. Exit code 1 if a campaign is endless or waits for nothing that has a name, or if an
aggregate, an anti-affinity group or an affinity group was broken.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from campaign_auditor import audit
from equipoise.control.upgrade_loop import UpgradeLoop
from equipoise.model.upgrade.event import SetEnded
from equipoise.sim.upgrade.engine import SimulatedEngine
from equipoise.store import MemoryJournal
from random_campaigns import random_campaign


def main(first: int = 0, number: int = 3000) -> int:
    """Run the campaigns of ``number`` seeds, and return the exit code."""
    ends: Counter[str] = Counter()
    sets: Counter[str] = Counter()
    broken: Counter[str] = Counter()
    for seed in range(first, first + number):
        campaign = random_campaign(seed)
        journal = MemoryJournal()
        UpgradeLoop(SimulatedEngine(campaign), journal, campaign).run()
        events = list(journal.events())
        findings, end = audit(events)
        ends[end.partition(":")[0]] += 1
        sets.update(event.outcome.value for event in events if isinstance(event, SetEnded))
        broken.update({finding.split(": ")[1].partition(":")[0] for finding in findings})
        if end not in ("completed", "waits"):
            print(f"seed {seed}: {end}")
        for finding in findings:
            print(f"seed {seed}: {finding}")
    print(f"campaigns: {dict(ends)}; sets: {dict(sets)}; campaigns with findings: {dict(broken)}")
    return 1 if broken or ends["endless"] or ends["stuck"] else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:3])))
