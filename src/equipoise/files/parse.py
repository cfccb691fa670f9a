"""Bytes to values: msgspec decodes at full speed; only if that fails, the slow readers find every
problem.

msgspec alone decides what is valid; the tree readers and ``type_check`` explain its verdict. The
last step derives the demand of VMs for which a file gives measured usage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import cache
from typing import Any, Final, TypeVar, cast

import msgspec

from equipoise.errors import InputProblem, InvalidInput
from equipoise.files.campaign_fleets import with_members
from equipoise.files.check import FileValue, check_value, find_problems
from equipoise.files.check.inventory import ClusterCheck, check_amendment
from equipoise.files.check.plausibility import report_doubtful_values
from equipoise.files.check.references import FleetIndexes
from equipoise.files.check.scenario import cluster_with_named_members
from equipoise.files.check.upgrade import RequestContext, check_request
from equipoise.files.document import (
    FileFormat,
    ParsedTree,
    check_size_for_format,
    decode_text,
    detect_formats,
    has_yaml_name,
    with_replacements,
    without_invalid_parts,
)
from equipoise.files.json_reader import has_duplicate_keys, read_json
from equipoise.files.type_check import check_types
from equipoise.files.yaml_reader import read_yaml
from equipoise.model.diagnostics import (
    Diagnostic,
    Diagnostics,
    KeyPath,
    LineLookup,
    TooManyDiagnostics,
)
from equipoise.model.event import OLD_EVENT_KINDS, HostJoined, VmArrived
from equipoise.model.host import Host
from equipoise.model.inventory import Amendment, Inventory
from equipoise.model.plan import Plan
from equipoise.model.problem import PlanningProblem
from equipoise.model.problem.problem import CaseFile
from equipoise.model.scenario.old_keys import rename_old_keys
from equipoise.model.scenario.scenario import Scenario
from equipoise.model.upgrade.campaign import UpgradeCampaign
from equipoise.model.upgrade.catalog import Catalog
from equipoise.model.upgrade.infrastructure import Resource
from equipoise.model.upgrade.request import UpgradeRequest
from equipoise.model.value import Value, pause_gc
from equipoise.model.vm import Vm, demand_from_usage

FileT = TypeVar(
    "FileT",
    Inventory,
    Plan,
    Scenario,
    CaseFile,
    Amendment,
    PlanningProblem,
    UpgradeCampaign,
    UpgradeRequest,
)
ValueCheck = Callable[[Any, Diagnostics], None]


def parse_inventory(
    content: bytes, source: str, cluster_check: ClusterCheck | None = None
) -> Inventory:
    """Return the inventory of a file; ``source`` is its name in messages.

    ``cluster_check`` adds the problems that only the caller can find, such as those of rules in the
    specification language. All problems together make one ``InvalidInput``.
    """
    return _parse(content, source, Inventory, _check_of_cluster(cluster_check))


def find_warnings(inventory: Inventory, content: bytes, source: str) -> list[InputProblem]:
    """Return the doubtful values of an inventory that was read from a file."""
    diagnostics = Diagnostics()
    with suppress(TooManyDiagnostics):
        report_doubtful_values(inventory, diagnostics)
    if not diagnostics:
        return []
    # Only a file with warnings is read again, for the lines.
    formats, text = _formats_and_text(content, source)
    return diagnostics.problems(_read_tree(text, source, formats).line_of)


def parse_plan(content: bytes, source: str) -> Plan:
    """Return the plan of a file; ``source`` is its name in messages."""
    return _parse(content, source, Plan)


def parse_scenario(
    content: bytes, source: str, cluster_check: ClusterCheck | None = None
) -> Scenario:
    """Return the scenario of a file; ``source`` is its name in messages."""
    return _parse(content, source, Scenario, _check_of_cluster(cluster_check))


def parse_case(content: bytes, source: str, cluster_check: ClusterCheck | None = None) -> CaseFile:
    """Return the case of a file; ``source`` is its name in messages."""
    return _parse(content, source, CaseFile, _check_of_cluster(cluster_check))


def parse_campaign(
    content: bytes, source: str, cluster_check: ClusterCheck | None = None
) -> UpgradeCampaign:
    """Return the upgrade campaign of a file; ``source`` is its name in messages."""
    return _parse(content, source, UpgradeCampaign, _check_of_cluster(cluster_check))


def parse_request(
    content: bytes, source: str, resources: Mapping[str, Resource], catalog: Catalog
) -> UpgradeRequest:
    """Return the request of a file to a running campaign with these resources and this catalog."""

    def further_check(value: Any, diagnostics: Diagnostics) -> None:
        check_request(value, (), RequestContext.of(resources, catalog, [value]), diagnostics)

    return _parse(content, source, UpgradeRequest, further_check)


def parse_problem(
    content: bytes, source: str, cluster_check: ClusterCheck | None = None
) -> PlanningProblem:
    """Return the planning problem of a file; an inventory is a problem without goals."""
    further_check = _check_of_cluster(cluster_check)
    formats, text = _formats_and_text(content, source)
    with pause_gc():
        value: PlanningProblem | Inventory | None = None
        if formats[0] is FileFormat.JSON:
            value = _decode_json(content, text, PlanningProblem, further_check)
            # Both decoders fail at the first key of the other kind, which costs almost nothing.
            value = value or _decode_json(content, text, Inventory, further_check)
        if value is None:
            tree = _read_tree(text, source, formats)
            if _is_inventory(tree.root):
                value = _value_or_problems(tree, source, Inventory, further_check)
            else:
                value = _value_or_problems(tree, source, PlanningProblem, further_check)
        return derive_demands(
            value if isinstance(value, PlanningProblem) else PlanningProblem(cluster=value)
        )


def parse_scenario_or_inventory(
    content: bytes, source: str, cluster_check: ClusterCheck | None = None
) -> tuple[Scenario | Inventory, LineLookup]:
    """Return the scenario or inventory of a file, and a lookup for the line of a path."""
    formats, text = _formats_and_text(content, source)
    further_check = _check_of_cluster(cluster_check)
    with pause_gc():
        tree = _read_tree(text, source, formats)
        if isinstance(tree.root, dict) and "cluster" not in tree.root and "hosts" in tree.root:
            return derive_demands(
                _value_or_problems(tree, source, Inventory, further_check)
            ), tree.line_of
        tree = _with_new_keys(tree, Scenario)
        return derive_demands(
            _value_or_problems(tree, source, Scenario, further_check)
        ), tree.line_of


def _is_inventory(root: Any) -> bool:
    """Whether a document lists hosts or VMs; a problem maps them to their goals instead."""
    if not isinstance(root, dict) or "cluster" in root:
        return False
    return any(isinstance(root.get(key), list) for key in ("hosts", "vms"))


def parse_amendment(
    content: bytes, source: str, base: Inventory, cluster_check: ClusterCheck | None = None
) -> Amendment:
    """Return the amendment of a file to a cluster; ``source`` is its name in messages."""

    def check_whole(inventory: Inventory, diagnostics: Diagnostics) -> None:
        check_value(inventory, diagnostics, {})
        if cluster_check is not None and not diagnostics:
            cluster_check(inventory, diagnostics)

    def further_check(value: Any, diagnostics: Diagnostics) -> None:
        check_amendment(value, base, check_whole, diagnostics)

    return _parse(content, source, Amendment, further_check)


def _check_of_cluster(cluster_check: ClusterCheck | None) -> ValueCheck:
    def check_further(value: Any, diagnostics: Diagnostics) -> None:
        if cluster_check is None:
            return
        if isinstance(value, Scenario):
            cluster_check(cluster_with_named_members(value), diagnostics.below("cluster"))
        elif isinstance(value, CaseFile | PlanningProblem | UpgradeCampaign):
            cluster_check(value.cluster, diagnostics.below("cluster"))
        else:
            cluster_check(value, diagnostics)

    return check_further


def _no_further_check(_value: Any, _diagnostics: Diagnostics) -> None:
    """Accept every value: the model knows all about most kinds of file."""


def _parse(
    content: bytes,
    source: str,
    file_type: type[FileT],
    further_check: ValueCheck = _no_further_check,
) -> FileT:
    formats, text = _formats_and_text(content, source)
    with pause_gc():
        value = None
        if formats[0] is FileFormat.JSON:
            value = _decode_json(content, text, file_type, further_check)
        if value is None:
            value = _value_or_problems(
                _read_tree(text, source, formats), source, file_type, further_check
            )
        # After the checks, which compare usage and demand as the file has them.
        return derive_demands(value)


def _formats_and_text(content: bytes, source: str) -> tuple[tuple[FileFormat, ...], str]:
    """Return the languages in which a file may be written, and its text."""
    formats = detect_formats(content, source)
    check_size_for_format(len(content), source, formats[0])
    return formats, decode_text(content, source)


def _decode_json(
    content: bytes, text: str, file_type: type[FileT], further_check: ValueCheck
) -> FileT | None:
    """Return the value of a valid file, quickly; ``None`` if there is any problem."""
    try:
        value = _decoder(file_type).decode(content)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    diagnostics = Diagnostics()
    with suppress(TooManyDiagnostics):
        further_check(value, diagnostics)
    # The search for duplicates reads the whole text again, so that it comes last.
    return None if find_problems(value) or diagnostics or has_duplicate_keys(text) else value


@cache
def _decoder(file_type: type[FileT]) -> msgspec.json.Decoder[FileT]:
    return msgspec.json.Decoder(file_type)


def _read_tree(text: str, source: str, formats: tuple[FileFormat, ...]) -> ParsedTree:
    if formats[0] is FileFormat.YAML:
        return read_yaml(text, source)
    try:
        return read_json(text, source)
    except InvalidInput as error:
        # The name says JSON, or the text cannot be YAML: the first error is the right one.
        if formats[-1] is FileFormat.JSON:
            raise
        json_error = error
    try:
        check_size_for_format(len(text), source, FileFormat.YAML)
        return read_yaml(text, source)
    except InvalidInput:
        if has_yaml_name(source):
            raise
        raise json_error from None


OLD_KEYS_BY_TYPE: Final[Mapping[type[Value], str]] = {
    CaseFile: "case",
    Plan: "plan",
    Scenario: "scenario",
    UpgradeCampaign: "campaign",
}
"""The types of file that have old keys, as ``old_keys.OLD_KEYS`` calls them."""


def _with_new_keys(tree: ParsedTree, file_type: type[FileT]) -> ParsedTree:
    """Return a tree in which old keys and events have their new names, as messages call them."""
    root, renamed = rename_old_keys(tree.root, OLD_KEYS_BY_TYPE.get(file_type, ""))
    if file_type is Scenario:
        root = _with_new_event_kinds(root)

    def line_of(path: KeyPath) -> int | None:
        # The reader knows the lines by the keys that the file has.
        old_path = (renamed.get(path[: depth + 1], step) for depth, step in enumerate(path))
        return tree.line_of(tuple(old_path))

    return ParsedTree(root, line_of if renamed else tree.line_of, tree.diagnostics)


def _with_new_event_kinds(root: Any) -> Any:
    events = root.get("events") if isinstance(root, dict) else None
    if not isinstance(events, list):
        return root
    return {**root, "events": [_with_new_kind(event) for event in events]}


def _with_new_kind(event: Any) -> Any:
    kind = event.get("event") if isinstance(event, dict) else None
    new = OLD_EVENT_KINDS.get(kind) if isinstance(kind, str) else None
    return event if new is None else {**event, "event": new}


def _value_or_problems(
    tree: ParsedTree, source: str, file_type: type[FileT], further_check: ValueCheck
) -> FileT:
    """Return the value of a tree, or raise ``InvalidInput`` with all its problems."""
    tree = _with_new_keys(tree, file_type)
    if file_type is UpgradeCampaign and not tree.diagnostics:
        tree = with_members(tree, source)
    diagnostics = Diagnostics(tree.diagnostics)
    value = None if diagnostics else _convert(tree.root, file_type)
    with suppress(TooManyDiagnostics):
        if value is not None:
            check_value(value, diagnostics, {})
            found = Diagnostics()
            # Rules and layouts name elements and read no figures of them, so that their problems
            # are reported beside those of the rest.
            with suppress(TooManyDiagnostics):
                further_check(value, found)
            diagnostics.extend(found.all())
        else:
            check_types(tree.root, file_type, diagnostics)
            unread = diagnostics.all()
            _check_valid_rest(tree, file_type, diagnostics)
            _check_names_of_rest(tree, file_type, unread, further_check, diagnostics)
    if not diagnostics:
        assert value is not None, "msgspec rejects a value that the type check accepts"
        return value
    raise InvalidInput(source, diagnostics.problems(tree.line_of))


def _check_valid_rest(tree: ParsedTree, file_type: type[FileT], diagnostics: Diagnostics) -> None:
    """Check the rest of a tree without the elements that could not be read, if that is possible."""
    rest = without_invalid_parts(tree, diagnostics.paths)
    value = None if rest is None else _convert(rest[0], file_type)
    if rest is not None and value is not None:
        check_value(value, diagnostics, rest[1])


def _check_names_of_rest(
    tree: ParsedTree,
    file_type: type[FileT],
    unread: Iterable[Diagnostic],
    further_check: ValueCheck,
    diagnostics: Diagnostics,
) -> None:
    """Check the names in elements of which some other value could not be read.

    Valid values take the place of these. They are arbitrary, so only what depends on no value is
    reported: names that do not exist.
    """
    replaced, left = list[Diagnostic](), list[KeyPath]()
    for diagnostic in unread:
        # The size of a fleet says which names its members have.
        is_size = diagnostic.path[:1] == ("fleet",) and diagnostic.path[-1] == "count"
        if diagnostic.replacement is None or is_size:
            left.append(diagnostic.path)
        else:
            replaced.append(diagnostic)
    rest = without_invalid_parts(with_replacements(tree, replaced), left)
    value = None if rest is None else _convert(rest[0], file_type)
    if rest is None or value is None:
        return
    found = Diagnostics()
    with suppress(TooManyDiagnostics):
        check_value(value, found, rest[1])
        # Rules name elements as well. Without some elements, their names would look wrong.
        if not rest[1]:
            further_check(value, found)
    diagnostics.extend(
        diagnostic for diagnostic in found.all() if diagnostic.code in _CODES_OF_NAMES
    )


_CODES_OF_NAMES: Final = frozenset(
    (
        "unknown-name", "unknown-constraint", "unknown-argument", "missing-argument",
        "invalid-argument",
    )
)  # fmt: skip


def _convert(root: Any, file_type: type[FileT]) -> FileT | None:
    try:
        return msgspec.convert(root, file_type)
    except msgspec.ValidationError:
        return None


HostLookup = Callable[[str], Host | None]


def derive_demands(value: FileT) -> FileT:
    """Return a valid value in which every VM with ``usage`` has the demand that follows from it."""
    return cast(FileT, _derive_demands(value))


def _derive_demands(value: FileValue) -> Value:
    match value:
        case Inventory():
            hosts: dict[str, Host] = {host.id: host for host in value.hosts}
            return _derive_in_inventory(value, hosts.get)
        case CaseFile() | PlanningProblem() | UpgradeCampaign():
            return value.but(cluster=_derive_demands(value.cluster))
        case Scenario():
            return _derive_in_scenario(value)
        case Amendment():
            new: dict[str, Host] = {host.id: host for host in value.hosts}
            return value.but(vms=tuple(_derive_in_vm(vm, new.get) for vm in value.vms))
        case Plan() | UpgradeRequest():
            return value


def _derive_in_inventory(inventory: Inventory, host_of: HostLookup) -> Inventory:
    if not any(vm.usage for vm in inventory.vms):
        return inventory
    return inventory.but(vms=tuple(_derive_in_vm(vm, host_of) for vm in inventory.vms))


def _derive_in_vm(vm: Vm, host_of: HostLookup) -> Vm:
    if vm.usage is None:
        return vm
    host = None if vm.host is None else host_of(vm.host)
    speed = None if host is None else host.mhz_per_core
    return vm.but(demand=demand_from_usage(vm.usage, vm, speed), usage=None)


def _derive_in_scenario(scenario: Scenario) -> Scenario:
    """Derive the demands of listed VMs, fleets and arrivals.

    The VMs of a fleet may be on hosts of several speeds, so their demand ignores the speed.
    """
    fleet = scenario.fleet
    host_fleets = FleetIndexes.of(scenario, {}).hosts
    hosts: dict[str, Host] = {
        event.host.id: event.host for event in scenario.events if isinstance(event, HostJoined)
    }
    hosts |= {host.id: host for host in scenario.cluster.hosts}

    def host_of(name: str) -> Host | None:
        return hosts.get(name) or host_fleets.get(name)

    return scenario.but(
        cluster=_derive_in_inventory(scenario.cluster, host_of),
        fleet=fleet.but(
            vms=tuple(vms.but(like=_derive_in_vm(vms.like, host_of)) for vms in fleet.vms)
        ),
        events=tuple(
            event.but(vm=_derive_in_vm(event.vm, host_of))
            if isinstance(event, VmArrived)
            else event
            for event in scenario.events
        ),
    )
