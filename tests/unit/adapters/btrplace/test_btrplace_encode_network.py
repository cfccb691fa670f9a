"""Who has words for the network of a trial, and what becomes of it in BtrPlace's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from balancer_trials import a_balancer_trial, guest, node
from btrplace_trials import a_demand, a_trial, do, move, stop
from builders import a_host, a_vm
from equipoise.adapters.btrplace.encode import encode_question
from equipoise.adapters.nova import encode as nova_encode
from equipoise.adapters.nova import encode as nova_encode_requests
from equipoise.adapters.proxlb import encode as proxlb_encode
from equipoise.adapters.watcher import encode as watcher_encode
from equipoise.fuzz.trial import Trial
from equipoise.model.plan import Step
from equipoise.model.problem import Network
from nova_trials import a_demand as a_nova_demand
from nova_trials import a_placement
from small_networks import a_link, a_switch, star
from unsupported_trials import unsupported

NOTHING = a_demand("Spread", vs=[])
UP = a_placement(a_nova_demand("ComputeUp"))
FREE = a_balancer_trial("Spread", [node("h"), node("g")], [guest("a", "h")], vs=["a"])


@pytest.mark.parametrize(
    ("ask", "trial"),
    [
        (lambda trial: proxlb_encode.encode_question(trial, "greedy", "tags"), FREE),
        (
            lambda trial: watcher_encode.encode_question(trial, "basic"),
            a_balancer_trial("Running", [node("h")], [guest("a", "h")], v="a"),
        ),
        (nova_encode.encode_questions, UP),
        (nova_encode_requests.encode_requests, UP),
    ],
    ids=["proxlb", "watcher", "nova", "nova-pipeline"],
)
def test_other_schedulers_reject_networks(ask: Callable[[Trial], Any], trial: Trial) -> None:
    with unsupported("unsupported-network"):
        ask(replace(trial, network=star("h", "g")))


def wired(network: Network, *steps: Step) -> Trial:
    hosts = [a_host("h1"), a_host("h2")]
    trial = a_trial(NOTHING, *steps, hosts=hosts, vms=[a_vm("x", "h1"), a_vm("y", "h2")])
    return replace(trial, network=network)


def test_the_network_has_links_and_the_memory_copied_in_time() -> None:
    network = star("h1", "h2", switch=a_switch("sw", 9000), h1=4500)
    told = encode_question(wired(network.but(), do(move("x", "h1", "h2"), 0, 9)), repair=False)
    (view,) = (view for view in told["origin"]["views"] if view["id"] == "net")
    assert [link["capacity"] for link in view["links"]] == [4500, 1000]
    assert [switch["capacity"] for switch in view["switches"]] == [9000]
    assert view["routing"] == {"type": "default"}
    vms = told["origin"]["attributes"]["vms"]
    assert (vms["0"]["memUsed"], vms["0"]["hotDirtySize"]) == (1000, 0.0)
    assert vms["1"]["memUsed"] == 1024


def test_btrplace_knows_overloaded_links() -> None:
    steps = (do(move("x", "h1", "h2"), 0, 9), do(move("y", "h2", "h1"), 0, 9))
    narrow = star("h1", "h2", switch=a_switch("sw", 1500))
    trial = wired(narrow, *steps)
    assert [objection.constraint for objection in trial.objections] == ["network"]
    assert encode_question(trial, repair=False)["actions"]


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
    ("trial", "code", "detail"),
    [
        (
            wired(star("h1", "h2"), do(move("x", "h1", "h2"), 0, 1)),
            "unsupported-plan",
            "copy 119 MiB",
        ),
        (wired(TWINS, do(stop("x", "h1"))), "unsupported-network", "several paths"),
        (wired(star("h1", "h2", h1=9), do(stop("x", "h1"))), "unsupported-network", "10 Mbit/s"),
    ],
)
def test_a_network_that_btrplace_cannot_express_is_rejected(
    trial: Trial, code: str, detail: str
) -> None:
    with unsupported(code, detail):
        encode_question(trial, repair=False)
