"""Hosts are woken by real protocols: Redfish over HTTP and TLS, IPMI over UDP, magic packets."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from bmc_servers import (
    PASSWORD,
    USER,
    answer_with,
    free_port,
    http_server,
    ipmi_controllers,
    passing_on,
    redfish_emulator,
    self_signed,
    system_id,
)
from builders import figures
from command import call, call_here, refusals
from equipoise.adapters.bmc import host_power
from equipoise.adapters.bmc.host_power import (
    BmcOperation,
    BmcRequest,
    PowerRefusal,
    PowerRefusalCause,
)
from equipoise.adapters.bmc.wake_on_lan import PACKETS, magic_packet
from equipoise.cli.wake import PowerTask, WakeOptions, run

QUICK_S = 30.0
"""The emulator takes up to eleven seconds to switch a system."""


@pytest.fixture(scope="module", name="redfish")
def fixture_redfish(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with redfish_emulator(tmp_path_factory.mktemp("redfish") / "emulator") as url:
        yield url


@pytest.fixture(scope="module", name="ipmi")
def fixture_ipmi(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, int]]:
    behaviours = ("good", "deaf", "busy", "stubborn", "second")
    with ipmi_controllers(tmp_path_factory.mktemp("ipmi"), *behaviours) as ports:
        yield ports


@pytest.fixture(autouse=True)
def fixture_passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RIGHT", PASSWORD)
    monkeypatch.setenv("WRONG", "wrong")


class WakeCommand:
    """The command with an access file in a folder."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.file = folder / "access.json"
        self.capsys = capsys

    def ask(
        self, task: PowerTask, hosts: dict[str, Any], code: int = 0, timeout_s: float = QUICK_S
    ) -> list[Any]:
        """Run the command and return its JSON of each host."""
        self.file.write_text(json.dumps({"hosts": hosts}))
        options = WakeOptions(task=task, timeout_s=timeout_s, poll_s=0.5)
        assert run(self.file, options, as_json=True) == code
        output = self.capsys.readouterr().out
        assert PASSWORD not in output
        found: list[Any] = json.loads(output)["hosts"]
        assert [entry["host"] for entry in found] == list(hosts)
        return found


