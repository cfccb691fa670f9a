"""The checks before the first action: an engine, or all reasons why it could not work."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from builders import a_host, a_vm
from equipoise.adapters.access_file import FileContext
from equipoise.adapters.ansible import process
from equipoise.adapters.ansible.access import (
    AnsibleAccess,
    AnsibleHostAccess,
    TaskPlaybooks,
)
from equipoise.adapters.ansible.engine import AnsibleEngine
from equipoise.adapters.ansible.job import RunOptions
from equipoise.adapters.ansible.preflight import engine_for
from equipoise.adapters.ansible.reach import check_modules
from equipoise.errors import InvalidInput, MissingExtra
from equipoise.model.inventory import Inventory
from equipoise.model.quantity import HostId, ResourceId, ResourceName
from equipoise.model.upgrade.campaign import UpgradeCampaign, UpgradeSettings
from equipoise.model.upgrade.catalog import Catalog, ComponentDescription, ComponentId, Recipe
from equipoise.model.upgrade.infrastructure import (
    Dependency,
    DependencyKind,
    Resource,
    ResourceKind,
)
from equipoise.model.upgrade.request import (
    ChangeKind,
    ChangeSet,
    RequestedChange,
    RequestId,
    SetId,
    UpgradeRequest,
)

PLAYBOOKS = Path(__file__).parents[4] / "examples" / "upgrade" / "playbooks"
GOOD = Recipe(script="upgrade.yaml", undo_script="undo.yaml", check_script="check.yaml")


def a_campaign(recipe: Recipe = GOOD, resource: str = "agent1") -> UpgradeCampaign:
    change = RequestedChange(
        does=ChangeKind.UPGRADE,
        resources=(ResourceId(resource),),
        component=ComponentId("greeter"),
        version="2.0",
    )
    return UpgradeCampaign(
        name="c",
        cluster=Inventory(
            hosts=(a_host("h1"),),
            resources=(
                Resource(id=ResourceId("agent1"), kind=ResourceKind.HOST_OS, host=HostId("h1")),
            ),
        ),
        catalog=Catalog(
            descriptions=(
                ComponentDescription(
                    component=ComponentId("greeter"), version="2.0", upgrade=recipe
                ),
            )
        ),
        requests=(
            UpgradeRequest(id=RequestId("r"), sets=(ChangeSet(id=SetId("s"), changes=(change,)),)),
        ),
    )


def made(campaign: UpgradeCampaign, *hosts: str, **more: Any) -> AnsibleEngine:
    access = AnsibleAccess(
        hosts={HostId(name): AnsibleHostAccess() for name in hosts or ("h1",)}, **more
    )
    return engine_for(
        campaign,
        FileContext(source="campaign.yaml", folder=PLAYBOOKS, environ={}),
        access,
        FileContext(source="access.yaml", folder=PLAYBOOKS, environ={}),
        lambda: 0,
    )


def refusal(campaign: UpgradeCampaign, *hosts: str, **more: Any) -> list[tuple[str, str, str]]:
    """The file, the key and the code of each problem."""
    with pytest.raises(InvalidInput) as caught:
        made(campaign, *hosts, **more)
    source = Path(caught.value.source).name
    return [(source, problem.key, problem.code) for problem in caught.value.problems]


@pytest.fixture(autouse=True)
def fixture_ansible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("equipoise.adapters.ansible.preflight.need_ansible", lambda: None)


def test_a_campaign_with_known_hosts_and_playbooks_has_an_engine() -> None:
    assert made(a_campaign()).next_event(None) is None
    assert made(a_campaign(), "agent1", "h7").next_event(None) is None


def test_a_recipe_without_a_playbook_is_refused() -> None:
    upgrade = "catalog.descriptions[0].upgrade"
    assert refusal(a_campaign(Recipe(script="upgrade.yaml"))) == [
        ("campaign.yaml", f"{upgrade}.undo_script", "missing-key")
    ]
    assert refusal(a_campaign(Recipe(by_hand=True))) == [
        ("campaign.yaml", f"{upgrade}.check_script", "missing-key")
    ]


def test_a_change_that_the_catalog_does_not_describe_is_refused() -> None:
    campaign = a_campaign()
    assert refusal(campaign.but(catalog=Catalog())) == [
        ("campaign.yaml", "requests[0].sets[0].changes[0].version", "unknown-name")
    ]


def test_a_missing_playbook_is_refused() -> None:
    assert refusal(a_campaign(GOOD.but(script="no.yaml"))) == [("no.yaml", "", "not-a-playbook")]


def test_a_changed_host_without_a_connection_is_refused() -> None:
    assert refusal(a_campaign(), "h7") == [("access.yaml", "hosts", "unknown-name")]
    assert refusal(a_campaign(resource="x"), "h7") == [("access.yaml", "hosts", "unknown-name")]


def test_work_beyond_the_time_limit_is_refused_before_the_run() -> None:
    long = a_campaign(GOOD.but(duration_s=10, undo_duration_s=3600))
    assert refusal(long) == [("access.yaml", "timeout_s", "out-of-range")]
    assert refusal(long, timeout_s=3599) == [("access.yaml", "timeout_s", "out-of-range")]
    assert made(long, timeout_s=4000).next_event(None) is None


def test_vm_moves_need_a_playbook_and_a_connection() -> None:
    campaign = a_campaign()
    busy = campaign.but(cluster=campaign.cluster.but(vms=(a_vm("v", "h1"),)))
    assert refusal(busy) == [("access.yaml", "task_playbooks.move", "missing-key")]
    playbooks = TaskPlaybooks(move="upgrade.yaml")
    assert refusal(busy, "agent1", task_playbooks=playbooks) == [
        ("access.yaml", "hosts", "unknown-name")
    ]
    assert made(busy, task_playbooks=playbooks).next_event(None) is None


def test_programs_of_the_python_environment_come_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin")
    own, *others = process.search_path().split(":")
    assert Path(own) == Path(sys.executable).parent
    assert others == ["/usr/bin"]


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "find_spec", lambda _name: None)
    with pytest.raises(MissingExtra, match=r"equipoise\[ansible\]"):
        process.need_ansible()
    monkeypatch.undo()
    monkeypatch.setattr(process, "PROGRAM", "no-such-program")
    with pytest.raises(MissingExtra, match=r"equipoise\[ansible\]"):
        process.need_ansible()


def test_only_the_process_of_a_run_imports_the_runner() -> None:
    line = (
        "import sys, equipoise.adapters.ansible.preflight; "
        "sys.exit('ansible_runner' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", line], check=False).returncode == 0


def a_split(remote_links: bool) -> UpgradeCampaign:
    """Two peers of incompatible versions, which the split mode changes one after the other."""
    campaign = a_campaign()
    resources = tuple(
        Resource(
            id=ResourceId(name),
            kind=ResourceKind.HOST_OS,
            component=ResourceName("greeter"),
            version="1.0",
            host=HostId("h1"),
        )
        for name in ("a", "b")
    )
    peers = Dependency(
        dependent=ResourceId("a"),
        sponsor=ResourceId("b"),
        kind=DependencyKind.PEER_STATELESS,
        incompatible=True,
    )
    change = RequestedChange(
        does=ChangeKind.UPGRADE, resources=(ResourceId("a"), ResourceId("b")), version="2.0"
    )
    change_set = ChangeSet(id=SetId("s"), changes=(change,))
    return campaign.but(
        cluster=campaign.cluster.but(resources=resources, dependencies=(peers,)),
        requests=(UpgradeRequest(id=RequestId("r"), sets=(change_set,)),),
        settings=UpgradeSettings(remote_links=remote_links),
    )


def test_a_split_needs_playbooks_that_switch_its_members() -> None:
    assert refusal(a_split(remote_links=False)) == [
        ("access.yaml", "task_playbooks.deactivate", "missing-key"),
        ("access.yaml", "task_playbooks.activate", "missing-key"),
    ]
    playbooks = TaskPlaybooks(activate="upgrade.yaml", deactivate="undo.yaml")
    assert made(a_split(remote_links=False), task_playbooks=playbooks).next_event(None) is None


@pytest.mark.skipif(not find_spec("ansible_runner"), reason="the extra ansible is not installed")
def test_a_playbook_with_an_unknown_module_is_refused(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    head = '- hosts: "{{ equipoise_hosts }}"\n  tasks:\n'
    good.write_text(head + "    - ansible.builtin.ping:\n")
    bad.write_text(head + "    - name: install\n      acme.tools.agent: {name: x}\n")
    check_modules([good, good], RunOptions())
    with pytest.raises(InvalidInput) as caught:
        check_modules([good, bad], RunOptions())
    (problem,) = caught.value.problems
    assert (Path(caught.value.source).name, problem.code) == ("bad.yaml", "not-a-playbook")
    assert "acme.tools.agent" in problem.what
