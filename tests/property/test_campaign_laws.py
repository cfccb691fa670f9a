"""The laws of upgrade campaigns with failures of all kinds, judged from the journal alone.

``tools/upgrade_campaigns.py`` runs thousands of the same campaigns.
"""

from __future__ import annotations

import pytest

from campaign_auditor import audit
from equipoise.control.upgrade_loop import UpgradeLoop
from equipoise.sim.upgrade.engine import SimulatedEngine
from equipoise.store import MemoryJournal
from random_campaigns import random_campaign

SEEDS = range(5000, 5060)
"""Other seeds than those with which the laws were developed."""


@pytest.mark.parametrize("seed", SEEDS)
def test_a_campaign_ends_or_waits_for_a_named_event_and_keeps_every_minimum(seed: int) -> None:
    campaign = random_campaign(seed)
    journal = MemoryJournal()
    UpgradeLoop(SimulatedEngine(campaign), journal, campaign).run()
    findings, end = audit(journal.events())
    assert findings == []
    assert end in ("completed", "waits")
