"""``equipoise upgrade --compare``: our campaign beside rolling upgrades of fixed batch sizes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from equipoise.cli.answer import console, table, watched
from equipoise.model.event import Event
from equipoise.model.upgrade.campaign import Campaign
from equipoise.report.upgrades.compare import COLUMNS, Line, line_of
from equipoise.report.upgrades.course import course_of
from equipoise.report.upgrades.penalties import Penalties, penalties_of
from equipoise.sim.upgrading.rolling import chunks, roll

SIZES: Final = (1, 2, 3, 4)
SELECTIONS: Final = 100
"""Orders of the resources to take the mean over ..."""
_CHUNKS_MAX: Final = 10_000
"""... or so many that what all runs together take out of service is no more than this."""


def compared(campaign: Campaign, events: Iterable[Event]) -> list[Line]:
    """Run the campaign as rolling upgrades, beside what was done by us."""
    count = max(1, min(SELECTIONS, _CHUNKS_MAX // max(1, chunks(campaign))))
    lines = [line_of("ours", [penalties_of(course_of(events))])]
    for size in SIZES:
        seeds = range(campaign.seed, campaign.seed + count)
        runs: list[Penalties] = [
            penalties_of(course_of(roll(campaign, size, seed)))
            for seed in watched(seeds, f"rolling by {size}", count)
        ]
        lines.append(line_of(f"rolling by {size}", runs))
    return lines


def document(lines: Sequence[Line]) -> list[dict[str, Any]]:
    """The lines as programs read them."""
    return [one.document for one in lines]


def show(lines: Sequence[Line]) -> None:
    """Print the lines as a table."""
    made = table(*COLUMNS, right=COLUMNS[1:])
    for one in lines:
        made.add_row(*one.cells)
    console().print(made)
    runs = max(one.runs for one in lines)
    console().print(f"Rolling upgrades: the mean over {runs} orders of hosts and other resources.")
