"""Overrides: a scenario or another value with a few values changed, as ``KEY=VALUE``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from equipoise.errors import InvalidInput
from equipoise.files.check.inventory import ClusterCheck
from equipoise.files.parse import OLD_KEYS_BY_TYPE, parse_scenario
from equipoise.files.type_check import check_types
from equipoise.model.action_durations import Estimates
from equipoise.model.diagnostics import Diagnostics, closest_match, describe_value
from equipoise.model.scenario.old_keys import replace_old_steps
from equipoise.model.scenario.scenario import Scenario
from equipoise.model.value import Value


def override_scenario(
    scenario: Scenario,
    changes: Sequence[str],
    source: str,
    cluster_check: ClusterCheck | None = None,
) -> Scenario:
    """Return the scenario with changes such as ``cluster.power.foresight_s=1800``.

    Values are JSON; a value that is not JSON is text. The result is checked like a file.
    """
    tree = override_values(scenario, changes, source)
    return parse_scenario(msgspec.json.encode(tree), source, cluster_check)


def override_estimates(estimates: Estimates, changes: Sequence[str], source: str) -> Estimates:
    """Return the estimates with changes such as ``power_on_ms=240000``."""
    tree = override_values(estimates, changes, source)
    diagnostics = Diagnostics()
    check_types(tree, Estimates, diagnostics)
    if diagnostics:
        raise InvalidInput(source, diagnostics.problems(lambda _path: None))
    return msgspec.convert(tree, Estimates)


def override_values(value: Value, changes: Sequence[str], source: str) -> Any:
    """Return a value as plain dictionaries and lists with the changes made. Nothing is checked."""
    # With all defaults, so that a key that the file leaves out can be changed as well.
    tree = msgspec.json.decode(msgspec.json.encode(value))
    for change in changes:
        key, equals, text = change.partition("=")
        if not equals:
            what = "is not an assignment"
            raise _invalid_override(source, change, what, "write KEY=VALUE", "syntax-error")
        steps = replace_old_steps(OLD_KEYS_BY_TYPE.get(type(value), ""), key.strip().split("."))
        _set_value(tree, ".".join(steps), _parse_value(text.strip()), source)
    return tree


def _set_value(tree: Any, key: str, value: Any, source: str) -> None:
    *parents, last = key.split(".")
    node = tree
    for depth in range(1, len(parents) + 1):
        node = _child(node, parents[:depth], key, source)
    if isinstance(node, dict):
        if parents and last not in node and not _accepts_new_keys(node, parents):
            raise _unknown_key(node, [*parents, last], key, source)
        node[last] = value
    elif isinstance(node, list) and last.isdecimal() and int(last) < len(node):
        node[int(last)] = value
    else:
        raise _unknown_key(node, [*parents, last], key, source)


def _accepts_new_keys(node: dict[str, Any], parents: Sequence[str]) -> bool:
    """Whether a mapping has names as keys, so that a new one may be added."""
    return not node or parents[-1] in {
        *("hosts", "vms", "loads", "vm_loads", "labels"),
        *("host_states", "vm_states", "end_states", "resources", "given"),
    }


def _child(node: Any, parents: Sequence[str], key: str, source: str) -> Any:
    """Return the part of ``node`` that the last of ``parents`` names."""
    step = parents[-1]
    if isinstance(node, dict) and step in node:
        return node[step]
    if isinstance(node, list) and step.isdecimal() and int(step) < len(node):
        return node[int(step)]
    raise _unknown_key(node, parents, key, source)


def _unknown_key(node: Any, parents: Sequence[str], key: str, source: str) -> InvalidInput:
    step, whole = parents[-1], ".".join(parents[:-1])
    if isinstance(node, str | int | float):
        what = f"{whole} is {describe_value(node)} and has no keys"
        return _invalid_override(source, key, what, f"write {whole}=VALUE", "unknown-key")
    cure = f"give {whole} as a whole: {whole}={'[...]' if node == [] else '{...}'}"
    if isinstance(node, list) and node:
        cure = f"write a number from 0 to {len(node) - 1}"
    elif isinstance(node, dict) and node:
        match = closest_match(step, node)
        cure = f"did you mean {match}?" if match else f"one of {', '.join(node)}"
    return _invalid_override(source, key, f"there is no {step!r}", cure, "unknown-key")


def _invalid_override(source: str, key: str, what: str, cure: str, code: str) -> InvalidInput:
    return InvalidInput.of(source, what, key=f"--set {key}", cure=cure, code=code)


def _parse_value(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text
