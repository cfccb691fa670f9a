"""Lists in many cases at once: positions inside a list, and positions beyond its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import permutations, product
from typing import Any

import pytest

from batch_verdicts import judge_cases
from builders import a_cluster, a_host, a_vm
from equipoise.errors import InvalidInput
from equipoise.spec.requirement import Case, Requirement, judge_case
from equipoise.spec.specification import Specification

Arguments = Mapping[str, Any]
TEXT = """
Own(vs : lists(vms), ws : lists(vms)) discrete ::= !(i : range(vs)) runs(vs[i])
Pairs(vs : lists(vms), ws : lists(vms)) discrete ::= !(i, j : range(vs)) i < j --> vs[i] /= vs[j]
Foreign(vs : lists(vms), ws : lists(vms)) discrete ::= !(i : range(ws)) runs(vs[i])
Hidden(vs : lists(vms), ws : lists(vms)) discrete ::=
    !(i : range(vs)) !(i : range(ws)) runs(vs[i])
After(vs : lists(vms), ws : lists(vms)) discrete ::=
    (!(i : range(vs)) runs(vs[i])) & !(i : range(ws)) runs(vs[i])
"""
HOME = Specification.read(TEXT)
CLUSTER = a_cluster(a_host("h"), vms=[a_vm("v", "h"), a_vm("w", "h"), a_vm("x")])
LISTS = [tuple(some) for size in range(3) for some in permutations(CLUSTER.vms, size)]


ARGUMENTS = [{"vs": vs, "ws": ws} for vs, ws in product(LISTS, LISTS)]


@pytest.mark.parametrize("name", sorted(HOME.constraints))
def test_a_position_beyond_the_end_differs_from_one_inside(name: str) -> None:
    alone = [_alone(name, arguments) for arguments in ARGUMENTS]
    together = [_together(name, [arguments]) for arguments in ARGUMENTS]
    assert together == [[answer] for answer in alone]
    pairs = zip(ARGUMENTS, alone, strict=True)
    clear = [(arguments, answer) for arguments, answer in pairs if answer is not None]
    answers = _together(name, [arguments for arguments, _ in clear])
    assert answers == [answer for _, answer in clear]
    assert set(alone) == ANSWERS[name]


ANSWERS = {
    "Own": {True, False},
    "Pairs": {True},
    "Foreign": {True, False, None},
    "Hidden": {True, False, None},
    "After": {True, False, None},
}
"""The possible answers: it holds, it does not hold, or it has no value."""


def _alone(name: str, arguments: Arguments) -> bool | None:
    try:
        return judge_case(Requirement(HOME, name, arguments), Case(CLUSTER)) is None
    except InvalidInput:
        return None


def _together(name: str, arguments: Sequence[Arguments]) -> list[bool | None]:
    cases = [Case(CLUSTER)] * len(arguments)
    try:
        holds = judge_cases(HOME, name, cases, arguments, continuous=False).holds
    except InvalidInput:
        return [None] * len(arguments)
    return [bool(holds_in_case) for holds_in_case in holds]
