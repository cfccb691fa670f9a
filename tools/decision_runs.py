"""Prints how often VMs move, what is unmet and what it costs, over many seeds of a scenario.

``tools/decision_runs.py nightly 1-10`` prints a row per seed of a week with power.
``tools/decision_runs.py drs-table2-2 1-20 --without cost_benefit`` prints the mean of 20 seeds and
its 95 % interval, with the cost-benefit analysis of balance and without it.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from math import sqrt
from statistics import mean, stdev

from equipoise.model.action import Migrate
from equipoise.model.event import ActionFailed, ActionFinished, ActionStarted, ActionTimedOut
from equipoise.model.scenario.scenario import Scenario
from equipoise.sim.builtin import builtin_scenario
from equipoise.sim.runner import ScenarioRunner
from equipoise.store import MemoryJournal

DAY_MS = 86_400_000
HOUR_MS = 3_600_000
STUDENT_95 = {5: 2.776, 10: 2.262, 20: 2.093}
"""The factor of the interval of the mean, by the number of seeds."""


class MoveCounts:
    """The migrations of a journal, by VM and day."""

    def __init__(self, journal: MemoryJournal) -> None:
        self.timed_out = self.failures_in_row = 0
        self._moves: dict[str, list[tuple[int, Migrate]]] = {}
        failed: Counter[str] = Counter()
        for event, move in _migrations(journal):
            if isinstance(event, ActionFinished):
                self._moves.setdefault(move.vm, []).append((event.at_ms, move))
                failed[move.vm] = 0
                continue
            self.timed_out += isinstance(event, ActionTimedOut)
            failed[move.vm] += 1
            self.failures_in_row = max(self.failures_in_row, failed[move.vm])

    @property
    def finished(self) -> int:
        """The number of finished migrations."""
        return sum(map(len, self._moves.values()))

    def days_with_more_than(self, most: int) -> int:
        """Return the number of days of single VMs with more than so many moves."""
        days = Counter(
            (vm, at_ms // DAY_MS) for vm, moves in self._moves.items() for at_ms, _ in moves
        )
        return sum(count > most for count in days.values())

    def returns_within(self, limit_ms: int) -> int:
        """Return how often a VM went back to the host that it had left within a time."""
        return sum(
            later.target == first.source and at_ms - before_ms <= limit_ms
            for moves in self._moves.values()
            for (before_ms, first), (at_ms, later) in pairwise(moves)
        )


def _migrations(
    journal: MemoryJournal,
) -> Iterator[tuple[ActionFinished | ActionFailed | ActionTimedOut, Migrate]]:
    """Yield each end of a migration with the migration."""
    started: dict[str, Migrate] = {}
    for event in journal.events():
        if isinstance(event, ActionStarted) and isinstance(event.step.action, Migrate):
            started[event.step.id] = event.step.action
        elif isinstance(event, ActionFinished | ActionFailed | ActionTimedOut):
            move = started.get(event.step)
            if move is not None:
                yield event, move


def run(scenario: Scenario) -> dict[str, float]:
    """Run a scenario to its end and return its figures."""
    journal = MemoryJournal()
    runner = ScenarioRunner(scenario, journal)
    runner.run(1000 * scenario.duration_s)
    measures, moves = runner.result().measures, MoveCounts(journal)
    vm_days = len(runner.snapshot().vms) * max(1, round(scenario.duration_s / (DAY_MS / 1000)))
    return {
        "moves": moves.finished,
        "timed_out": moves.timed_out,
        "in_a_row": moves.failures_in_row,
        "over_4_pct": 100 * moves.days_with_more_than(4) / vm_days,
        "returns": moves.returns_within(DAY_MS),
        "returns_1h": moves.returns_within(HOUR_MS),
        "kwh": measures.energy_kwh,
        "unmet_mhz_h": measures.unsatisfied.cpu_mhz_h,
        "cpu_pct": measures.payload_cpu_pct,
        "memory_pct": measures.payload_memory_pct,
    }


def main() -> None:
    """Print the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scenario")
    parser.add_argument("seeds", help="such as 1-10")
    parser.add_argument("--alone", action="store_true", help="without power management")
    parser.add_argument("--without", choices=["cost_benefit"])
    options = parser.parse_args()
    first, _, last = options.seeds.partition("-")
    scenario = builtin_scenario(options.scenario)
    if not options.alone:
        scenario = scenario.but(deciders=(*scenario.deciders, "power"))
    variants = {"default": scenario}
    if options.without:
        balance = scenario.cluster.balance.but(cost_benefit=False)
        variants["without"] = scenario.but(cluster=scenario.cluster.but(balance=balance))
    for name, variant in variants.items():
        rows = []
        for seed in range(int(first), int(last or first) + 1):
            rows.append(run(variant.but(seed=seed)))
            figures = "  ".join(f"{key} {value:.6g}" for key, value in rows[-1].items())
            print(f"{name} seed {seed}: {figures}", flush=True)
        print(f"{name} mean: {_means(rows)}", flush=True)


def _means(rows: list[dict[str, float]]) -> str:
    factor = STUDENT_95.get(len(rows), 1.96)
    parts = []
    for key in rows[0]:
        values = [row[key] for row in rows]
        half = factor * stdev(values) / sqrt(len(values)) if len(values) > 1 else 0.0
        parts.append(f"{key} {mean(values):.2f} ± {half:.2f}")
    return "  ".join(parts)


if __name__ == "__main__":
    main()
