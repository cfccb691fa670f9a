"""The tests of the library notice every change at a single point of a formula.

A changed formula must disagree with the meaning of its constraint somewhere among the worlds of
``test_library_meaning``. Changes that change nothing are listed, each with the reason.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterator
from itertools import chain
from random import Random
from typing import NamedTuple

import pytest

from equipoise.fuzz.schedulers.spec_mutation import well_typed_mutants
from equipoise.spec.library import library
from equipoise.spec.specification import Specification
from meanings import MEANINGS
from property.spec.test_library_meaning import (
    CONSTRAINTS,
    Question,
    answer,
    everything,
    on_moving_worlds,
)

ENOUGH = sys.maxsize if os.environ.get("EQUIPOISE_THOROUGH") else 4_000
"""Number of cases that are judged if only equivalent mutants are left."""

COUNTED = "the members differ, so a set has as many as a list"
COMPARED = "all are compared with all, and equal ones say nothing new"
ITSELF = "it differs for x = y only, and then for VMs that do not run, where runs(y) is false too"
BESIDE = "of VMs that run, those on one host and only those have the same VMs beside them"
OTHERS = "beside a VM that is not one of them, the same ones are counted again, or none"
NEGATIVE = "it is never below 0"
BOTH_WAYS = "each pair is looked at in both orders"

EQUIVALENT: dict[str, dict[str, str]] = {
    "Spread": {"x /= y & runs(x) becomes x /= y <--> runs(x)": ITSELF},
    "Gather": {"host(v) becomes colocated(v)": BESIDE},
    "MaxOnline": {
        "{n . n : ns, hostState(n) = on} becomes [n . n : ns, hostState(n) = on]": COUNTED
    },
    "MostlySpread": {
        "host(v) becomes colocated(v)": BESIDE,
        "{v . v : vs, runs(v)} becomes [v . v : vs, runs(v)]": COUNTED,
        "used = card({v . v : vs, runs(v)}) becomes used >= card({v . v : vs, runs(v)})": (
            "VMs never use more hosts than there are of them"
        ),
    },
    "Failover": {
        "{n . n : hosts, hostState(n) = failed} becomes [n . n : hosts, hostState(n) = failed]": (
            COUNTED
        ),
    },
    "Sync": {
        "end(a) = end(b) becomes end(a) <= end(b)": BOTH_WAYS,
        "end(a) = end(b) becomes end(a) >= end(b)": BOTH_WAYS,
    },
    "NoDelay": {"begin(a) = 0 becomes begin(a) <= 0": NEGATIVE},
    "KeepApart": {"x /= y & runs(x) becomes x /= y <--> runs(x)": ITSELF},
    "PodAntiAffinity": {
        "runs(v) --> not PodAffinity(v, others, key)"
        " becomes runs(v) <--> not PodAffinity(v, others, key)": (
            "PodAffinity is true of a VM that does not run"
        ),
    },
    "TopologySpread": {
        "{card({v . v : vs, runs(v), label(host(v), key) = d}) . d : domains}"
        " becomes [card({v . v : vs, runs(v), label(host(v), key) = d}) . d : domains]": COMPARED,
        "{v . v : vs, runs(v), label(host(v), key) = d}"
        " becomes [v . v : vs, runs(v), label(host(v), key) = d]": COUNTED,
        "label(host(v), key) = d becomes label(host(v), key) /= d": (
            "those elsewhere are all less those here, so the differences are the same"
        ),
    },
    "NodePorts": {"label(x, key) becomes label(y, key)": BOTH_WAYS},
    "MaxPerHost": {
        "v : vs becomes v : vms": OTHERS,
    },
    "MaxSkew": {
        "{card(running(n) /\\ vs) . n : hosts, hostState(n) = on}"
        " becomes [card(running(n) /\\ vs) . n : hosts, hostState(n) = on]": COMPARED,
    },
    "MaxConcurrent": {
        "{a . a : underway(n), kind(a) = kind} becomes [a . a : underway(n), kind(a) = kind]": (
            COUNTED
        ),
    },
    "MaxDisturbed": {
        "{v . v : vs, underway(v) /= {}} becomes [v . v : vs, underway(v) /= {}]": COUNTED
    },
    "SpreadOver": {
        "x /= y & runs(x) becomes x /= y <--> runs(x)": ITSELF,
        "host(x) becomes host(y)": BOTH_WAYS,
    },
    "MaxMoves": {
        '{a . a : actions(v), kind(a) = "migrate"}'
        ' becomes [a . a : actions(v), kind(a) = "migrate"]': COUNTED,
    },
    "TenantMax": {
        "{v . v : vms, tenant(v) = name, runs(v)}"
        " becomes [v . v : vms, tenant(v) = name, runs(v)]": COUNTED,
    },
    "ServerGroupAffinity": {"host(v) becomes colocated(v)": BESIDE},
    "ServerGroupAntiAffinity": {
        "v : vs becomes v : vms": OTHERS,
    },
    "AggregateNumInstances": {
        'capa(n, "instances") = 0 becomes capa(n, "instances") <= 0': NEGATIVE
    },
    "IoOps": {
        '{a . a : underway(n), kind(a) : {"boot", "migrate"}}'
        ' becomes [a . a : underway(n), kind(a) : {"boot", "migrate"}]': COUNTED,
    },
    "IoOpsAsCoded": {
        '{a . a : underway(n), kind(a) = "boot"}'
        ' becomes [a . a : underway(n), kind(a) = "boot"]': COUNTED,
    },
}
"""The equivalent mutants of each constraint, with the reason."""


class Verdict(NamedTuple):
    """The mutants of a constraint that were made and that survive."""

    made: int
    unnoticed: frozenset[str]
    """The mutants that have the same value everywhere."""


def questions(specification: Specification, name: str) -> Iterator[Question]:
    """Yield the cases of ``test_library_meaning``, the most telling ones first."""
    moving = on_moving_worlds(specification, name, Random(f"{name}, changed"))
    return chain(moving, everything(specification, name))


def judged(specification: Specification, name: str, known: Collection[str]) -> Verdict:
    """Judge all mutants until only the known equivalent ones are left."""
    alive = list(well_typed_mutants(specification, name))
    made = len(alive)
    for number, (case, values, fitting) in enumerate(questions(specification, name)):
        if all(mutant.description in known for mutant in alive) and (not alive or number >= ENOUGH):
            break
        meant = MEANINGS[name](case.world, values)
        alive = [
            mutant
            for mutant in alive
            if answer(mutant.specification, name, fitting, case.context) == meant
        ]
    return Verdict(made, frozenset(mutant.description for mutant in alive))


@pytest.mark.parametrize(("origin", "name"), CONSTRAINTS)
def test_every_change_to_a_constraint_of_the_library_is_noticed(origin: str, name: str) -> None:
    known = EQUIVALENT.get(name, {})
    verdict = judged(library()[origin], name, known)
    unnoticed = sorted(verdict.unnoticed - known.keys())
    assert not unnoticed, "find a world or arguments that tell it, or say why there is none"
    noticed = sorted(known.keys() - verdict.unnoticed)
    assert not noticed, "it is noticed, or is not made any more: take it off the list"


def test_equivalent_mutants_are_listed_for_existing_constraints() -> None:
    assert EQUIVALENT.keys() <= {name for _, name in CONSTRAINTS}
