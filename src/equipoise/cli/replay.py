"""``equipoise replay``: the cluster that a journal leads to."""

from __future__ import annotations

import sys

from equipoise.cli.answer import watched
from equipoise.model import files
from equipoise.model.change import transition
from equipoise.model.snapshot import Snapshot
from equipoise.store import open_journal


def run(url: str, *, as_json: bool) -> int:
    """Print the inventory at the end of the journal."""
    with open_journal(url, create=False) as journal:
        events = watched(journal.events(), "replaying", len(journal))
        inventory = transition.replay(Snapshot(), events).inventory()
    sys.stdout.write(files.to_json(inventory) + "\n" if as_json else files.to_yaml(inventory))
    return 0
