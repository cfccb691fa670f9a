"""The network of a problem in a file: what is read, and what is refused."""

from __future__ import annotations

import pytest

from equipoise.model.files import parse_problem
from unit.model.files.test_files_problem import CLUSTER, complaints

NETWORK = """\
network:
  switches: [{id: s1}, {id: s2, capacity_mbps: 100}]
  links:
    - {id: l1, switch: s1, host: h1, capacity_mbps: 10}
    - {id: l2, switch: s2, host: h2, capacity_mbps: 10}
    - {id: l3, switch: s1, to: s2, capacity_mbps: 10}
"""

LINKS = [
    (
        ("switches: [{id: s1}, ", "switches: [{id: s1}, {id: s1}, "),
        (
            'line 11: network.switches[1].id: the id "s1" is taken by network.switches[0].id '
            "on line 11 (every id once)"
        ),
    ),
    (
        ("id: l3", "id: l1"),
        (
            'line 15: network.links[2].id: the id "l1" is taken by network.links[0].id on line 13 '
            "(every id once)"
        ),
    ),
    (
        ("switch: s2, host", "switch: s3, host"),
        ('line 14: network.links[1].switch: there is no switch "s3" (the switches are: s1, s2)'),
    ),
    (
        ("to: s2", "to: s3"),
        ('line 15: network.links[2].to: there is no switch "s3" (the switches are: s1, s2)'),
    ),
    (
        ("to: s2", "to: s1"),
        'line 15: network.links[2].to: "s1" is linked to itself (name another switch)',
    ),
    (
        ("to: s2, ", ""),
        (
            "line 15: network.links[2].host: is missing, and so is to "
            "(name the host that it leads to, or in to the other switch)"
        ),
    ),
    (
        ("s2, host: h2, ", "s2, host: h2, to: s1, "),
        (
            "line 14: network.links[1].to: a link leads to a host or to another switch, "
            "not to both (leave host or to out)"
        ),
    ),
    (
        ("to: s2", "host: h2"),
        (
            'line 15: network.links[2].host: the host "h2" already has the link network.links[1] '
            "on line 14 (one link for each host)"
        ),
    ),
    (
        ("host: h2", "to: s1"),
        (
            "line 12: network.links: no link leads to h2 "
            "(every host needs one, or there is no network)"
        ),
    ),
    (
        ("    - {id: l3, switch: s1, to: s2, capacity_mbps: 10}\n", ""),
        "line 12: network.links: no way leads from h1 to h2 (link their switches to each other)",
    ),
]


@pytest.mark.parametrize(("change", "told"), LINKS)
def test_a_slip_in_the_network(change: tuple[str, str], told: str) -> None:
    assert NETWORK.count(change[0]) == 1
    assert complaints(NETWORK.replace(*change)) == [told]


def test_who_misspells_a_host_has_not_forgotten_its_link() -> None:
    (told,) = complaints(NETWORK.replace("host: h2", "host: h3"))
    assert told == 'line 14: network.links[1].host: there is no host "h3" (the hosts are: h1, h2)'


def test_a_network_that_is_right() -> None:
    made = parse_problem((CLUSTER + NETWORK).encode(), "f.yaml")
    assert made.network is not None
    assert [link.host or link.to for link in made.network.links] == ["h1", "h2", "s2"]


@pytest.mark.parametrize("network", ["{}", "{switches: [{id: s1}]}"])
def test_a_network_without_links_is_none(network: str) -> None:
    (told,) = complaints(f"network: {network}\n")
    assert told == (
        "line 10: network.links: no link leads to h1, h2 "
        "(every host needs one, or there is no network)"
    )


def test_a_network_with_links_has_no_times_by_the_unit() -> None:
    (told,) = complaints(NETWORK + "durations:\n  migrate: {ms: 5, per_unit_ms: 2}\n")
    assert told == (
        "line 17: durations.migrate.per_unit_ms: there is a network, and its links say how fast "
        "memory is copied (leave it out)"
    )
    boot = "durations:\n  boot: {ms: 5, per_unit_ms: 2}\n"
    assert parse_problem((CLUSTER + NETWORK + boot).encode(), "f.yaml").network is not None


def test_what_cannot_be_read_does_not_make_the_rest_look_wrong() -> None:
    told = complaints(NETWORK.replace("mbps: 100}", "mbps: 0}").replace("id: l2", "id: 2"))
    assert len(told) == 2
    assert told[0].startswith("line 11: network.switches[1].capacity_mbps: 0 is below")
    assert told[1].startswith("line 14: network.links[1].id: found the number 2 where text")
    assert len(complaints(NETWORK.replace("[{id: s1}, {id: s2, capacity_mbps: 100}]", "s1"))) == 1
    assert len(complaints(NETWORK.replace("id: l3", "id: 3"))) == 1
