"""Wake-on-LAN: the packet on the wire, and the power of a host read from its port."""

from __future__ import annotations

import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bmc_servers import free_port
from equipoise.adapters.bmc.host_power import (
    HostPower,
    PowerAccepted,
    PowerReading,
    PowerRefusal,
    PowerRefusalCause,
)
from equipoise.adapters.bmc.wake_on_lan import (
    PACKETS,
    Endpoint,
    PortCheckedControl,
    ProbeAnswer,
    WakeOnLan,
    magic_packet,
    parse_endpoint,
    parse_mac,
    probe,
)

MAC = bytes.fromhex("525400123456")
MACS = st.binary(min_size=6, max_size=6)


def spellings(mac: bytes) -> list[str]:
    """Return every usual notation of an address."""
    digits = mac.hex()
    plain = [mac.hex(":"), mac.hex("-"), digits, ".".join((digits[:4], digits[4:8], digits[8:]))]
    return plain + [text.upper() for text in plain]


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
    assert {parse_mac(text) for text in spellings(mac)} == {mac}


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
def test_an_invalid_mac_address_is_none(text: str) -> None:
    assert parse_mac(text) is None


@given(st.text(max_size=20))
def test_parsers_accept_any_text(text: str) -> None:
    mac, place = parse_mac(text), parse_endpoint(text)
    assert mac is None or len(mac) == 6
    assert place is None or parse_endpoint(str(place)) == place


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
    assert parse_endpoint(text) == expected


def test_the_packet_arrives() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as card:
        card.bind(("127.0.0.1", 0))
        card.settimeout(5)
        answer = a_host(card.getsockname()[1], free_port()).wake()
        received = [card.recv(2000) for _ in range(PACKETS)]
    assert isinstance(answer, PowerAccepted)
    assert received == [magic_packet(MAC)] * PACKETS


def test_a_packet_that_cannot_be_sent_is_a_refusal() -> None:
    lost = WakeOnLan(mac=MAC, broadcast="no.such.invalid", port=9, check=Endpoint("h", 22))
    answer = lost.wake()
    assert isinstance(answer, PowerRefusal)
    assert answer.cause is PowerRefusalCause.UNREACHABLE
    assert "no.such.invalid" in answer.reason


def test_wake_on_lan_cannot_put_a_host_in_standby() -> None:
    answer = a_host(9, 22).sleep()
    assert isinstance(answer, PowerRefusal)
    assert answer.cause is PowerRefusalCause.UNSUPPORTED


def test_an_open_port_means_that_the_host_is_on() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert a_host(9, port).state() == PowerReading(by="wol", power=HostPower.ON)
    closed = a_host(9, port).state()
    assert isinstance(closed, PowerReading)
    assert closed.power is HostPower.CHANGING, "something answered, so the machine has power"


def test_a_silent_port_means_that_the_host_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    def drop(*_address: object, **_options: object) -> socket.socket:
        raise TimeoutError("timed out")

    monkeypatch.setattr(socket, "create_connection", drop)
    assert probe(Endpoint("h", 22)) is ProbeAnswer.SILENT
    reading = a_host(9, 22).state()
    assert isinstance(reading, PowerReading)
    assert reading.power is HostPower.OFF


def test_a_name_that_cannot_be_resolved_is_a_refusal() -> None:
    nowhere = WakeOnLan(
        mac=MAC, broadcast="127.0.0.1", port=9, check=Endpoint("no.such.invalid", 22)
    )
    reading = nowhere.state()
    assert isinstance(reading, PowerRefusal)
    assert reading.cause is PowerRefusalCause.UNREACHABLE
    assert "no.such.invalid" in reading.reason


def test_a_host_with_power_is_on_only_when_its_port_answers() -> None:
    class Powered:
        def wake(self) -> PowerAccepted:
            return PowerAccepted(by="redfish")

        def sleep(self) -> PowerAccepted:
            return PowerAccepted(by="redfish")

        def state(self) -> PowerReading:
            return PowerReading(by="redfish", power=HostPower.ON)

    with socket.create_server(("127.0.0.1", 0)) as server:
        host = PortCheckedControl(inner=Powered(), check=Endpoint(*server.getsockname()))
        assert host.state() == PowerReading(by="redfish", power=HostPower.ON)
    booting = host.state()
    assert isinstance(booting, PowerReading)
    assert booting.power is HostPower.CHANGING
    assert booting.note
    assert host.wake() == host.sleep() == PowerAccepted(by="redfish")
