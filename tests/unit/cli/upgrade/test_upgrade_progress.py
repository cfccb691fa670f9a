"""The progress of a run on a terminal."""

from __future__ import annotations

from equipoise.cli.upgrade.progress import UpgradeProgress
from equipoise.control.upgrade_loop import RunContext, UpgradeLoop
from equipoise.sim.builtin import builtin_campaign
from equipoise.sim.upgrade.engine import SimulatedEngine
from equipoise.store import MemoryJournal


def progress_of(name: str) -> list[str]:
    lines: list[str] = []
    campaign = builtin_campaign(name)
    context = RunContext(listener=UpgradeProgress(lines.append))
    UpgradeLoop(SimulatedEngine(campaign), MemoryJournal(), campaign, context=context).run()
    return lines


def test_the_progress_names_batch_hosts_work_duration_and_what_is_next() -> None:
    lines = progress_of("nabi-case-a")
    assert lines[0].startswith("0:00:00.230  iteration 1: n7, n8, n9, n10; then ")
    assert "0:00:00.230    n7: apply hypervisor old to new, about 0:00:41" in lines
    assert "0:00:41.230    n7: apply done after 0:00:41" in lines
    assert any("moves from n" in line and "about 0:00:23" in line for line in lines)
    assert any(line.endswith(": moved after 0:00:23") for line in lines)
    assert lines[-1].endswith("set hypervisors: applied")


def test_the_progress_tells_failures_and_undos() -> None:
    text = "\n".join(progress_of("nabi-failure"))
    assert "R31: apply failed" in text
    assert "R31 is isolated" in text
    assert "set set-2 is undone" in text
