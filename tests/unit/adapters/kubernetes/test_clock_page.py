"""The page of the virtual clock, with the part of the program played by the test."""

from __future__ import annotations

import os
import select
import struct
from pathlib import Path

import pytest

from equipoise.adapters.kubernetes.clock.overlay import ADDED_FILES, HERE
from equipoise.adapters.kubernetes.clock.page import MAGIC, START_NS, Cell, VirtualClockPage
from equipoise.errors import WorldError

WALL_NS = 1_700_000_000 * 10**9


class Program:
    """What ``virtual_clock.go`` writes, by hand."""

    def __init__(self, page: VirtualClockPage) -> None:
        self.path = page.path
        self.changes = 0

    def read(self, cell: Cell) -> int:
        with self.path.open("rb") as file:
            return int(struct.unpack_from("=q", file.read(), cell * 8)[0])

    def write(self, cell: Cell, value: int) -> None:
        with self.path.open("r+b") as file:
            file.seek(cell * 8)
            file.write(struct.pack("=q", value))

    def set_active(self, active: int) -> None:
        self.changes += active > 0
        self.write(Cell.STATE, (self.changes << 32) + active)


@pytest.fixture
def page(tmp_path: Path) -> VirtualClockPage:
    return VirtualClockPage(tmp_path / "page", wall_ns=WALL_NS, seed=7)


def test_a_new_page_has_the_time_of_the_start(page: VirtualClockPage) -> None:
    program = Program(page)
    assert program.read(Cell.MAGIC) == MAGIC
    assert program.read(Cell.NOW) == page.now_ns == START_NS
    assert program.read(Cell.NOW) + program.read(Cell.WALL) == WALL_NS
    assert program.read(Cell.SEED) == 7
    assert page.environment == {"EQUIPOISE_CLOCK": str(page.path)}


def test_the_program_knows_the_same_page() -> None:
    text = (HERE / ADDED_FILES["runtime/equipoise_clock.go"]).read_text()
    struct_lines = text.partition("type virtualClockPage struct {\n")[2].partition("\n}")[0]
    names = [line.split()[0].upper() for line in struct_lines.splitlines()]
    assert names == [cell.name for cell in Cell]
    assert f"{MAGIC:#x}" in text


def test_a_program_that_has_not_started_is_not_idle(page: VirtualClockPage) -> None:
    assert not page.idle
    assert page.pid == 0
    page.check_alive()


def test_a_program_is_idle_when_nothing_is_active_and_each_advance_was_taken(
    page: VirtualClockPage,
) -> None:
    program = Program(page)
    program.write(Cell.PID, os.getpid())
    program.set_active(2)
    assert not page.idle
    sequence = page.sequence
    program.set_active(0)
    assert page.idle
    assert page.sequence == sequence
    page.advance(START_NS + 5)
    assert not page.idle
    program.set_active(1)
    program.write(Cell.SEEN, program.read(Cell.REQUEST))
    assert not page.idle
    program.set_active(0)
    assert page.idle
    assert page.sequence > sequence


def test_an_advance_wakes_the_program(page: VirtualClockPage) -> None:
    wake = os.open(f"{page.path}.wake", os.O_RDONLY | os.O_NONBLOCK)
    assert select.select([wake], [], [], 0)[0] == []
    page.advance(START_NS + 1_000)
    assert select.select([wake], [], [], 0)[0] == [wake]
    assert page.now_ns == START_NS + 1_000
    os.close(wake)


def test_readings_keep_their_order_over_an_advance_that_is_shorter(page: VirtualClockPage) -> None:
    program = Program(page)
    program.write(Cell.READS, 500)
    page.advance(START_NS + 200)
    assert program.read(Cell.NOW) + program.read(Cell.READS) == START_NS + 500
    page.advance(START_NS + 10_000)
    assert program.read(Cell.READS) == 0


def test_time_does_not_go_back(page: VirtualClockPage) -> None:
    with pytest.raises(AssertionError):
        page.advance(START_NS - 1)


def test_the_program_can_say_that_it_became_idle(page: VirtualClockPage) -> None:
    page.ask_for_idle()
    assert Program(page).read(Cell.NOTIFY) == 1
    idle = os.open(f"{page.path}.idle", os.O_WRONLY | os.O_NONBLOCK)
    os.write(idle, b"\1")
    os.close(idle)
    assert select.select([page.idle_fd], [], [], 0)[0] == [page.idle_fd]
    page.take_idle()
    page.take_idle()
    assert select.select([page.idle_fd], [], [], 0)[0] == []


def test_a_process_that_has_ended_is_noticed(page: VirtualClockPage) -> None:
    program = Program(page)
    program.write(Cell.PID, 2**22 + 1)  # above the largest process id
    with pytest.raises(WorldError) as raised:
        page.check_alive()
    assert raised.value.code == "scheduler-ended"


def test_closing_removes_the_page_and_its_pipes(tmp_path: Path) -> None:
    with VirtualClockPage(tmp_path / "page", wall_ns=WALL_NS) as page:
        assert len(list(tmp_path.iterdir())) == 3
    page.close()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_does_not_exist_is_an_error_of_the_world(tmp_path: Path) -> None:
    with pytest.raises(WorldError) as raised:
        VirtualClockPage(tmp_path / "none" / "page", wall_ns=WALL_NS)
    assert raised.value.code == "file-not-writable"
