"""``equipoise journal``: what a journal says."""

from __future__ import annotations

import sys

from equipoise.cli.answer import clock, console, plain, print_json
from equipoise.cli.story import tell
from equipoise.errors import InvalidInput, Problem
from equipoise.model.event import KINDS, kind_of
from equipoise.store import Journal, open_journal


def run(url: str, *, kinds: list[str], as_lines: bool, as_json: bool) -> int:
    """Print the events as a story, as raw lines, or as one document."""
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown:
        cure = f"one of {', '.join(KINDS)}"
        problems = [Problem(key=one, what="is no kind of event", cure=cure) for one in unknown]
        raise InvalidInput("--kind", problems)
    with open_journal(url, create=False) as journal:
        if as_json:
            print_json(_document(journal, kinds))
            return 0
        if as_lines:
            sys.stdout.buffer.writelines(line + b"\n" for line in journal.lines(kinds=kinds))
            return 0
        out = console()
        for event in journal.events(kinds=kinds):
            out.print(f"{clock(event.at_ms):>14}  {plain(tell(event))}")
    return 0


def _document(journal: Journal, kinds: list[str]) -> dict[str, object]:
    return {
        "journal": journal.name,
        "length": len(journal),
        "sha256": journal.sha256(),
        "events": [
            {"at_ms": event.at_ms, "kind": kind_of(event), "text": tell(event)}
            for event in journal.events(kinds=kinds)
        ],
    }
