"""Wake-on-LAN: the packet on the wire, and what a port tells about a host."""

from __future__ import annotations

import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers import free_port
from equipoise.hosts.wake.lan import (
    COPIES,
    Answer,
    Checked,
    Endpoint,
    WakeOnLan,
    endpoint,
    mac_bytes,
    magic_packet,
    probe,
)
from equipoise.hosts.wake.port import Accepted, Cause, Power, Refusal, Seen

MAC = bytes.fromhex("525400123456")
MACS = st.binary(min_size=6, max_size=6)


def spellings(mac: bytes) -> list[str]:
    """Every usual way to write an address."""
    digits = mac.hex()
    plain = [mac.hex(":"), mac.hex("-"), digits, ".".join((digits[:4], digits[4:8], digits[8:]))]
    return plain + [one.upper() for one in plain]


def a_host(port: int, check: int) -> WakeOnLan:
    return WakeOnLan(mac=MAC, broadcast="127.0.0.1", port=port, check=Endpoint("127.0.0.1", check))


@given(MACS)
def test_a_packet_is_six_times_ff_and_sixteen_times_the_address(mac: bytes) -> None:
    packet = magic_packet(mac)
    assert len(packet) == 102
    assert packet[:6] == b"\xff" * 6
    assert [packet[at : at + 6] for at in range(6, 102, 6)] == [mac] * 16


@given(MACS)
def test_every_spelling_of_an_address_is_the_same_address(mac: bytes) -> None:
    assert {mac_bytes(one) for one in spellings(mac)} == {mac}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "52:54:00:12:34",
        "52:54-00:12:34:56",
        "52:54:00:12:34:5g",
        "52:54:00:12:34:56\n",
        "5254.0012",
        "52540.01234.56",
        "5254001234567",
        "\uff15\uff12:54:00:12:34:56",
    ],
)
def test_what_is_no_address_is_none(text: str) -> None:
    assert mac_bytes(text) is None


@given(st.text(max_size=20))
def test_no_text_upsets_the_readers(text: str) -> None:
    mac, place = mac_bytes(text), endpoint(text)
    assert mac is None or len(mac) == 6
    assert place is None or endpoint(str(place)) == place


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("h3:22", ("h3", 22)),
        ("10.0.0.1:8006", ("10.0.0.1", 8006)),
        ("[fe80::1]:22", ("fe80::1", 22)),
        ("fe80::1:22", None),
        ("h3", None),
        (":22", None),
        ("h3:0", None),
        ("h3:65536", None),
        ("h3:²", None),
        ("h 3:22", None),
        ("[]:22", None),
    ],
)
def test_an_endpoint_is_a_host_and_a_port(text: str, expected: tuple[str, int] | None) -> None:
    assert endpoint(text) == expected


def test_the_packet_arrives() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as card:
        card.bind(("127.0.0.1", 0))
        card.settimeout(5)
        asked = a_host(card.getsockname()[1], free_port()).wake()
        heard = [card.recv(2000) for _ in range(COPIES)]
    assert isinstance(asked, Accepted)
    assert heard == [magic_packet(MAC)] * COPIES


def test_a_packet_that_cannot_be_sent_is_a_refusal() -> None:
    lost = WakeOnLan(mac=MAC, broadcast="no.such.invalid", port=9, check=Endpoint("h", 22))
    asked = lost.wake()
    assert isinstance(asked, Refusal)
    assert asked.cause is Cause.UNREACHABLE
    assert "no.such.invalid" in asked.sentence


def test_there_is_no_packet_for_sleeping() -> None:
    asked = a_host(9, 22).sleep()
    assert isinstance(asked, Refusal)
    assert asked.cause is Cause.UNSUPPORTED


def test_a_port_that_answers_is_a_host_that_is_on() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert a_host(9, port).state() == Seen(by="wol", power=Power.ON)
    closed = a_host(9, port).state()
    assert isinstance(closed, Seen)
    assert closed.power is Power.CHANGING, "something answered, so the machine has power"


def test_a_port_that_is_silent_is_a_host_that_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    def drop(*_address: object, **_options: object) -> socket.socket:
        raise TimeoutError("timed out")

    monkeypatch.setattr(socket, "create_connection", drop)
    assert probe(Endpoint("h", 22)) is Answer.SILENT
    seen = a_host(9, 22).state()
    assert isinstance(seen, Seen)
    assert seen.power is Power.OFF


def test_an_unknown_name_tells_nothing_about_a_host() -> None:
    nowhere = WakeOnLan(
        mac=MAC, broadcast="127.0.0.1", port=9, check=Endpoint("no.such.invalid", 22)
    )
    seen = nowhere.state()
    assert isinstance(seen, Refusal)
    assert "the name no.such.invalid is not known" in seen.sentence


def test_power_is_not_enough_where_a_port_is_to_answer() -> None:
    class Powered:
        def wake(self) -> Accepted:
            return Accepted(by="redfish")

        def sleep(self) -> Accepted:
            return Accepted(by="redfish")

        def state(self) -> Seen:
            return Seen(by="redfish", power=Power.ON)

    with socket.create_server(("127.0.0.1", 0)) as server:
        host = Checked(inner=Powered(), check=Endpoint(*server.getsockname()))
        assert host.state() == Seen(by="redfish", power=Power.ON)
    booting = host.state()
    assert isinstance(booting, Seen)
    assert booting.power is Power.CHANGING
    assert "it has power, but" in booting.note
    assert host.wake() == host.sleep() == Accepted(by="redfish")
