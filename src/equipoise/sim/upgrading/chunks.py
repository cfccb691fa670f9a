"""What a rolling upgrade takes out of service at once, and what it does with it.

All that is to be done on a host is one chunk; whatever is on no host is one by itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from equipoise.errors import InvalidInput, Problem
from equipoise.model.quantity import HostId, ResourceId
from equipoise.model.resource import Resource
from equipoise.model.upgrade.campaign import Campaign
from equipoise.model.upgrade.catalog import ComponentId, Doing, Recipe
from equipoise.model.upgrade.request import Change, ChangeKind, Request, SetId
from equipoise.model.upgrade.work import Task, VertexId, Work

_DOING = {
    ChangeKind.ADD: Doing.INSTALL,
    ChangeKind.REMOVE: Doing.REMOVE,
    ChangeKind.UPGRADE: Doing.UPGRADE,
}


@dataclass(slots=True)
class Chunk:
    """A host, or a resource that is on none, with the work on it."""

    kind: str
    """Chunks of one kind are rolled over together, in the order in which kinds are asked for."""
    host: HostId | None
    tasks: list[Task] = field(default_factory=list)
    out: dict[ResourceId, None] = field(default_factory=dict)
    """Who is out of service meanwhile: nobody who is only now added."""
    replaces: tuple[ResourceId, ResourceId] | None = None
    """Who is replaced once it is done, and by whom."""
    supports: ResourceId | None = None
    """Who goes with it and keeps VMs going, which have to leave it before."""


def chunks_of(campaign: Campaign, request: Request) -> list[Chunk]:
    """What a request takes out of service; refused if it is about links between resources."""
    known = {one.id: one for one in campaign.cluster.resources}
    found: dict[str, Chunk] = {}
    for set_ in request.sets:
        for change in set_.changes:
            if change.dependencies and not (change.resources or change.new):
                raise _refused(campaign, "change of dependencies by themselves")
            for resource in (*change.new, *_targets(campaign, known, change)):
                _add(campaign, found, set_.id, change, resource)
            known |= {one.id: one for one in change.new}
            if change.replaces is not None and change.new:
                _add_removal(campaign, found, set_.id, known[change.replaces], change.new[0])
    return list(found.values())


def _targets(
    campaign: Campaign, known: dict[ResourceId, Resource], change: Change
) -> list[Resource]:
    for id_ in change.resources:
        if id_ not in known:
            raise _refused(campaign, f"{change.does} of {id_}, which is not among its resources")
    return [known[id_] for id_ in change.resources]


def _add(
    campaign: Campaign, found: dict[str, Chunk], set_: SetId, change: Change, resource: Resource
) -> None:
    name = f"host {resource.host}" if resource.host is not None else resource.id
    kind = "host" if resource.host is not None else resource.kind.value
    chunk = found.setdefault(name, Chunk(kind, resource.host))
    work = _work(campaign, resource, change, set_)
    vertex = VertexId(resource.host or resource.id)
    chunk.tasks.append(Task(resource=resource.id, vertex=vertex, works=(work,), host=resource.host))
    if resource not in change.new:
        chunk.out[resource.id] = None


def _add_removal(
    campaign: Campaign, found: dict[str, Chunk], set_: SetId, old: Resource, new: Resource
) -> None:
    """What is replaced goes last of its kind, once the other one is there."""
    found[new.id].replaces = (old.id, new.id)
    gone = Change(does=ChangeKind.REMOVE, resources=(old.id,))
    _add(campaign, found, set_, gone, old)
    found[old.id].kind, found[old.id].supports = f"{old.kind.value} that is replaced", old.id


def _work(campaign: Campaign, resource: Resource, change: Change, set_: SetId) -> Work:
    component = ComponentId(change.component or resource.component or resource.kind.value)
    doing = _DOING[change.does]
    after = None if doing is Doing.REMOVE else change.version or resource.version
    before = None if doing is Doing.INSTALL else resource.version
    said = {(one.component, one.version): one for one in campaign.catalog.descriptions}
    known = said.get((component, after or before or ""))
    recipe = getattr(known, doing.value, None) or Recipe()
    return Work(
        set=set_, component=component, does=doing, before=before, after=after, recipe=recipe
    )


def _refused(campaign: Campaign, what: str) -> InvalidInput:
    problem = Problem(
        key="requests",
        what=f"asks for the {what}: a rolling upgrade knows no such thing",
        cure="compare campaigns that change resources, such as nabi-case-a",
    )
    return InvalidInput(campaign.name, [problem])
