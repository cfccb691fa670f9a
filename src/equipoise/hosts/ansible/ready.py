"""Makes an engine ready for a campaign, or says before anything is done why it could never work."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from equipoise.errors import InvalidInput
from equipoise.hosts.ansible.access import Access
from equipoise.hosts.ansible.engine import AnsibleEngine
from equipoise.hosts.ansible.playbook import check_playbooks
from equipoise.hosts.ansible.run import need_ansible
from equipoise.hosts.ansible.scripts import Scripts
from equipoise.hosts.ansible.stages import Equipment, host_of
from equipoise.hosts.ansible.ways import Surroundings, manners_of, ways_to
from equipoise.model.files.findings import Findings
from equipoise.model.files.words import Path as Key
from equipoise.model.upgrade.campaign import Campaign
from equipoise.model.upgrade.catalog import ComponentId, Description, Recipe
from equipoise.model.upgrade.request import Change, ChangeKind
from equipoise.model.upgrade.work import Errand


def engine_for(
    campaign: Campaign,
    around_campaign: Surroundings,
    access: Access,
    around_access: Surroundings,
    clock_ms: Callable[[], int],
) -> AnsibleEngine:
    """Make the engine. Raises ``InvalidInput`` with what is missing in either file."""
    need_ansible()
    _check(campaign, access, around_campaign, around_access)
    named = [*_hosts(campaign), *(resource for resource, _ in _targets(campaign))]
    equipment = Equipment(
        scripts=_scripts(access, around_campaign.folder, around_access.folder),
        ways=ways_to(access, [name for name in named if name in access.hosts], around_access),
        manners=manners_of(access, around_access),
    )
    check_playbooks(_playbooks(campaign, equipment.scripts))
    return AnsibleEngine(equipment, clock_ms)


def _check(
    campaign: Campaign, access: Access, in_campaign: Surroundings, in_access: Surroundings
) -> None:
    found = Findings()
    for place, description in enumerate(campaign.catalog.descriptions):
        for key, recipe in _recipes(description):
            part = found.below("catalog", "descriptions", place, key)
            _check_recipe(recipe, part)
    _check_changes(campaign, found)
    if found:
        raise InvalidInput(in_campaign.source, found.problems())
    for resource, host in _targets(campaign):
        if host_of(resource, host, access.hosts) is None:
            found.add_unknown(("hosts",), "host", host or resource, access.hosts)
    _check_time(campaign, access, found)
    _check_moves(campaign, access, found)
    if found:
        raise InvalidInput(in_access.source, found.problems())


def _check_time(campaign: Campaign, access: Access, found: Findings) -> None:
    """What is expected to take longer than a run may would always end as unknown."""
    for description in campaign.catalog.descriptions:
        for key, recipe in _recipes(description):
            longest_s = max(recipe.duration_s, recipe.taking_back_s)
            if longest_s > access.timeout_s:
                what = f"{access.timeout_s} s end a run"
                name = f"{description.component} {description.version}"
                cure = f"to {key} {name} takes {longest_s} s: allow more than that"
                found.add(("timeout_s",), what, cure)
                return


def _check_moves(campaign: Campaign, access: Access, found: Findings) -> None:
    """VMs leave hosts before those are changed, by a playbook on the host that they leave."""
    changed = {host for _, host in _targets(campaign) if host is not None}
    running = [vm for vm in campaign.cluster.vms if vm.host in changed]
    if not running:
        return
    if access.errands.move is None:
        what = f"is missing, and VMs such as {running[0].id} have to leave {running[0].host}"
        found.add(("errands", "move"), what, "name the playbook that moves a VM")
    for host in dict.fromkeys(str(vm.host) for vm in running):
        if host not in access.hosts:
            found.add_unknown(("hosts",), "host", host, access.hosts)


def _check_recipe(recipe: Recipe, found: Findings) -> None:
    if recipe.by_hand:
        if not recipe.check_script:
            cure = "name the playbook that sees whether it was done, or waits until it is"
            found.add(("check_script",), "is missing for what is done by hand", cure)
        return
    for key, name in (("script", recipe.script), ("undo_script", recipe.undo_script)):
        if not name:
            cure = "name a playbook, seen from the folder of this file"
            found.add((key,), "is missing", cure)


def _check_changes(campaign: Campaign, found: Findings) -> None:
    """What is asked for must be in the catalog, or nobody would know how to do it."""
    known = {(one.component, one.version): one for one in campaign.catalog.descriptions}
    called = {one.id: one.component or one.kind.value for one in campaign.cluster.resources}
    for path, change in _changes(campaign):
        key = _KEYS.get(change.does)
        if key is None or change.version is None:
            continue
        names = [change.component or called.get(one) for one in change.resources]
        for name in dict.fromkeys(names):
            told = known.get((ComponentId(name or ""), change.version))
            if name is not None and (told is None or getattr(told, key) is None):
                what = f"the catalog does not say how to {key} {name} {change.version}"
                cure = f"give its description the key {key}"
                found.add((*path, "version"), what, cure)


_KEYS: Final = {ChangeKind.ADD: "install", ChangeKind.UPGRADE: "upgrade"}


def _changes(campaign: Campaign) -> Iterator[tuple[Key, Change]]:
    for i, request in enumerate(campaign.requests):
        for j, changes in enumerate(request.sets):
            for k, change in enumerate(changes.changes):
                yield ("requests", i, "sets", j, "changes", k), change


def _recipes(description: Description) -> Iterator[tuple[str, Recipe]]:
    for key in ("install", "remove", "upgrade"):
        recipe = getattr(description, key)
        if recipe is not None:
            yield key, recipe


def _targets(campaign: Campaign) -> Iterator[tuple[str, str | None]]:
    """The resources that somebody wants to change, and the hosts they are on."""
    hosts: Mapping[str, str | None] = {one.id: one.host for one in campaign.cluster.resources}
    for _, change in _changes(campaign):
        for resource in change.resources:
            yield resource, hosts.get(resource)


def _hosts(campaign: Campaign) -> Iterator[str]:
    yield from (host.id for host in campaign.cluster.hosts)
    yield from (resource.id for resource in campaign.cluster.resources)


def _scripts(access: Access, of_catalog: Path, of_access: Path) -> Scripts:
    errands = access.errands
    named = {errand: getattr(errands, errand.value, None) for errand in Errand}
    return Scripts(
        folder=of_catalog.absolute(),
        errands={
            errand: (of_access / name).absolute()
            for errand, name in named.items()
            if name is not None
        },
        move=None if errands.move is None else (of_access / errands.move).absolute(),
    )


def _playbooks(campaign: Campaign, scripts: Scripts) -> Iterator[Path]:
    for description in campaign.catalog.descriptions:
        for _, recipe in _recipes(description):
            for name in (recipe.script, recipe.undo_script, recipe.check_script):
                if name:
                    yield scripts.folder / name
    yield from scripts.errands.values()
    if scripts.move is not None:
        yield scripts.move
