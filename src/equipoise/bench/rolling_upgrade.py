"""Upgrade campaigns compared with rolling upgrades of a fixed batch size."""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter

from equipoise.bench.measure import BenchmarkRow
from equipoise.control.upgrade_loop import UpgradeLoop
from equipoise.report.upgrade.compare import compare_with_rolling
from equipoise.sim.builtin import builtin_campaign
from equipoise.sim.upgrade.engine import SimulatedEngine
from equipoise.store import MemoryJournal

CAMPAIGNS = ("nabi-case-a", "nabi-case-b", "nabi-ceph-ipv6")


def rows() -> Iterator[BenchmarkRow]:
    """Run the case studies of the thesis, and its fifteen hosts, in both ways."""
    return (_row(name) for name in CAMPAIGNS)


def _row(name: str) -> BenchmarkRow:
    campaign = builtin_campaign(name)
    journal = MemoryJournal()
    began = perf_counter()
    UpgradeLoop(SimulatedEngine(campaign), journal, campaign).run()
    ours, *rolling = compare_with_rolling(campaign, journal.events())
    figures = {
        "application_out_s": ours.application_s,
        "proportional": ours.proportional_s,
        "seconds": ours.duration_s,
    }
    for line in rolling:
        by = line.method.replace("rolling by ", "by_")
        figures |= {
            f"{by}_application_out_s": line.application_s,
            f"{by}_proportional": line.proportional_s,
            f"{by}_seconds": line.duration_s,
        }
    return BenchmarkRow(
        f"{name}, and as a rolling upgrade by 1 to 4",
        perf_counter() - began,
        "",
        None,
        figures=figures,
        note="goal: ours first, no application out and the lowest proportional penalty",
    )
