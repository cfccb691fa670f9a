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

from command import call
from controllers import (
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
from equipoise.cli.hosts.wake import Task, Wishes, run
from equipoise.hosts.wake import bmc
from equipoise.hosts.wake.lan import COPIES, magic_packet
from equipoise.hosts.wake.port import Cause, Refusal
from equipoise.hosts.wake.talk.words import Question, Verb

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


class Hall:
    """A folder with an access file, and the command for it."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.file = folder / "access.json"
        self.capsys = capsys

    def ask(
        self, task: Task, hosts: dict[str, Any], code: int = 0, timeout_s: float = QUICK_S
    ) -> list[Any]:
        """What the command says about each host."""
        self.file.write_text(json.dumps({"hosts": hosts}))
        wishes = Wishes(task=task, timeout_s=timeout_s, poll_s=0.5)
        assert run(self.file, wishes, as_json=True) == code
        said = self.capsys.readouterr().out
        assert PASSWORD not in said
        found: list[Any] = json.loads(said)["hosts"]
        assert [one["host"] for one in found] == list(hosts)
        return found


@pytest.fixture(name="hall")
def fixture_hall(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Hall:
    return Hall(tmp_path, capsys)


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
    hall: Hall, redfish: str, ipmi: dict[str, int]
) -> None:
    hosts = {"h1": by_redfish(redfish, 0), "h2": by_ipmi(ipmi["good"])}
    assert [one["power"] for one in hall.ask(Task.STATE, hosts)] == ["off", "off"]
    for one in hall.ask(Task.WAKE, hosts):
        assert (one["power"], one["already"]) == ("on", False)
        assert one["took_s"] > 0
    again = hall.ask(Task.WAKE, hosts)
    assert [(one["by"], one["already"]) for one in again] == [("redfish", True), ("ipmi", True)]
    assert [one["power"] for one in hall.ask(Task.SLEEP, hosts)] == ["off", "off"]


def test_a_wrong_password_is_said_and_tried_once(
    hall: Hall, redfish: str, ipmi: dict[str, int]
) -> None:
    with http_server(passing_on(redfish)) as (url, asked):
        hosts = {
            "h1": by_redfish(url, 2, password_env="WRONG"),
            "h2": by_ipmi(ipmi["good"], password_env="WRONG"),
        }
        first, second = hall.ask(Task.WAKE, hosts, code=3)
    assert first["cause"] == second["cause"] == "denied"
    assert "the password or the user root is wrong" in first["reason"]
    assert len([one for one in asked if "Systems" in one]) == 1, "insisting locks accounts"


def test_who_cannot_be_reached_is_said(hall: Hall) -> None:
    hosts = {
        "h1": by_redfish(f"http://127.0.0.1:{free_port()}"),
        "h2": by_redfish("http://no.such.invalid"),
        "h3": by_ipmi(free_port(socket.SOCK_DGRAM)),
    }
    closed, unknown, silent = hall.ask(Task.STATE, hosts, code=3)
    assert {one["cause"] for one in (closed, unknown, silent)} == {"unreachable"}
    assert "connection refused (asked 3 times)" in closed["reason"]
    assert "the name in http://no.such.invalid is not known" in unknown["reason"]
    assert "does not answer on UDP port" in silent["reason"]


def test_an_acceptance_that_never_comes_true_is_not_success(
    hall: Hall, ipmi: dict[str, int]
) -> None:
    (found,) = hall.ask(Task.WAKE, {"h1": by_ipmi(ipmi["deaf"])}, code=3, timeout_s=2)
    assert found["cause"] == "timeout"
    assert "it accepted, but is not on after 2 s; at last it was off" in found["reason"]


def test_errors_and_nonsense_are_outlasted(hall: Hall, redfish: str, ipmi: dict[str, int]) -> None:
    spoilt = ((500, b"{}"), (503, b"not even JSON"), (200, b"<html>"))
    with http_server(passing_on(redfish, *spoilt)) as (url, asked):
        hosts = {"h1": by_redfish(url, 1), "h2": by_ipmi(ipmi["busy"])}
        found = hall.ask(Task.STATE, hosts)
    assert [one["power"] for one in found] == ["on", "off"]
    assert len(asked) == 5, "three bad answers, then the root and the system"


@pytest.mark.parametrize("body", [b"[]", b"null", b'{"Id": 1}', b"\xff\xfe", b""])
def test_no_nonsense_is_more_than_a_refusal(body: bytes) -> None:
    def reply(request: BaseHTTPRequestHandler) -> None:
        answer_with(request, 200, body)

    with http_server(reply) as (url, _asked):
        answer = bmc.ask(a_question("redfish", url=url, system="1"))
    assert isinstance(answer, Refusal)
    assert answer.cause is Cause.TROUBLE


def test_a_controller_that_talks_for_ever_is_cut_short() -> None:
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
        answer = bmc.ask(a_question("redfish", url=url), limit_s=3)
        stop.set()
    assert isinstance(answer, Refusal)
    assert answer.cause is Cause.UNREACHABLE
    assert time.monotonic() - start < 20


def test_packets_that_are_not_ipmi_are_no_answer() -> None:
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
        answer = bmc.ask(a_question("ipmi", address="127.0.0.1", port=port))
    assert isinstance(answer, Refusal)
    assert answer.cause in (Cause.UNREACHABLE, Cause.TROUBLE)


def test_a_user_whom_nobody_knows_ends_with_the_time(ipmi: dict[str, int]) -> None:
    # pyghmi would try for ever, because a controller says nothing at all to such a user.
    question = a_question("ipmi", address="127.0.0.1", port=ipmi["good"], user="nobody")
    answer = bmc.ask(question, limit_s=4)
    assert isinstance(answer, Refusal)
    assert "silent towards a user" in answer.sentence


def test_a_certificate_is_trusted_only_if_its_ca_is_named(tmp_path: Path, hall: Hall) -> None:
    certificate = self_signed(tmp_path)
    with redfish_emulator(tmp_path / "emulator", certificate=certificate) as url:
        trusted = by_redfish(url, 1, ca_file=certificate[0].name)
        first, second = hall.ask(Task.STATE, {"h1": by_redfish(url, 1), "h2": trusted}, code=3)
    assert first["cause"] == "certificate"
    assert "is not trusted (self-signed certificate); name its CA" in first["reason"]
    assert second["power"] == "on"


def test_the_next_way_is_taken_and_what_failed_is_told(hall: Hall, ipmi: dict[str, int]) -> None:
    dead = by_redfish(f"http://127.0.0.1:{free_port()}")
    (found,) = hall.ask(Task.WAKE, {"h1": dead | by_ipmi(ipmi["second"])})
    assert (found["power"], found["by"]) == ("on", "ipmi")
    assert [(one["by"], one["cause"]) for one in found["tried"]] == [("redfish", "unreachable")]


def test_what_a_controller_does_not_offer_is_said(
    hall: Hall, redfish: str, ipmi: dict[str, int]
) -> None:
    hosts = {"h1": by_redfish(redfish, 99), "h2": by_ipmi(ipmi["stubborn"])}
    (lost,) = hall.ask(Task.STATE, {"h1": hosts["h1"]}, code=3)
    assert (lost["cause"], "there is no system" in lost["reason"]) == ("unsupported", True)
    hall.ask(Task.WAKE, {"h2": hosts["h2"]})
    (found,) = hall.ask(Task.SLEEP, {"h2": hosts["h2"]}, code=3)
    assert found["cause"] == "unsupported"


def test_a_magic_packet_wakes_a_host_whose_port_then_answers(hall: Hall) -> None:
    check = free_port()
    heard: list[bytes] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as card:
        card.bind(("127.0.0.1", 0))
        card.settimeout(20)
        booted = threading.Event()
        done = threading.Event()

        def boot() -> None:
            heard.extend(card.recv(2000) for _ in range(COPIES))
            time.sleep(0.5)
            with socket.create_server(("127.0.0.1", check)):
                booted.set()
                done.wait(20)

        machine = threading.Thread(target=boot, daemon=True)
        machine.start()
        hosts = {"h1": by_packet(card.getsockname()[1], check)}
        (found,) = hall.ask(Task.WAKE, hosts)
        assert booted.is_set(), "not before it is on"
        (refused,) = hall.ask(Task.SLEEP, hosts, code=3)
        done.set()
        machine.join()
    assert heard == [magic_packet(bytes.fromhex("525400123456"))] * COPIES
    assert (found["power"], found["by"]) == ("on", "wol")
    assert refused["cause"] == "unsupported"


def test_power_without_a_port_that_answers_is_not_on(hall: Hall, redfish: str) -> None:
    check = f"127.0.0.1:{free_port()}"
    (found,) = hall.ask(Task.STATE, {"h1": by_redfish(redfish, 3, check=check)})
    assert found["power"] == "changing"
    assert "it has power, but" in found["note"]
    (late,) = hall.ask(Task.WAKE, {"h1": by_redfish(redfish, 3, check=check)}, 3, timeout_s=1)
    assert late["cause"] == "timeout"


def test_a_host_may_be_a_person_reading(
    hall: Hall, redfish: str, capsys: pytest.CaptureFixture[str]
) -> None:
    hall.ask(Task.STATE, {"h1": by_redfish(redfish, 5)})
    assert run(hall.file, Wishes(hosts=("h1",)), as_json=False) == 0
    said = capsys.readouterr().out
    assert "h1" in said
    assert "was on already" in said


def test_the_installed_command_wakes(tmp_path: Path, ipmi: dict[str, int]) -> None:
    file = tmp_path / "access.json"
    file.write_text(json.dumps({"hosts": {"h1": by_ipmi(ipmi["good"])}}))
    done = call("wake", str(file), "h1", "--state", "--json", RIGHT=PASSWORD)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["hosts"][0]["by"] == "ipmi"
    refused = call("wake", str(file), "h2")
    assert refused.returncode == 2
    assert 'there is no host "h2"' in refused.stderr
    both = call("wake", str(file), "--state", "--sleep")
    assert both.returncode == 2


def a_question(by: str, **more: Any) -> Question:
    return Question(**{"by": by, "verb": Verb.STATE, "user": USER, "password": PASSWORD} | more)