@pytest.fixture(name="wake")
def fixture_hall(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> WakeCommand:
    return WakeCommand(tmp_path, capsys)


def by_redfish(url: str, number: int = 0, **more: str) -> dict[str, Any]:
    way = {"url": url, "system": system_id(number), "user": USER, "password_env": "RIGHT"}
    return {"redfish": way | more}


def by_ipmi(port: int, **more: str) -> dict[str, Any]:
    way = {"address": "127.0.0.1", "port": port, "user": USER, "password_env": "RIGHT"}
    return {"ipmi": way | more}


def by_packet(port: int, check: int) -> dict[str, Any]:
    way = {
        "mac": "52:54:00:12:34:56",
        "broadcast": "127.0.0.1",
        "port": port,
        "check": f"127.0.0.1:{check}",
    }
    return {"wol": way}


def test_redfish_and_ipmi_wake_and_put_to_sleep_side_by_side(
    wake: WakeCommand, redfish: str, ipmi: dict[str, int]
) -> None:
    hosts = {"h1": by_redfish(redfish, 0), "h2": by_ipmi(ipmi["good"])}
    assert [entry["power"] for entry in wake.ask(PowerTask.STATE, hosts)] == ["off", "off"]
    for entry in wake.ask(PowerTask.WAKE, hosts):
        assert (entry["power"], entry["already"]) == ("on", False)
        assert entry["took_s"] > 0
    again = wake.ask(PowerTask.WAKE, hosts)
    assert [(entry["by"], entry["already"]) for entry in again] == [
        ("redfish", True),
        ("ipmi", True),
    ]
    assert [entry["power"] for entry in wake.ask(PowerTask.SLEEP, hosts)] == ["off", "off"]


def test_a_wrong_password_is_reported_and_tried_once(
    wake: WakeCommand, redfish: str, ipmi: dict[str, int]
) -> None:
    with http_server(passing_on(redfish)) as (url, asked):
        hosts = {
            "h1": by_redfish(url, 2, password_env="WRONG"),
            "h2": by_ipmi(ipmi["good"], password_env="WRONG"),
        }
        first, second = wake.ask(PowerTask.WAKE, hosts, code=3)
    assert first["cause"] == second["cause"] == "denied"
    assert "root" in first["reason"]
    assert len([line for line in asked if "Systems" in line]) == 1, "insisting locks accounts"


def test_an_unreachable_controller_is_reported(wake: WakeCommand) -> None:
    hosts = {
        "h1": by_redfish(f"http://127.0.0.1:{free_port()}"),
        "h2": by_redfish("http://no.such.invalid"),
        "h3": by_ipmi(free_port(socket.SOCK_DGRAM)),
    }
    closed, unknown, silent = wake.ask(PowerTask.STATE, hosts, code=3)
    assert {entry["cause"] for entry in (closed, unknown, silent)} == {"unreachable"}
    assert closed["reason"].endswith("(3 attempts)")
    assert "http://no.such.invalid" in unknown["reason"]
    assert str(hosts["h3"]["ipmi"]["port"]) in silent["reason"]


def test_an_accepted_command_without_effect_is_no_success(
    wake: WakeCommand, ipmi: dict[str, int]
) -> None:
    (found,) = wake.ask(PowerTask.WAKE, {"h1": by_ipmi(ipmi["deaf"])}, code=3, timeout_s=2)
    assert found["cause"] == "timeout"
    assert found["code"] == "power-timeout"
    assert figures(found["reason"]) == [2]


def test_transient_errors_are_retried(
    wake: WakeCommand, redfish: str, ipmi: dict[str, int]
) -> None:
    spoilt = ((500, b"{}"), (503, b"not even JSON"), (200, b"<html>"))
    with http_server(passing_on(redfish, *spoilt)) as (url, asked):
        hosts = {"h1": by_redfish(url, 1), "h2": by_ipmi(ipmi["busy"])}
        found = wake.ask(PowerTask.STATE, hosts)
    assert [entry["power"] for entry in found] == ["on", "off"]
    assert len(asked) == 5, "three bad answers, then the root and the system"


@pytest.mark.parametrize("body", [b"[]", b"null", b'{"Id": 1}', b"\xff\xfe", b""])
def test_any_invalid_answer_is_a_refusal(body: bytes) -> None:
    def reply(request: BaseHTTPRequestHandler) -> None:
        answer_with(request, 200, body)

    with http_server(reply) as (url, _asked):
        answer = host_power.send_request(a_request("redfish", url=url, system="1"))
    assert isinstance(answer, PowerRefusal)
    assert answer.cause is PowerRefusalCause.CONTROLLER_ERROR


def test_an_answer_without_an_end_is_cut_off() -> None:
    stop = threading.Event()

    def drip(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Length", "1000000")
        request.end_headers()
        while not stop.wait(0.2):
            try:
                request.wfile.write(b" ")
            except OSError:
                return

    with http_server(drip) as (url, _asked):
        start = time.monotonic()
        answer = host_power.send_request(a_request("redfish", url=url), timeout_s=3)
        stop.set()
    assert isinstance(answer, PowerRefusal)
    assert answer.cause is PowerRefusalCause.UNREACHABLE
    assert time.monotonic() - start < 20


def test_packets_that_are_not_ipmi_are_ignored() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as babbler:
        babbler.bind(("127.0.0.1", 0))
        babbler.settimeout(20)

        def babble() -> None:
            for _ in range(3):
                try:
                    _request, whom = babbler.recvfrom(2000)
                    babbler.sendto(b"\x06\x00\xff\x07" + bytes(range(60)), whom)
                except OSError:
                    return

        threading.Thread(target=babble, daemon=True).start()
        port = babbler.getsockname()[1]
        answer = host_power.send_request(a_request("ipmi", address="127.0.0.1", port=port))
    assert isinstance(answer, PowerRefusal)
    assert answer.cause in (PowerRefusalCause.UNREACHABLE, PowerRefusalCause.CONTROLLER_ERROR)


def test_an_unknown_ipmi_user_ends_with_a_timeout(ipmi: dict[str, int]) -> None:
    # pyghmi would try for ever, because a controller says nothing at all to such a user.
    request = a_request("ipmi", address="127.0.0.1", port=ipmi["good"], user="guest")
    answer = host_power.send_request(request, timeout_s=4)
    assert isinstance(answer, PowerRefusal)
    assert answer.cause is PowerRefusalCause.UNREACHABLE


def test_a_certificate_is_trusted_only_with_its_ca(tmp_path: Path, wake: WakeCommand) -> None:
    certificate = self_signed(tmp_path)
    with redfish_emulator(tmp_path / "emulator", certificate=certificate) as url:
        trusted = by_redfish(url, 1, ca_file=certificate[0].name)
        first, second = wake.ask(PowerTask.STATE, {"h1": by_redfish(url, 1), "h2": trusted}, code=3)
    assert first["cause"] == "certificate"
    assert second["power"] == "on"


def test_the_next_protocol_is_used_and_failures_are_reported(
    wake: WakeCommand, ipmi: dict[str, int]
) -> None:
    dead = by_redfish(f"http://127.0.0.1:{free_port()}")
    (found,) = wake.ask(PowerTask.WAKE, {"h1": dead | by_ipmi(ipmi["second"])})
    assert (found["power"], found["by"]) == ("on", "ipmi")
    assert [(entry["by"], entry["cause"]) for entry in found["tried"]] == [
        ("redfish", "unreachable")
    ]


def test_an_unsupported_reset_is_reported(
    wake: WakeCommand, redfish: str, ipmi: dict[str, int]
) -> None:
    hosts = {"h1": by_redfish(redfish, 99), "h2": by_ipmi(ipmi["stubborn"])}
    (lost,) = wake.ask(PowerTask.STATE, {"h1": hosts["h1"]}, code=3)
    assert lost["cause"] == "unsupported"
    wake.ask(PowerTask.WAKE, {"h2": hosts["h2"]})
    (found,) = wake.ask(PowerTask.SLEEP, {"h2": hosts["h2"]}, code=3)
    assert found["cause"] == "unsupported"


def test_a_magic_packet_wakes_a_host_whose_port_then_answers(wake: WakeCommand) -> None:
    check = free_port()
    heard: list[bytes] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as card:
        card.bind(("127.0.0.1", 0))
        card.settimeout(20)
        booted = threading.Event()
        done = threading.Event()

        def boot() -> None:
            heard.extend(card.recv(2000) for _ in range(PACKETS))
            time.sleep(0.5)
            with socket.create_server(("127.0.0.1", check)):
                booted.set()
                done.wait(20)

        machine = threading.Thread(target=boot, daemon=True)
        machine.start()
        hosts = {"h1": by_packet(card.getsockname()[1], check)}
        (found,) = wake.ask(PowerTask.WAKE, hosts)
        assert booted.is_set(), "the command returned before the host was on"
        (refused,) = wake.ask(PowerTask.SLEEP, hosts, code=3)
        done.set()
        machine.join()
    assert heard == [magic_packet(bytes.fromhex("525400123456"))] * PACKETS
    assert (found["power"], found["by"]) == ("on", "wol")
    assert refused["cause"] == "unsupported"


def test_power_without_a_port_that_answers_is_not_on(wake: WakeCommand, redfish: str) -> None:
    check = f"127.0.0.1:{free_port()}"
    (found,) = wake.ask(PowerTask.STATE, {"h1": by_redfish(redfish, 3, check=check)})
    assert found["power"] == "changing"
    assert check in found["note"]
    (late,) = wake.ask(PowerTask.WAKE, {"h1": by_redfish(redfish, 3, check=check)}, 3, timeout_s=1)
    assert late["cause"] == "timeout"


def test_the_output_for_a_terminal_is_a_table(
    wake: WakeCommand, redfish: str, capsys: pytest.CaptureFixture[str]
) -> None:
    wake.ask(PowerTask.STATE, {"h1": by_redfish(redfish, 5)})
    assert run(wake.file, WakeOptions(hosts=("h1",)), as_json=False) == 0
    output = capsys.readouterr().out
    (line,) = [line for line in output.splitlines() if "h1" in line]
    assert {"on", "redfish"} <= set(line.split())


def test_the_installed_command_wakes(tmp_path: Path, ipmi: dict[str, int]) -> None:
    file = tmp_path / "access.json"
    file.write_text(json.dumps({"hosts": {"h1": by_ipmi(ipmi["good"])}}))
    done = call("wake", str(file), "h1", "--state", "--json", RIGHT=PASSWORD)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["hosts"][0]["by"] == "ipmi"
    assert refusals("wake", str(file), "h2") == [("unknown-name", "hosts")]
    both = call_here("wake", str(file), "--state", "--sleep")
    assert both.returncode == 2


def a_request(by: str, **more: Any) -> BmcRequest:
    return BmcRequest(
        **{"by": by, "operation": BmcOperation.STATE, "user": USER, "password": PASSWORD} | more
    )
