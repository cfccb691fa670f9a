"""Who has words for the network of a trial, and what becomes of it in BtrPlace's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from btrplace_trials import a_demand, a_trial, do, move, stop
from builders import a_host, a_vm
from equipoise.fuzz.schedulers import Unsupported
from equipoise.fuzz.targets import nova_question, nova_requests, proxlb_question, watcher_question
from equipoise.fuzz.targets.btrplace_question import encode
from equipoise.fuzz.trial import Trial
from equipoise.model.plan import Step
from equipoise.model.problem import Network
from move_trials import asked, guest, node
from nova_trials import a_demand as a_nova_demand
from nova_trials import coming
from small_networks import a_link, a_switch, star

NOTHING = a_demand("Spread", vs=[])
UP = coming(a_nova_demand("ComputeUp"))
FREE = asked("Spread", [node("h"), node("g")], [guest("a", "h")], vs=["a"])


@pytest.mark.parametrize(
    ("ask", "trial"),
    [
        (lambda trial: proxlb_question.encode(trial, "greedy", "tags"), FREE),
        (
            lambda trial: watcher_question.encode(trial, "basic"),
            asked("Running", [node("h")], [guest("a", "h")], v="a"),
        ),
        (nova_question.encode, UP),
        (nova_requests.encode_requests, UP),
    ],
    ids=["proxlb", "watcher", "nova", "nova-pipeline"],
)
def test_who_has_no_words_for_a_network_says_so(ask: Callable[[Trial], Any], trial: Trial) -> None:
    with pytest.raises(Unsupported, match="no words for the network"):
        ask(replace(trial, network=star("h", "g")))


def wired(network: Network, *steps: Step) -> Trial:
    hosts = [a_host("h1"), a_host("h2")]
    trial = a_trial(NOTHING, *steps, hosts=hosts, vms=[a_vm("x", "h1"), a_vm("y", "h2")])
    return replace(trial, network=network)


def test_btrplace_is_told_of_links_and_of_what_it_copies_in_the_time_that_is_given() -> None:
    network = star("h1", "h2", switch=a_switch("sw", 9000), h1=4500)
    told = encode(wired(network.but(), do(move("x", "h1", "h2"), 0, 9)), repair=False)
    (view,) = (one for one in told["origin"]["views"] if one["id"] == "net")
    assert [one["capacity"] for one in view["links"]] == [4500, 1000]
    assert [one["capacity"] for one in view["switches"]] == [9000]
    assert view["routing"] == {"type": "default"}
    vms = told["origin"]["attributes"]["vms"]
    assert (vms["0"]["memUsed"], vms["0"]["hotDirtySize"]) == (1000, 0.0)
    assert vms["1"]["memUsed"] == 1024


def test_btrplace_may_know_that_a_link_carries_too_much() -> None:
    steps = (do(move("x", "h1", "h2"), 0, 9), do(move("y", "h2", "h1"), 0, 9))
    narrow = star("h1", "h2", switch=a_switch("sw", 1500))
    trial = wired(narrow, *steps)
    assert [one.constraint for one in trial.objections] == ["network"]
    assert encode(trial, repair=False)["actions"]


TWINS = Network(
    switches=(a_switch("a"), a_switch("b")),
    links=(
        a_link("l1", "a", host="h1"),
        a_link("l2", "b", host="h2"),
        a_link("t1", "a", to="b"),
        a_link("t2", "a", to="b"),
    ),
)


@pytest.mark.parametrize(
    ("trial", "why"),
    [
        (wired(star("h1", "h2"), do(move("x", "h1", "h2"), 0, 1)), "are copied"),
        (wired(TWINS, do(stop("x", "h1"))), "several ways"),
        (wired(star("h1", "h2", h1=9), do(stop("x", "h1"))), "no whole MiB"),
    ],
)
def test_what_btrplace_has_no_words_for_is_told(trial: Trial, why: str) -> None:
    with pytest.raises(Unsupported, match=why):
        encode(trial, repair=False)
