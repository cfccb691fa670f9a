"""``equipoise roles check``: lists the defects of a layout, each with its line and a cure."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from equipoise import files
from equipoise.api.loading import read_bytes
from equipoise.cli.output import console, print_document, printable
from equipoise.documents.role_run import LayoutDefectRow, RolesCheckDocument
from equipoise.errors import InvalidInput
from equipoise.model.diagnostics import LineLookup, format_path
from equipoise.model.event import LayoutChanged, RoleMoveRequested
from equipoise.model.inventory import Inventory
from equipoise.model.quantity import format_count
from equipoise.model.roles.layout import RoleLayout
from equipoise.model.scenario.faults import RoleStartsFail
from equipoise.model.scenario.scenario import Scenario
from equipoise.roles.lint import LayoutDefect, lint_layout, unknown_name
from equipoise.sim.expand import expand
from equipoise.spec.rules import check_rules

KeyPath = tuple[str | int, ...]


class LocatedDefect(NamedTuple):
    """A defect and its place in the file."""

    defect: LayoutDefect
    key: str
    line: int | None
    what: str


def run(file: Path, *, as_json: bool) -> int:
    """Print the defects of a layout; 1 if there are any."""
    source, line_of = read_layout_file(file)
    defects = list(find_defects(source, line_of))
    if as_json:
        rows = tuple(map(_defect_row, defects))
        print_document(RolesCheckDocument(file=str(file), clean=not defects, defects=rows))
    else:
        _show(file, source, defects)
    return 1 if defects else 0


def read_layout_file(file: Path) -> tuple[Scenario | Inventory, LineLookup]:
    """Read a file with a layout; check only its form."""
    source, line_of = files.parse_scenario_or_inventory(read_bytes(file), str(file), check_rules)
    if _cluster(source).layout is None:
        key = "cluster.layout" if isinstance(source, Scenario) else "layout"
        raise InvalidInput.of(
            str(file),
            "is missing",
            key=key,
            cure="add roles and groups, see docs/roles.md",
            code="missing-key",
        )
    return source, line_of


def find_defects(source: Scenario | Inventory, line_of: LineLookup) -> Iterator[LocatedDefect]:
    """Yield the defects of all layouts of a file, in the order of their lines."""
    whole = expand(source).inventory if isinstance(source, Scenario) else source
    hosts, vms = [host.id for host in whole.hosts], [vm.id for vm in whole.vms]
    defects = [
        _locate(defect, path, line_of)
        for path, layout in _layouts(source)
        for defect in lint_layout(layout, hosts, vms)
    ]
    if isinstance(source, Scenario):
        defects += [_locate(defect, (), line_of) for defect in _unknown_names(source)]
    yield from sorted(defects, key=lambda defect: defect.line or 0)


def _cluster(source: Scenario | Inventory) -> Inventory:
    return source.cluster if isinstance(source, Scenario) else source


def _layouts(source: Scenario | Inventory) -> Iterator[tuple[KeyPath, RoleLayout]]:
    above: KeyPath = ("cluster",) if isinstance(source, Scenario) else ()
    layout = _cluster(source).layout
    if layout is not None:
        yield (*above, "layout"), layout
    if isinstance(source, Scenario):
        for place, event in enumerate(source.events):
            if isinstance(event, LayoutChanged):
                yield ("events", place, "layout"), event.layout


def _unknown_names(source: Scenario) -> Iterator[LayoutDefect]:
    """Yield events about groups, roles and slots that no layout of the scenario has."""
    layouts = [layout for _, layout in _layouts(source)]
    roles = [role.id for layout in layouts for role in layout.roles]
    teams = {team.id: team for layout in layouts for team in layout.groups}
    for place, event in enumerate(source.events):
        path: KeyPath = ("events", place)
        role = event.role if isinstance(event, RoleMoveRequested | RoleStartsFail) else None
        if role is not None and role not in roles:
            yield unknown_name((*path, "role"), "role", role, dict.fromkeys(roles))
        if not isinstance(event, RoleMoveRequested):
            continue
        if event.group not in teams:
            yield unknown_name((*path, "group"), "group", event.group, teams)
        elif event.slot is not None:
            slots = [slot.id for slot in teams[event.group].slots]
            if event.slot not in slots:
                yield unknown_name((*path, "slot"), "slot", event.slot, slots)


def _locate(defect: LayoutDefect, above: KeyPath, line_of: LineLookup) -> LocatedDefect:
    path, what = (*above, *defect.path), defect.what
    if defect.first is not None:
        first = (*above, *defect.first)
        what += f" {format_path(first)} on line {line_of(first)}"
    return LocatedDefect(defect, format_path(path), line_of(path), what)


def _defect_row(located: LocatedDefect) -> LayoutDefectRow:
    defect = located.defect
    return LayoutDefectRow.of(
        located, code=defect.kind.value, doubtful=defect.kind.is_warning, cure=defect.cure
    )


def _show(file: Path, source: Scenario | Inventory, defects: list[LocatedDefect]) -> None:
    out, layout = console(), _cluster(source).layout
    assert layout is not None, "read_layout_file rejects a file without a layout"
    for defect in defects:
        words = f"{file}: line {defect.line}: {defect.key}: {defect.what} ({defect.defect.cure})"
        out.print(f"{printable(words)} [dim]{defect.defect.kind}[/dim]", soft_wrap=True)
    parts = (
        f"{format_count(len(layout.roles), 'role')}, {format_count(len(layout.groups), 'group')}"
    )
    out.print(f"{parts}: {format_count(len(defects), 'defect') if defects else 'no defects'}")
