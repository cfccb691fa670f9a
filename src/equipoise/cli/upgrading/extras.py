"""What can be had of a campaign besides its answer: a picture, a page, a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from equipoise.cli.upgrading.compare import compared
from equipoise.cli.upgrading.picture import draw
from equipoise.cli.write import check_writable, say_written, write_file
from equipoise.model.event import Event
from equipoise.model.upgrade.campaign import Campaign
from equipoise.report.graphs.view import check_form
from equipoise.report.upgrades.compare import Line
from equipoise.report.upgrades.course import course_of
from equipoise.report.upgrades.page import page_of
from equipoise.sim.upgrading.rolling import chunks


@dataclass(frozen=True, slots=True, kw_only=True)
class Extras:
    """What the person wants besides."""

    graph: Path | None = None
    iteration: int = 1
    groups_only: bool = False
    report: Path | None = None
    compare: bool = False

    def check(self, campaign: Campaign) -> None:
        """Refuse what cannot be had, before a long run rather than after it."""
        if self.graph is not None:
            check_form(self.graph)
        for path in (self.graph, self.report):
            if path is not None:
                check_writable(path)
        if self.compare:
            chunks(campaign)  # or says why it cannot be

    def make(self, campaign: Campaign, events: Sequence[Event]) -> list[Line]:
        """Write the files, and give the lines of the comparison; none if nobody asked for it."""
        lines = compared(campaign, events) if self.compare else []
        if self.graph is not None:
            draw(events, self.graph, self.iteration, groups_only=self.groups_only)
        if self.report is not None:
            write_file(self.report, page_of(course_of(events), lines).encode())
            say_written(self.report)
        return lines
