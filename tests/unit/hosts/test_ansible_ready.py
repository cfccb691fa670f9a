"""An engine is made ready, or it is said beforehand why it could never work."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from builders import a_host, a_vm
from equipoise.errors import InvalidInput, MissingExtra
from equipoise.hosts.ansible import run
from equipoise.hosts.ansible.access import Access, Errands, HostAccess
from equipoise.hosts.ansible.engine import AnsibleEngine
from equipoise.hosts.ansible.ready import engine_for
from equipoise.hosts.ansible.ways import Surroundings
from equipoise.model.inventory import Inventory
from equipoise.model.quantity import HostId, ResourceId
from equipoise.model.resource import Resource, ResourceKind
from equipoise.model.upgrade.campaign import Campaign
from equipoise.model.upgrade.catalog import Catalog, ComponentId, Description, Recipe
from equipoise.model.upgrade.request import (
    Change,
    ChangeKind,
    ChangeSet,
    Request,
    RequestId,
    SetId,
)

PLAYBOOKS = Path(__file__).parents[3] / "examples" / "upgrade" / "playbooks"
GOOD = Recipe(script="upgrade.yaml", undo_script="undo.yaml", check_script="check.yaml")


def a_campaign(recipe: Recipe = GOOD, resource: str = "agent1") -> Campaign:
    change = Change(
        does=ChangeKind.UPGRADE,
        resources=(ResourceId(resource),),
        component=ComponentId("greeter"),
        version="2.0",
    )
    return Campaign(
        name="c",
        cluster=Inventory(
            hosts=(a_host("h1"),),
            resources=(
                Resource(id=ResourceId("agent1"), kind=ResourceKind.HOST_OS, host=HostId("h1")),
            ),
        ),
        catalog=Catalog(
            descriptions=(
                Description(component=ComponentId("greeter"), version="2.0", upgrade=recipe),
            )
        ),
        requests=(Request(id=RequestId("r"), sets=(ChangeSet(id=SetId("s"), changes=(change,)),)),),
    )


def made(campaign: Campaign, *hosts: str, **more: Any) -> AnsibleEngine:
    access = Access(hosts={HostId(name): HostAccess() for name in hosts or ("h1",)}, **more)
    return engine_for(
        campaign,
        Surroundings(source="campaign.yaml", folder=PLAYBOOKS, environ={}),
        access,
        Surroundings(source="access.yaml", folder=PLAYBOOKS, environ={}),
        lambda: 0,
    )


def refusal(campaign: Campaign, *hosts: str, **more: Any) -> str:
    with pytest.raises(InvalidInput) as caught:
        made(campaign, *hosts, **more)
    return str(caught.value)


@pytest.fixture(autouse=True)
def fixture_ansible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("equipoise.hosts.ansible.ready.need_ansible", lambda: None)


def test_a_campaign_whose_hosts_and_playbooks_are_there_has_an_engine() -> None:
    assert made(a_campaign()).next_event(None) is None
    assert made(a_campaign(), "agent1", "h7").next_event(None) is None


def test_a_recipe_without_a_playbook_is_refused() -> None:
    message = refusal(a_campaign(Recipe(script="upgrade.yaml")))
    assert "campaign.yaml: catalog.descriptions[0].upgrade.undo_script: is missing" in message
    by_hand = refusal(a_campaign(Recipe(by_hand=True)))
    assert "check_script: is missing for what is done by hand" in by_hand


def test_a_change_that_the_catalog_does_not_know_is_refused() -> None:
    campaign = a_campaign()
    message = refusal(campaign.but(catalog=Catalog()))
    assert "requests[0].sets[0].changes[0].version: the catalog does not say how" in message
    assert "to upgrade greeter 2.0" in message


def test_a_playbook_that_is_not_there_is_refused() -> None:
    assert "no.yaml: the playbook cannot be read" in refusal(a_campaign(GOOD.but(script="no.yaml")))


def test_a_host_that_is_to_be_changed_and_cannot_be_reached_is_refused() -> None:
    assert 'access.yaml: hosts: there is no host "h1"' in refusal(a_campaign(), "h7")
    assert 'there is no host "x"' in refusal(a_campaign(resource="x"), "h7")


def test_work_that_takes_longer_than_a_run_may_is_found_before_it_is_begun() -> None:
    long = a_campaign(GOOD.but(duration_s=10, undo_duration_s=3600))
    message = refusal(long)
    assert "access.yaml: timeout_s: 1800 s end a run" in message
    assert "to upgrade greeter 2.0 takes 3600 s" in message
    assert made(long, timeout_s=4000).next_event(None) is None


def test_vms_that_have_to_leave_need_a_playbook_and_a_way_to_their_host() -> None:
    campaign = a_campaign()
    busy = campaign.but(cluster=campaign.cluster.but(vms=(a_vm("v", "h1"),)))
    assert "errands.move: is missing, and VMs such as v have to leave h1" in refusal(busy)
    errands = Errands(move="upgrade.yaml")
    assert 'there is no host "h1"' in refusal(busy, "agent1", errands=errands)
    assert made(busy, errands=errands).next_event(None) is None


def test_the_programs_of_our_own_environment_are_found_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin")
    own, *others = run._search_path().split(":")
    assert Path(own) == Path(sys.executable).parent
    assert others == ["/usr/bin"]


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "find_spec", lambda _name: None)
    with pytest.raises(MissingExtra, match=r"equipoise\[ansible\]"):
        run.need_ansible()
    monkeypatch.undo()
    monkeypatch.setattr(run, "PLAYER", "no-such-player")
    with pytest.raises(MissingExtra, match=r"equipoise\[ansible\]"):
        run.need_ansible()


def test_only_the_process_of_a_run_imports_the_runner() -> None:
    line = "import sys, equipoise.hosts.ansible.ready; sys.exit('ansible_runner' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", line], check=False).returncode == 0
