"""Makes an engine ready for a campaign, or says before anything is done why it could never work."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from equipoise.errors import InvalidInput
from equipoise.hosts.ansible.access import Access
from equipoise.hosts.ansible.engine import AnsibleEngine, Equipment
from equipoise.hosts.ansible.playbook import check_playbooks
from equipoise.hosts.ansible.run import need_ansible
from equipoise.hosts.ansible.scripts import Scripts
from equipoise.hosts.ansible.stages import host_of
from equipoise.hosts.ansible.ways import Surroundings, manners_of, ways_to
from equipoise.model.files.findings import Findings
from equipoise.model.upgrade.campaign import Campaign
from equipoise.model.upgrade.catalog import Description, Recipe
from equipoise.model.upgrade.work import Errand


def engine_for(
    campaign: Campaign,
    around_campaign: Surroundings,
    access: Access,
    around_access: Surroundings,
    now_ms: Callable[[], int],
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
    return AnsibleEngine(equipment, now_ms)


def _check(
    campaign: Campaign, access: Access, in_campaign: Surroundings, in_access: Surroundings
) -> None:
    found = Findings()
    for place, description in enumerate(campaign.catalog.descriptions):
        for key, recipe in _recipes(description):
            part = found.below("catalog", "descriptions", place, key)
            _check_recipe(recipe, part)
    if found:
        raise InvalidInput(in_campaign.source, found.problems())
    for resource, host in _targets(campaign):
        if host_of(resource, host, access.hosts) is None:
            found.add_unknown(("hosts",), "host", host or resource, access.hosts)
    if found:
        raise InvalidInput(in_access.source, found.problems())


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


def _recipes(description: Description) -> Iterator[tuple[str, Recipe]]:
    for key in ("install", "remove", "upgrade"):
        recipe = getattr(description, key)
        if recipe is not None:
            yield key, recipe


def _targets(campaign: Campaign) -> Iterator[tuple[str, str | None]]:
    """The resources that somebody wants to change, and the hosts they are on."""
    hosts: Mapping[str, str | None] = {one.id: one.host for one in campaign.cluster.resources}
    for request in campaign.requests:
        for changes in request.sets:
            for change in changes.changes:
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
