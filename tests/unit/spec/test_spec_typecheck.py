from __future__ import annotations

import pytest

from equipoise.spec.language.parse import parse
from equipoise.spec.language.syntax import SourceText
from equipoise.spec.typecheck import TypeCheckResult, check_types

LISTING_2 = """
toRunning ::=
    !(v : vms) vmState(v) = running --> ^vmState(v) : {ready, running, sleeping}
toReady ::=
    !(v : vms) vmState(v) = ready --> ^vmState(v) : {ready, running}
toSleeping ::=
    !(v : vms) vmState(v) = sleeping --> ^vmState(v) : {running, sleeping}
noVMsOnOfflineNodes ::=
    !(n : nodes) nodeState(n) /= online --> card(hosted(n)) = 0
"""

LISTING_3 = """
RunningCapacity(ns <: nodes, nb : int) ::=
    sum({card(running(n)). n : ns}) <= nb

MaxOnline(ns <: nodes, nb : int) ::=
    card({i. i : ns, nodeState(i) = online}) <= nb

Root(v : vms) ::=
    vmState(v) = running --> host(v) = ^host(v)

Lonely(vs <: vms) ::=
    !(i : vs) vmState(i) = running -->
        (hosted(host(i))) - {i} <: vs

Fence(v : vms, ns <: nodes) ::=
    vmState(v) = running --> host(v) : ns

Split(part <<: vms) ::=
    {{host(v).v:p, vmState(v)=running}.p : part}
    <<: nodes

Among(vs <: vms, parts <<: nodes) ::=
    ?(g : parts)
    {host(i). i : vs, vmState(i) = running} <: g

SplitAmong(vs <<: vms, part <<: nodes) ::=
    (!(v : vs) Among(v, part)) & Split(vs)

MostlySpread(vs <: vms, nb : int) ::=
    card({host(v). v : vms, vmState(v) = running})
    >= nb

ShareableResource(id : string) ::=
    !(n : nodes)
    sum([cons(v, id). v : host(n)]) <= capa(n, id)
"""


def checked(text: str) -> TypeCheckResult:
    return check_types(parse(text, "x.spec"), SourceText("x.spec", text))


def test_listing_2_of_the_paper_is_correct_as_printed() -> None:
    assert checked(LISTING_2)[:2] == ((), ())


def test_listing_3_of_the_paper_has_three_errors() -> None:
    problems, warnings, _ = checked(LISTING_3)
    assert [(problem.line, problem.code) for problem in problems] == [
        (3, "type-mismatch"),
        (19, "type-mismatch"),
        (35, "type-mismatch"),
        (35, "type-mismatch"),
    ]
    assert [warning.code for warning in warnings] == ["unused-argument"]


@pytest.mark.parametrize(
    ("text", "code", "column"),
    [
        ("a ::= vsm = vms", "unknown-name", 7),
        ("a ::= card(vms)", "type-mismatch", 7),
        ("a ::= crad(vms) = 1", "unknown-name", 7),
        ("a ::= card(vms, vms) = 1", "type-mismatch", 7),
        ("a ::= vms = hosts", "type-mismatch", 11),
        ("a ::= running = on", "type-mismatch", 15),
        ("a ::= vms < hosts", "type-mismatch", 7),
        ("a ::= !(v : vms) v", "type-mismatch", 18),
        ("a ::= !(v : 3) true", "type-mismatch", 13),
        ("a ::= not 3", "type-mismatch", 11),
        ("a ::= {1, true} = {1}", "type-mismatch", 11),
        ("a ::= vms[0] = vms[0]", "type-mismatch", 7),
        ("a ::= ready : ready", "type-mismatch", 13),
        ("a(v : vms, v : vms) ::= v = v", "declared-twice", 12),
        ("a ::= true\na ::= true", "declared-twice", 1),
        ("a ::= b\nb ::= a", "unknown-name", 7),
        ("a ::= b()\nb ::= a()", "recursive-constraint", 1),
        ("b(v : vms) ::= vmState(v) = running\na ::= b(3)", "type-mismatch", 9),
        ("a ::= running", "type-mismatch", 7),
        ("a ::= host = host", "unknown-name", 7),
        ("a ::= vms + hosts = vms", "type-mismatch", 11),
    ],
)
def test_a_formula_without_a_meaning_is_refused(text: str, code: str, column: int) -> None:
    problems = checked(text).problems
    assert problems
    assert (problems[0].code, problems[0].column) == (code, column)


@pytest.mark.parametrize(
    "text",
    [
        "a ::= {} = vms",
        "a ::= {} <: {}",
        "a(p <<: vms) ::= p = {vms, {}}",
        "a(p <<: vms) ::= !(g : p) g <: vms",
        "a(p <<: vms) ::= [{host(v). v : g}. g : p] <<: hosts",
        "a ::= !(s <: vms) card(s) <= card(vms)",
        "a ::= !(p <<: vms) card(p) <= card(vms)",
        "a ::= !(v : vms) !(v : hosts) hostState(v) = on",
        "a ::= !(v : vms; x : actions(v)) begin(x) < end(x)",
        "a(l : lists(vms)) ::= !(i : range(l)) vmState(l[i]) = running",
        "a ::= let n = card(vms) in n > 0 --> n * 2 / 2 = n",
        'a ::= !(v : vms) label(v, "rack") = label(host(v), "rack")',
        "a ::= always !(v : vms) sometime vmState(v) = running",
        "a ::= $card(vms) = ^card(vms)",
    ],
)
def test_a_correct_formula_has_no_problems(text: str) -> None:
    assert checked(text)[:2] == ((), ())


def test_all_errors_are_reported() -> None:
    assert len(checked("a ::= x & y & card(z) = 1").problems) == 3
