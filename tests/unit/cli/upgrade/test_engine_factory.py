"""The engine of an upgrade, and the refusal of an engine that is not available."""

from __future__ import annotations

from pathlib import Path

import pytest

from equipoise.adapters.ansible.engine import AnsibleEngine
from equipoise.cli.upgrade.engine_factory import make_engine
from equipoise.cli.upgrade.run import load_campaign
from equipoise.errors import InvalidInput
from equipoise.sim.upgrade.engine import SimulatedEngine

FOLDER = Path(__file__).parents[4] / "examples" / "upgrade"
CAMPAIGN = FOLDER / "campaign.yaml"


def refusal(name: str, access: Path | None) -> str:
    with pytest.raises(InvalidInput) as caught:
        make_engine(name, load_campaign(str(CAMPAIGN)), str(CAMPAIGN), access)
    return str(caught.value)


def test_the_example_is_ready_for_either_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ansible_runner", reason="the extra ansible is not installed")
    monkeypatch.setenv("H3_SUDO", "sesame")
    campaign = load_campaign(str(CAMPAIGN))
    assert isinstance(make_engine("sim", campaign, str(CAMPAIGN), None), SimulatedEngine)
    made = make_engine("ansible", campaign, str(CAMPAIGN), FOLDER / "access.yaml")
    assert isinstance(made, AnsibleEngine)


def test_what_does_not_go_together_is_said() -> None:
    assert refusal("ansible", None).startswith("--access: is missing")
    assert refusal("sim", Path("a")).startswith("--access: the engine sim needs no access file")
    assert "one of ansible, sim" in refusal("no", None)
