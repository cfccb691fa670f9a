"""``equipoise roles run``: the story of a layout in virtual time, told with reasons."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Final

from equipoise.cli.answer import clock, console, plain, print_json, table
from equipoise.cli.roles.check import defects, read
from equipoise.cli.roles.coverage import Coverage, coverage_of
from equipoise.cli.roles.story import Line, lines
from equipoise.errors import InvalidInput, Problem
from equipoise.model.files.findings import LineOf
from equipoise.model.inventory import Inventory
from equipoise.model.story.scenario import Scenario
from equipoise.model.words import counted
from equipoise.sim.play import Play
from equipoise.store import Journal, MemoryJournal, open_journal

ALONE_S: Final = 600
"""How long a cluster without a story runs."""
TOLD_MAX: Final = 400
"""Of a longer story only the first lines are told."""


def run(file: Path, *, seed: int | None, journal_url: str | None, as_json: bool) -> int:
    """Run, and tell."""
    scenario = sound(file)
    if seed is not None:
        scenario = scenario.but(seed=seed)
    journal = open_journal(journal_url) if journal_url else MemoryJournal()
    with journal:
        if len(journal):
            cure = "name a new file, or look at this one with 'equipoise journal'"
            problem = Problem(key="", what="already has the journal of another run", cure=cure)
            raise InvalidInput(journal.source, [problem])
        began = perf_counter()
        play = Play(scenario, journal, folder=file.parent)
        play.run(1000 * scenario.duration_s)
        wall_s = round(perf_counter() - began, 3)
        coverage = coverage_of(journal.events(), play.now_ms)
        told = list(lines(journal.events()))
        if as_json:
            print_json(_document(scenario, play, journal, coverage, told) | {"wall_s": wall_s})
        else:
            _show(scenario, journal, coverage, told)
    return 0


def sound(file: Path) -> Scenario:
    """Read a scenario, or a cluster as one in which nothing happens, that can be run."""
    story, line_of = read(file)
    refuse(file, story, line_of)
    if isinstance(story, Inventory):
        story = Scenario(name=story.name, duration_s=ALONE_S, cluster=story)
    deciders = tuple(dict.fromkeys((*story.deciders, "roles")))
    return story.but(deciders=deciders)


def refuse(file: Path, story: Scenario | Inventory, line_of: LineOf) -> None:
    """Refuse a layout that has no meaning."""
    found = [one for one in defects(story, line_of) if not one.defect.kind.is_doubtful]
    if found:
        raise InvalidInput(
            str(file),
            [
                Problem(key=one.key, what=one.what, cure=one.defect.cure, line=one.line)
                for one in found
            ],
        )


def _document(
    scenario: Scenario, play: Play, journal: Journal, coverage: list[Coverage], told: list[Line]
) -> dict[str, object]:
    duties = play.snapshot().duties
    return {
        "scenario": scenario.name,
        "about": scenario.about,
        "seed": scenario.seed,
        "duration_s": play.now_ms / 1000,
        "epoch": duties.epoch,
        "slots": {group: dict(slots) for group, slots in duties.slots.items()},
        "held": {
            processor: [f"{duty.group}/{duty.role}" for duty in held]
            for processor, held in duties.held.items()
        },
        "roles": [
            {
                "group": one.duty.group,
                "role": one.duty.role,
                "starts": one.starts,
                "stops": one.stops,
                "failures": one.failures,
                "without_holder_s": round(one.without_s, 3),
                "most_holders": one.most,
                "outages": [{"from_s": a / 1000, "to_s": b / 1000} for a, b in one.outages],
            }
            for one in coverage
        ],
        "story": [
            {"at_s": one.at_ms / 1000, "event": one.event, "what": one.what, "reason": one.reason}
            for one in told
        ],
        "events": len(journal),
        "journal_sha256": journal.sha256(),
    }


def _show(scenario: Scenario, journal: Journal, coverage: list[Coverage], told: list[Line]) -> None:
    out = console()
    out.print(f"[bold]{plain(scenario.name)}[/bold]: {plain(scenario.about)}")
    tell_lines(told)
    rows = table(
        "group", "role", "starts", "stops", "failures", "without a holder", "most at once",
        right=("starts", "stops", "failures", "without a holder", "most at once"),
    )  # fmt: skip
    for one in coverage:
        rows.add_row(
            plain(one.duty.group),
            plain(one.duty.role),
            str(one.starts),
            str(one.stops),
            str(one.failures),
            f"{one.without_s:,.1f} s",
            str(one.most),
        )
    out.print(rows)
    said = f"{counted(len(journal), 'event')}, sha256 {journal.sha256()[:16]}"
    out.print(f"{clock(1000 * scenario.duration_s)} simulated, {said}")


def tell_lines(told: list[Line], since_ms: int = 0) -> None:
    """Print a story, with the reasons below what was done."""
    out = console()
    for one in told[:TOLD_MAX]:
        out.print(f"{clock(one.at_ms - since_ms):>14}  {plain(one.what)}", soft_wrap=True)
        if one.reason:
            out.print(f"{'':>16}[dim]because {plain(one.reason)}[/dim]", soft_wrap=True)
    if len(told) > TOLD_MAX:
        out.print(f"{'':>16}... and {len(told) - TOLD_MAX:,} more; --json tells all")
