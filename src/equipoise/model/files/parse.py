"""From bytes to values: decode at full speed, and only when that fails find out everything wrong.

What fits is decided by msgspec alone; the readers and walkers here explain its verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from typing import Any, TypeVar

import msgspec

from equipoise.errors import InvalidInput
from equipoise.model.amendment import Amendment
from equipoise.model.case import CaseFile
from equipoise.model.files.check import check, problems_of
from equipoise.model.files.check.amendment import check_amendment
from equipoise.model.files.check.requests import Grounds, check_request
from equipoise.model.files.check.scenario import ruled_cluster
from equipoise.model.files.collector import undisturbed
from equipoise.model.files.counted import with_demands
from equipoise.model.files.findings import Enough, Findings, LineOf
from equipoise.model.files.json_tree import has_doubled_keys, read_json
from equipoise.model.files.shape import examine
from equipoise.model.files.text import (
    Language,
    check_size_of,
    is_named_yaml,
    languages_of,
    text_of,
)
from equipoise.model.files.tree import Tree, without
from equipoise.model.files.yaml_tree import read_yaml
from equipoise.model.inventory import Inventory
from equipoise.model.plan import Plan
from equipoise.model.problem import Problem
from equipoise.model.resource import Resource
from equipoise.model.story.scenario import Scenario
from equipoise.model.upgrade.campaign import Campaign
from equipoise.model.upgrade.catalog import Catalog
from equipoise.model.upgrade.request import Request

F = TypeVar("F", Inventory, Plan, Scenario, CaseFile, Amendment, Problem, Campaign, Request)
Further = Callable[[Any, Findings], None]


Also = Callable[[Inventory, Findings], None]
"""A further check of the inventory in a file, by somebody who knows more than the model."""


def parse_inventory(content: bytes, source: str, also: Also | None = None) -> Inventory:
    """Read an inventory; ``source`` is what messages call the file."""
    return _parse(content, source, Inventory, _inventory_check(also))


def parse_plan(content: bytes, source: str) -> Plan:
    """Read a plan; ``source`` is what messages call the file."""
    return _parse(content, source, Plan)


def parse_scenario(content: bytes, source: str, also: Also | None = None) -> Scenario:
    """Read a scenario; ``source`` is what messages call the file."""
    return _parse(content, source, Scenario, _inventory_check(also))


def parse_case(content: bytes, source: str, also: Also | None = None) -> CaseFile:
    """Read a case; ``source`` is what messages call the file."""
    return _parse(content, source, CaseFile, _inventory_check(also))


def parse_campaign(content: bytes, source: str, also: Also | None = None) -> Campaign:
    """Read an upgrade campaign; ``source`` is what messages call the file."""
    return _parse(content, source, Campaign, _inventory_check(also))


def parse_request(
    content: bytes, source: str, resources: Mapping[str, Resource], catalog: Catalog
) -> Request:
    """Read a request to a campaign under way, with these resources and this catalog."""

    def further(value: Any, found: Findings) -> None:
        check_request(value, (), Grounds.of(resources, catalog, [value]), found)

    return _parse(content, source, Request, further)


def parse_problem(content: bytes, source: str, also: Also | None = None) -> Problem:
    """Read a problem, or an inventory as the problem in which nothing is wished for."""
    further = _inventory_check(also)
    languages, text = _opened(content, source)
    with undisturbed():
        value: Problem | Inventory | None = None
        if languages[0] is Language.JSON:
            value = _decode_json(content, text, Problem, further)
            value = value or _decode_json(content, text, Inventory, further)
        if value is None:
            tree = _read(text, source, languages)
            if _is_inventory(tree.root):
                value = _judge(tree, source, Inventory, further)
            else:
                value = _judge(tree, source, Problem, further)
        return with_demands(value if isinstance(value, Problem) else Problem(cluster=value))


def parse_story(
    content: bytes, source: str, also: Also | None = None
) -> tuple[Scenario | Inventory, LineOf]:
    """Read a scenario, or an inventory alone; and a way to ask for the line of anything in it."""
    languages, text = _opened(content, source)
    further = _inventory_check(also)
    with undisturbed():
        tree = _read(text, source, languages)
        if isinstance(tree.root, dict) and "cluster" not in tree.root and "hosts" in tree.root:
            return with_demands(_judge(tree, source, Inventory, further)), tree.line_of
        return with_demands(_judge(tree, source, Scenario, further)), tree.line_of


def _is_inventory(root: Any) -> bool:
    """Whether a document lists hosts or VMs, where a problem maps them to what they should be."""
    if not isinstance(root, dict) or "cluster" in root:
        return False
    return any(isinstance(root.get(key), list) for key in ("hosts", "vms"))


def parse_amendment(
    content: bytes, source: str, base: Inventory, also: Also | None = None
) -> Amendment:
    """Read an amendment of a cluster; ``source`` is what messages call the file."""

    def check_whole(inventory: Inventory, found: Findings) -> None:
        check(inventory, found, {})
        if also is not None and not found:
            also(inventory, found)

    def further(value: Any, found: Findings) -> None:
        check_amendment(value, base, check_whole, found)

    return _parse(content, source, Amendment, further)


def _inventory_check(also: Also | None) -> Further:
    def check_further(value: Any, found: Findings) -> None:
        if also is None:
            return
        if isinstance(value, Scenario):
            also(ruled_cluster(value), found.below("cluster"))
        elif isinstance(value, CaseFile | Problem | Campaign):
            also(value.cluster, found.below("cluster"))
        else:
            also(value, found)

    return check_further


def _nothing_further(_value: Any, _found: Findings) -> None:
    """Most forms are known to the model alone."""


def _parse(content: bytes, source: str, form: type[F], further: Further = _nothing_further) -> F:
    languages, text = _opened(content, source)
    with undisturbed():
        value = None
        if languages[0] is Language.JSON:
            value = _decode_json(content, text, form, further)
        if value is None:
            value = _judge(_read(text, source, languages), source, form, further)
        return with_demands(value)


def _opened(content: bytes, source: str) -> tuple[tuple[Language, ...], str]:
    """The languages that a file may be in, and its text."""
    languages = languages_of(content, source)
    check_size_of(len(content), source, languages[0])
    return languages, text_of(content, source)


def _decode_json(content: bytes, text: str, form: type[F], further: Further) -> F | None:
    """Decode a file in which nothing at all is wrong, and quickly; else ``None``."""
    try:
        value = _decoder(form).decode(content)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    found = Findings()
    with suppress(Enough):
        further(value, found)
    return None if problems_of(value) or found or has_doubled_keys(text) else value


@cache
def _decoder(form: type[F]) -> msgspec.json.Decoder[F]:
    return msgspec.json.Decoder(form)


def _read(text: str, source: str, languages: tuple[Language, ...]) -> Tree:
    if languages[0] is Language.YAML:
        return read_yaml(text, source)
    try:
        return read_json(text, source)
    except InvalidInput as error:
        if languages[-1] is Language.JSON:
            raise
        refusal = error
    try:
        check_size_of(len(text), source, Language.YAML)
        return read_yaml(text, source)
    except InvalidInput:
        if is_named_yaml(source):
            raise
        raise refusal from None


def _judge(tree: Tree, source: str, form: type[F], further: Further) -> F:
    """Make the value of a tree, or say all that is wrong with it."""
    found = Findings(tree.findings)
    value = None if found else _convert(tree.root, form)
    with suppress(Enough):
        if value is not None:
            check(value, found, {})
            if not found:  # a rule is only read in a cluster that makes sense
                further(value, found)
        else:
            examine(tree.root, form, found)
            _check_rest(tree, form, found)
    if not found:
        assert value is not None, "msgspec refused what the examination let pass"
        return value
    raise InvalidInput(source, found.problems(tree.line_of))


def _check_rest(tree: Tree, form: type[F], found: Findings) -> None:
    """Check what can be read without the elements that cannot, if that is not misleading."""
    rest = without(tree, found.paths)
    value = None if rest is None else _convert(rest[0], form)
    if rest is not None and value is not None:
        check(value, found, rest[1])


def _convert(root: Any, form: type[F]) -> F | None:
    try:
        return msgspec.convert(root, form)
    except msgspec.ValidationError:
        return None
