"""``equipoise roles check``: what is wrong with a layout, each with line and cure."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from equipoise.cli.answer import console, plain, print_json
from equipoise.cli.read import read_bytes
from equipoise.errors import InvalidInput, Problem
from equipoise.model import files
from equipoise.model.event import LayoutChanged, RoleMoveAsked
from equipoise.model.files.findings import LineOf
from equipoise.model.files.words import path_shown
from equipoise.model.inventory import Inventory
from equipoise.model.roles.layout import RoleLayout
from equipoise.model.story.scenario import Scenario
from equipoise.model.story.unrest import RoleStartsFail
from equipoise.model.words import counted
from equipoise.roles.defect import Defect, unknown
from equipoise.roles.lint import lint
from equipoise.sim.unfold import unfold
from equipoise.spec.rules import check_rules

Path_ = tuple[str | int, ...]


class Found(NamedTuple):
    """A defect and where it stands."""

    defect: Defect
    key: str
    line: int | None
    what: str


def run(file: Path, *, as_json: bool) -> int:
    """Check, and say what was found."""
    story, line_of = read(file)
    found = list(defects(story, line_of))
    if as_json:
        print_json({"file": str(file), "clean": not found, "defects": [_as_json(x) for x in found]})
    else:
        _show(file, story, found)
    return 1 if found else 0


def read(file: Path) -> tuple[Scenario | Inventory, LineOf]:
    """Read a file with a layout; only its form is checked."""
    story, line_of = files.parse_story(read_bytes(file), str(file), check_rules)
    if _cluster(story).layout is None:
        key = "cluster.layout" if isinstance(story, Scenario) else "layout"
        problem = Problem(key=key, what="is missing", cure="roles and groups, see docs/roles.md")
        raise InvalidInput(str(file), [problem])
    return story, line_of


def defects(story: Scenario | Inventory, line_of: LineOf) -> Iterator[Found]:
    """Everything that is wrong with the layouts of a file, from its top to its end."""
    whole = unfold(story).inventory if isinstance(story, Scenario) else story
    hosts, vms = [host.id for host in whole.hosts], [vm.id for vm in whole.vms]
    found = [
        _placed(one, path, line_of)
        for path, layout in _layouts(story)
        for one in lint(layout, hosts, vms)
    ]
    if isinstance(story, Scenario):
        found += [_placed(one, (), line_of) for one in _unknown_names(story)]
    yield from sorted(found, key=lambda one: one.line or 0)


def _cluster(story: Scenario | Inventory) -> Inventory:
    return story.cluster if isinstance(story, Scenario) else story


def _layouts(story: Scenario | Inventory) -> Iterator[tuple[Path_, RoleLayout]]:
    above: Path_ = ("cluster",) if isinstance(story, Scenario) else ()
    layout = _cluster(story).layout
    if layout is not None:
        yield (*above, "layout"), layout
    if isinstance(story, Scenario):
        for place, one in enumerate(story.happenings):
            if isinstance(one, LayoutChanged):
                yield ("happenings", place, "layout"), one.layout


def _unknown_names(story: Scenario) -> Iterator[Defect]:
    """Happenings about groups, roles and slots that no layout of the story has."""
    layouts = [layout for _, layout in _layouts(story)]
    roles = [role.id for layout in layouts for role in layout.roles]
    teams = {team.id: team for layout in layouts for team in layout.groups}
    for place, one in enumerate(story.happenings):
        path: Path_ = ("happenings", place)
        role = one.role if isinstance(one, RoleMoveAsked | RoleStartsFail) else None
        if role is not None and role not in roles:
            yield unknown((*path, "role"), "role", role, dict.fromkeys(roles))
        if not isinstance(one, RoleMoveAsked):
            continue
        if one.group not in teams:
            yield unknown((*path, "group"), "group", one.group, teams)
        elif one.slot is not None:
            slots = [slot.id for slot in teams[one.group].slots]
            if one.slot not in slots:
                yield unknown((*path, "slot"), "slot", one.slot, slots)


def _placed(defect: Defect, above: Path_, line_of: LineOf) -> Found:
    path, what = (*above, *defect.path), defect.what
    if defect.first is not None:
        first = (*above, *defect.first)
        what += f" {path_shown(first)} on line {line_of(first)}"
    return Found(defect, path_shown(path), line_of(path), what)


def _as_json(one: Found) -> dict[str, object]:
    return {
        "code": one.defect.kind.value,
        "doubtful": one.defect.kind.is_doubtful,
        "line": one.line,
        "key": one.key,
        "what": one.what,
        "cure": one.defect.cure,
    }


def _show(file: Path, story: Scenario | Inventory, found: list[Found]) -> None:
    out, layout = console(), _cluster(story).layout
    assert layout is not None, "read has seen to it"
    for one in found:
        words = f"{file}: line {one.line}: {one.key}: {one.what} ({one.defect.cure})"
        out.print(f"{plain(words)} [dim]{one.defect.kind}[/dim]", soft_wrap=True)
    parts = f"{counted(len(layout.roles), 'role')}, {counted(len(layout.groups), 'group')}"
    out.print(f"{parts}: {counted(len(found), 'defect') if found else 'nothing is wrong'}")
