"""Observations by a command that prints the inventory."""

from __future__ import annotations

import shlex
import sys

import pytest

from equipoise.adapters.inventory_command import InventoryCommand
from equipoise.errors import InvalidInput, WorldError

GOOD = "hosts: [{id: h1, cores: 4, mhz_per_core: 1000, memory_mib: 1024}]"


def python(code: str) -> str:
    return shlex.join([sys.executable, "-c", code])


def test_the_output_of_the_command_is_the_inventory() -> None:
    inventory = InventoryCommand(python(f"print({GOOD!r})")).observe()
    assert [host.id for host in inventory.hosts] == ["h1"]


@pytest.mark.parametrize(
    ("command", "word"),
    [
        (python("import sys; sys.exit('no session')"), "no session"),
        (python("print('hosts: [{id: h1}]')"), "no inventory"),
        (python("print()"), "no inventory"),
        ("/no/such/program", "cannot be run"),
    ],
)
def test_a_command_that_gives_no_inventory_is_a_failure_of_the_world(
    command: str, word: str
) -> None:
    with pytest.raises(WorldError, match=word):
        InventoryCommand(command).observe()


def test_a_command_that_hangs_is_stopped() -> None:
    with pytest.raises(WorldError, match="in 1 s"):
        InventoryCommand(python("import time; time.sleep(60)"), timeout_s=1).observe()


@pytest.mark.parametrize("command", ["", "echo 'open"])
def test_a_text_that_is_no_command_is_refused(command: str) -> None:
    with pytest.raises(InvalidInput):
        InventoryCommand(command)
