from __future__ import annotations

import pytest

from equipoise.spec.check import Checked, check
from equipoise.spec.language.parse import parse
from equipoise.spec.language.place import Source

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


def checked(text: str) -> Checked:
    return check(parse(text, "x.spec"), Source("x.spec", text))


def test_the_papers_listing_2_is_right_as_printed() -> None:
    assert checked(LISTING_2)[:2] == ((), ())


def test_the_papers_listing_3_is_right_but_for_three_which_are_explained() -> None:
    problems, warnings, _ = checked(LISTING_3)
    assert [(one.line, one.cure) for one in problems] == [
        (3, "a set counts equal numbers once; write [ ... ] to add them all"),
        (19, "write [ ... ] instead of { ... }: a list keeps both"),
        (35, "of a host, ask hosted(n) or running(n)"),
        (35, "range over a set or list"),
    ]
    assert [one.what for one in warnings] == ["MostlySpread never uses its argument vs"]


@pytest.mark.parametrize(
    ("text", "what", "cure"),
    [
        ("a ::= vsm = vms", "vsm is not known here", "did you mean vms?"),
        ("a ::= card(vms)", "this is int, not bool", "a constraint must be true or false"),
        ("a ::= crad(vms) = 1", "there is no function crad", "did you mean card?"),
        ("a ::= card(vms, vms) = 1", "card takes 1 arguments, not 2", "it is card(collection<'t>)"),
        ("a ::= vms = hosts", "set<vm> and set<host> are never the same", "compare like kinds"),
        ("a ::= running = on", "vm state and host state are never the same", "compare like kinds"),
        ("a ::= vms < hosts", "< wants int, and this is set<vm>", ""),
        ("a ::= !(v : vms) v", "this is vm, not bool", "what is quantified is true or false"),
        ("a ::= !(v : 3) true", "int is not a collection", "range over a set or list"),
        ("a ::= not 3", "this is int, not bool", "only true or false has an opposite"),
        ("a ::= {1, true} = {1}", "this is bool among int", "a set has members of one kind"),
        ("a ::= vms[0] = vms[0]", "set<vm> has no positions", "only lists have"),
        ("a ::= ready : ready", "vm state has no members", "write a set on the right"),
        ("a(v : vms, v : vms) ::= v = v", "v is given twice", "rename one"),
        ("a ::= true\na ::= true", "a is declared twice", "give one another name"),
        ("a ::= b\nb ::= a", "b is not known here", ""),
        ("a ::= b()\nb ::= a()", "a is defined by itself", "break the circle"),
        ("b(v : vms) ::= vmState(v) = running\na ::= b(3)", "b wants vm, and this is int", ""),
        ("a ::= running", "this is vm state, not bool", "a constraint must be true or false"),
        ("a ::= host = host", "host is not known here", "host(...) is a function"),
        (
            "a ::= vms + hosts = vms",
            "set<vm> and set<host> are never the same",
            "compare like kinds",
        ),
    ],
)
def test_what_cannot_mean_anything_is_explained(text: str, what: str, cure: str) -> None:
    problems = checked(text).problems
    assert problems
    assert (problems[0].what, problems[0].cure) == (what, cure)


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
def test_what_is_right_passes_without_a_word(text: str) -> None:
    assert checked(text)[:2] == ((), ())


def test_all_mistakes_are_told_not_the_first() -> None:
    assert len(checked("a ::= x & y & card(z) = 1").problems) == 3
