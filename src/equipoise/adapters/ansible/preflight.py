"""Checks a campaign and its access file before the first action, and makes the engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from equipoise.adapters.access_file import FileContext
from equipoise.adapters.ansible.access import AnsibleAccess, connections_to, run_options_of
from equipoise.adapters.ansible.engine import AnsibleConfig, AnsibleEngine, host_of
from equipoise.adapters.ansible.job import HostConnection
from equipoise.adapters.ansible.playbooks import PlaybookPaths, check_playbooks
from equipoise.adapters.ansible.process import need_ansible
from equipoise.errors import InvalidInput
from equipoise.model.diagnostics import Diagnostics, KeyPath
from equipoise.model.upgrade.campaign import UpgradeCampaign
from equipoise.model.upgrade.catalog import ComponentDescription, ComponentId, Recipe
from equipoise.model.upgrade.request import ChangeKind, RequestedChange
from equipoise.model.upgrade.work import TaskKind, UpgradeMethod
from equipoise.upgrade.requests.planned import planned_units


def engine_for(
    campaign: UpgradeCampaign,
    campaign_context: FileContext,
    access: AnsibleAccess,
    access_context: FileContext,
    clock_ms: Callable[[], int],
) -> AnsibleEngine:
    """Return the engine; raise ``InvalidInput`` with the problems of either file."""
    need_ansible()
    _check(campaign, access, campaign_context, access_context)
    named = list(
        dict.fromkeys([*_hosts(campaign), *(resource for resource, _ in _targets(campaign))])
    )
    first_hosts = tuple(name for name in named if name in access.hosts)
    config = AnsibleConfig(
        playbooks=_playbook_paths(access, campaign_context.folder, access_context.folder),
        connections=connections_to(access, first_hosts, access_context)
        | _further_connections(access, named, access_context),
        run_options=run_options_of(access, access_context),
        first_hosts=first_hosts,
    )
    playbooks = tuple(dict.fromkeys(_playbooks(campaign, config.playbooks)))
    check_playbooks(playbooks)
    return AnsibleEngine(replace(config, all_playbooks=playbooks), clock_ms)


def _further_connections(
    access: AnsibleAccess, named: Sequence[str], context: FileContext
) -> dict[str, HostConnection]:
    """Return connections to hosts that only a later request may name, as far as they are usable."""
    connections: dict[str, HostConnection] = {}
    for name in access.hosts:
        if name not in named:
            with suppress(InvalidInput):
                connections |= connections_to(access, [name], context)
    return connections


def _check(
    campaign: UpgradeCampaign,
    access: AnsibleAccess,
    in_campaign: FileContext,
    in_access: FileContext,
) -> None:
    found = Diagnostics()
    for index, description in enumerate(campaign.catalog.descriptions):
        for key, recipe in _recipes(description):
            part = found.below("catalog", "descriptions", index, key)
            _check_recipe(recipe, part)
    _check_changes(campaign, found)
    if found:
        raise InvalidInput(in_campaign.source, found.problems())
    for resource, host in _targets(campaign):
        if host_of(resource, host, access.hosts) is None:
            found.add_unknown(("hosts",), "host", host or resource, access.hosts)
    _check_time(campaign, access, found)
    _check_moves(campaign, access, found)
    _check_switching(campaign, access, found)
    if found:
        raise InvalidInput(in_access.source, found.problems())


def _check_time(campaign: UpgradeCampaign, access: AnsibleAccess, found: Diagnostics) -> None:
    """Compare the longest work with the time limit: a longer one would always end as unknown."""
    for description in campaign.catalog.descriptions:
        for key, recipe in _recipes(description):
            longest_s = max(recipe.duration_s, recipe.undo_s)
            if longest_s > access.timeout_s:
                name = f"{description.component} {description.version}"
                what = f"the time limit is {access.timeout_s} s, but to {key} {name} takes longer"
                cure = f"allow more than {longest_s} s"
                found.add(("timeout_s",), what, cure, code="out-of-range")
                return


def _check_moves(campaign: UpgradeCampaign, access: AnsibleAccess, found: Diagnostics) -> None:
    """Check that the VMs of hosts that change can move: a playbook, and a connection."""
    changed = {host for _, host in _targets(campaign) if host is not None}
    running = [vm for vm in campaign.cluster.vms if vm.host in changed]
    if not running:
        return
    if access.task_playbooks.move is None:
        what = f"is missing, but VMs such as {running[0].id} must leave {running[0].host}"
        cure = "name the playbook that moves a VM"
        found.add(("task_playbooks", "move"), what, cure, code="missing-key")
    for host in dict.fromkeys(str(vm.host) for vm in running):
        if host not in access.hosts:
            found.add_unknown(("hosts",), "host", host, access.hosts)


def _check_switching(campaign: UpgradeCampaign, access: AnsibleAccess, found: Diagnostics) -> None:
    """Check that upgrade units can switch their members or links off and on."""
    units = [unit for unit in planned_units(campaign) if len(unit.partitions) > 1]
    for unit in units:
        links = unit.method is UpgradeMethod.MODIFIED_SPLIT_LINKS
        needed = ("link_off", "link_on") if links else ("deactivate", "activate")
        for key in needed:
            if getattr(access.task_playbooks, key) is None:
                what = f"is missing, but {unit.resources[0]} is changed by the method {unit.method}"
                cure = "name the playbook, because incompatible versions must not meet"
                found.add(("task_playbooks", key), what, cure, code="missing-key")
        if found:
            return


def _check_recipe(recipe: Recipe, found: Diagnostics) -> None:
    if recipe.by_hand:
        if not recipe.check_script:
            cure = "name the playbook that checks whether the work is done, or waits for it"
            what = "is missing for work by hand"
            found.add(("check_script",), what, cure, code="missing-key")
        return
    for key, name in (("script", recipe.script), ("undo_script", recipe.undo_script)):
        if not name:
            cure = "name a playbook, relative to this file"
            found.add((key,), "is missing", cure, code="missing-key")


def _check_changes(campaign: UpgradeCampaign, found: Diagnostics) -> None:
    """Check that the catalog describes every requested change."""
    descriptions = {
        (description.component, description.version): description
        for description in campaign.catalog.descriptions
    }
    component_of = {
        resource.id: resource.component or resource.kind.value
        for resource in campaign.cluster.resources
    }
    for path, change in _changes(campaign):
        key = _RECIPE_KEYS.get(change.does)
        if key is None or change.version is None:
            continue
        names = [change.component or component_of.get(id_) for id_ in change.resources]
        for name in dict.fromkeys(names):
            description = descriptions.get((ComponentId(name or ""), change.version))
            if name is not None and (description is None or getattr(description, key) is None):
                what = f"the catalog does not describe how to {key} {name} {change.version}"
                cure = f"give its description the key {key}"
                found.add((*path, "version"), what, cure, code="unknown-name")


_RECIPE_KEYS: Final = {ChangeKind.ADD: "install", ChangeKind.UPGRADE: "upgrade"}


def _changes(campaign: UpgradeCampaign) -> Iterator[tuple[KeyPath, RequestedChange]]:
    for i, request in enumerate(campaign.requests):
        for j, changes in enumerate(request.sets):
            for k, change in enumerate(changes.changes):
                yield ("requests", i, "sets", j, "changes", k), change


def _recipes(description: ComponentDescription) -> Iterator[tuple[str, Recipe]]:
    for key in ("install", "remove", "upgrade"):
        recipe = getattr(description, key)
        if recipe is not None:
            yield key, recipe


def _targets(campaign: UpgradeCampaign) -> Iterator[tuple[str, str | None]]:
    """Yield the resources of all requested changes, each with its host."""
    hosts: Mapping[str, str | None] = {
        resource.id: resource.host for resource in campaign.cluster.resources
    }
    for _, change in _changes(campaign):
        for resource in change.resources:
            yield resource, hosts.get(resource)


def _hosts(campaign: UpgradeCampaign) -> Iterator[str]:
    yield from (host.id for host in campaign.cluster.hosts)
    yield from (resource.id for resource in campaign.cluster.resources)


def _playbook_paths(access: AnsibleAccess, of_catalog: Path, of_access: Path) -> PlaybookPaths:
    playbooks = access.task_playbooks
    # The fields of TaskPlaybooks have the values of TaskKind as their names.
    named = {kind: getattr(playbooks, kind.value, None) for kind in TaskKind}
    return PlaybookPaths(
        folder=of_catalog.absolute(),
        by_task={
            kind: (of_access / name).absolute() for kind, name in named.items() if name is not None
        },
        move=None if playbooks.move is None else (of_access / playbooks.move).absolute(),
    )


def _playbooks(campaign: UpgradeCampaign, playbooks: PlaybookPaths) -> Iterator[Path]:
    for description in campaign.catalog.descriptions:
        for _, recipe in _recipes(description):
            for name in (recipe.script, recipe.undo_script, recipe.check_script):
                if name:
                    yield playbooks.folder / name
    yield from playbooks.by_task.values()
    if playbooks.move is not None:
        yield playbooks.move
