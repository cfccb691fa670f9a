"""Water-filling: the two figures of the DRS paper, and edge cases on arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from equipoise.capacity.entitlement import KERNELS
from equipoise.capacity.waterfill import (
    CLAIM_DTYPE,
    NO_INDEX,
    TREE_DTYPE,
    Records,
    divide_down,
    sum_demands,
)

NO_LIMIT = float("inf")


class Node(NamedTuple):
    """A pool or, with a want, a VM."""

    name: str
    parent: str | None = None
    want: float | None = None
    shares: float = 1000
    floor: float = 0
    limit: float = NO_LIMIT


def planted(nodes: list[Node]) -> tuple[Records, Records]:
    """Nodes as arrays, in their order: parents before children, pools before VMs."""
    tree, claims = np.zeros(len(nodes), dtype=TREE_DTYPE), np.zeros(len(nodes), dtype=CLAIM_DTYPE)
    tree["parent"] = tree["child"] = tree["sibling"] = tree["vm"] = NO_INDEX
    row_of = {node.name: row for row, node in enumerate(nodes)}
    for row, node in reversed(list(enumerate(nodes))):
        claims[row] = (node.floor, node.limit, node.shares, node.want or 0, 0, 0)
        if node.want is not None:
            tree["vm"][row] = row
        if node.parent is not None:
            parent = row_of[node.parent]
            tree["parent"][row], tree["sibling"][row] = parent, tree["child"][parent]
            tree["child"][parent] = row
    return tree, claims


def divided(amount: float, nodes: list[Node], *, counts_reserved: bool = True) -> dict[str, float]:
    tree, claims = planted(nodes)
    sum_demands(tree, claims, 0, len(nodes), counts_reserved)
    divide_down(tree, claims, 0, len(nodes), amount)
    names = [node.name for node in nodes]
    return dict(zip(names, claims["got"].round(6).tolist(), strict=True))


def test_figure_2_divides_ten_gigahertz_by_shares_and_then_by_demand() -> None:
    """8 and 2 for the pools; of the 8, demands of 3 and 7 get 3 and 5 for equal shares."""
    cluster = [
        Node("root"),
        Node("RP1", "root", shares=800, floor=3),
        Node("RP2", "root", shares=200, floor=2),
        Node("VM1", "RP1", want=3),
        Node("VM2", "RP1", want=7),
        Node("VM3", "RP2", want=5),
    ]
    got = divided(10, cluster)
    assert (got["RP1"], got["RP2"]) == (8, 2)
    assert (got["VM1"], got["VM2"], got["VM3"]) == (3, 5, 2)


def organisation(sales: tuple[float, float], it: float) -> dict[str, float]:
    """Figure 1: 12 GHz for the business and its testing; all but those named ask for plenty."""
    org = [
        Node("org"),
        Node("business", "org", shares=2000),
        Node("testing", "org", shares=1000),
        Node("it", "business"),
        Node("sales", "business"),
        Node("it-1", "it", want=it),
        Node("sales-1", "sales", want=sales[0]),
        Node("sales-2", "sales", want=sales[1]),
        Node("testing-1", "testing", want=99),
    ]
    got = divided(12, org)
    vms = [node.name for node in org if node.want is not None]
    return {name: got[name] for name in vms}


def test_figure_1_divides_by_shares_if_demand_is_unlimited() -> None:
    assert organisation((99, 99), 99) == {"it-1": 4, "sales-1": 2, "sales-2": 2, "testing-1": 4}


def test_unused_capacity_of_a_vm_stays_in_its_pool() -> None:
    assert organisation((0.5, 99), 99) == {
        "it-1": 4,
        "sales-1": 0.5,
        "sales-2": 3.5,
        "testing-1": 4,
    }


def test_unused_capacity_of_a_pool_goes_to_its_sibling() -> None:
    assert organisation((0.5, 1), 99) == {
        "it-1": 6.5,
        "sales-1": 0.5,
        "sales-2": 1,
        "testing-1": 4,
    }


def test_unused_capacity_of_a_branch_goes_to_the_other_branch() -> None:
    assert organisation((0.5, 1), 5) == {
        "it-1": 5,
        "sales-1": 0.5,
        "sales-2": 1,
        "testing-1": 5.5,
    }


def test_a_pool_limit_holds_although_capacity_is_free() -> None:
    limited = [Node("root"), Node("p", "root", limit=2), Node("v", "p", want=5)]
    assert divided(100, limited)["v"] == 2


def test_an_entitlement_includes_a_reservation_without_demand() -> None:
    reserved = [Node("root"), Node("a", "root", want=1, floor=4), Node("b", "root", want=9)]
    entitled = divided(8, reserved)
    assert (entitled["a"], entitled["b"]) == (4, 4)
    used = divided(8, reserved, counts_reserved=False)
    assert (used["a"], used["b"]) == (1, 7)


def test_floors_that_do_not_fit_get_the_same_fraction() -> None:
    many = [Node("root"), Node("a", "root", want=6, floor=6), Node("b", "root", want=9, floor=3)]
    got = divided(3, many)
    assert (got["a"], got["b"]) == (2, 1)


def test_a_reservation_holds_in_pools_that_reserve_less() -> None:
    nested = [
        Node("root"),
        Node("outer", "root", shares=1, floor=1),
        Node("inner", "outer", shares=1),
        Node("a", "inner", want=6, shares=1, floor=4),
        Node("b", "inner", want=9, shares=9999),
        Node("c", "outer", want=9, shares=9999, floor=1),
        Node("d", "root", want=9, shares=9999, floor=2),
    ]
    got = divided(7, nested)
    assert [got[name] for name in "abcd"] == [4, 0, 1, 2]
    got = divided(3.5, nested)
    assert [got[name] for name in "abcd"] == [2, 0, 0.5, 1], "all the same part, if it is too much"


def test_an_unused_reservation_goes_to_others_if_only_use_counts() -> None:
    idle = [
        Node("root"),
        Node("p", "root"),
        Node("a", "p", want=1, floor=6),
        Node("b", "root", want=9),
    ]
    got = divided(8, idle, counts_reserved=False)
    assert (got["a"], got["b"]) == (1, 7)


def test_a_pool_guarantees_no_more_than_its_limit() -> None:
    tight = [
        Node("root"),
        Node("p", "root", limit=3),
        Node("a", "p", want=9, floor=4),
        Node("b", "p", want=9, floor=2),
        Node("c", "root", want=9),
    ]
    got = divided(5, tight)
    assert [got[name] for name in "abc"] == [2, 1, 2]


def test_without_demand_no_node_gets_anything() -> None:
    assert divided(10, [Node("root")]) == {"root": 0}
    assert divided(0, [Node("root"), Node("v", "root", want=5)])["v"] == 0


@pytest.mark.parametrize("fast", [False, True])
def test_one_share_beside_ten_million_gets_its_part(fast: bool) -> None:
    """What is left of the shares when the others have enough must be exactly what is left."""
    nodes = [
        Node("root"),
        Node("a", "root", want=1, shares=1000 / 3),
        Node("b", "root", want=3, shares=1e7),
        Node("c", "root", want=100, shares=1),
        Node("d", "root", want=0, shares=1e7),
        Node("e", "root", want=0, shares=1000 / 3),
    ]
    tree, claims = planted(nodes)
    kernels = KERNELS.at(fast=fast)
    kernels.sum_demands(tree, claims, 0, len(nodes), False)
    kernels.divide_down(tree, claims, 0, len(nodes), 36.373630259127324)
    assert claims["got"][1:].tolist() == pytest.approx([1, 3, 32.373630259127324, 0, 0])


def test_the_smallest_float_terminates() -> None:
    two = [Node("root"), Node("a", "root", want=1, shares=351), Node("b", "root", want=32)]
    assert divided(5e-324, two)["a"] == 0
