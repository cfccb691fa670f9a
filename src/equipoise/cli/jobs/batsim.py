"""``equipoise batsim``: a workload under a Batsim scheduler, with the result files of Batsim."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import Any

from equipoise.adapters.batsim.outputs import output_files
from equipoise.adapters.batsim.protocol.codec import Codec, JsonCodec
from equipoise.adapters.batsim.protocol.setup import BatsimSetup
from equipoise.adapters.batsim.transport.driver import (
    Listener,
    RunFailed,
    RunInterrupted,
    ScheduledRun,
    SequentialExecution,
    drive,
)
from equipoise.adapters.batsim.transport.endpoint import choose_endpoint
from equipoise.adapters.batsim.transport.launch import (
    SchedulerOptions,
    SchedulerOutcome,
    run_scheduler,
)
from equipoise.adapters.batsim.transport.process import describe_exit_code
from equipoise.adapters.batsim.transport.record import ExchangeRecorder, RecordedScheduler
from equipoise.adapters.batsim.v5.codec import BatprotocolCodec
from equipoise.cli.file_io import check_writable, print_page_written
from equipoise.cli.output import (
    EXIT_OK,
    EXIT_REFUSED,
    EXIT_WORLD_FAILED,
    console,
    figure_text,
    keep_figures,
    make_table,
    print_document,
    print_json,
    show_spinner,
)
from equipoise.documents.simulation import BatsimDocument, JobsDocument, JobsRunDocument
from equipoise.errors import WorldError
from equipoise.report.jobs import prepare_folder, write_jobs_folder
from equipoise.store import open_journal


@dataclass(frozen=True, slots=True, kw_only=True)
class BatsimOptions:
    """The options of the command."""

    setup: BatsimSetup
    scheduler: SchedulerOptions = field(default_factory=SchedulerOptions)
    protocol: int = 4
    """The version of the scheduler's protocol: 4 or 5."""
    no_scheduler: bool = False
    out: Path | None = None
    """A folder for the result files, the journal and the report."""
    record: Path | None = None
    replay: Path | None = None
    show_messages: bool = False
    quiet: bool = False
    notes: Sequence[str] = ()
    """What the command accepts without effect."""


def run(options: BatsimOptions, *, as_json: bool) -> int:
    """Run the jobs and print the summary."""
    for note in options.notes:
        _note(options, note)
    export = options.setup.export
    if options.out is not None:
        prepare_folder(options.out)
    if export is not None:
        for path in output_files(export, options.setup.options.output_layout):
            check_writable(path)
    try:
        with ExitStack() as stack, _termination_interrupts(), show_spinner("simulating"):
            listener = _make_listener(options, stack)
            if options.replay is not None:
                return _replay(options, options.replay, listener, as_json=as_json)
            outcome = _simulate(_with_journal(options, stack), listener)
    except RunFailed as error:
        done = error.run.figures["nb_jobs"]
        _write_report(options, _document("scheduler", error.run, None), error.run, str(error))
        _note(options, f"{done} jobs had ended; their results are written")
        raise
    except RunInterrupted as error:
        _write_report(options, _document("scheduler", error.run, None), error.run, "interrupted")
        raise
    except OSError as error:
        what = f"{error.filename or export}: cannot be written: {error.strerror}"
        raise WorldError(what, code="file-not-writable") from error
    _write_report(options, _document(outcome.name, outcome.run, None), outcome.run)
    _print_result(outcome, as_json=as_json)
    return _judge_exit(options, outcome)


def _with_journal(options: BatsimOptions, stack: ExitStack) -> BatsimOptions:
    """Return the options with a journal in the folder of the run, if it has a folder."""
    if options.out is None:
        return options
    journal = stack.enter_context(open_journal(str(options.out / "journal.jsonl")))
    return replace(options, setup=replace(options.setup, journal=journal))


def _write_report(
    options: BatsimOptions, result: BatsimDocument, run: ScheduledRun, stopped: str = ""
) -> None:
    """Write the page and the summary of a run with a folder, also of a run that failed."""
    out = options.out
    if out is None:
        return
    with open_journal(str(out / "journal.jsonl"), create=False) as journal:
        sha256 = journal.sha256()
    document = JobsRunDocument(
        kind="jobs",
        workload=", ".join(str(path) for path in options.setup.workloads),
        hosts=tuple(host.name for host in run.simulation.engine.platform.hosts),
        journal_sha256=sha256,
        result=JobsDocument.of(result),
        stopped=stopped,
    )
    print_page_written(write_jobs_folder(out, document))


def print_execution_context(options: BatsimOptions) -> int:
    """Print what scripts around Batsim read before a run, and run nothing."""
    scheduler = options.scheduler
    print_json(
        {
            "external_scheduler": not options.no_scheduler,
            "export_prefix": options.setup.export or "",
            "redis_enabled": False,
            "redis_hostname": "127.0.0.1",
            "redis_port": 6379,
            "redis_prefix": "default",
            "socket_endpoint": choose_endpoint(scheduler.command, scheduler.endpoint),
        }
    )
    return EXIT_OK


def _simulate(options: BatsimOptions, listener: Listener | None) -> SchedulerOutcome:
    inputs = options.setup.read()
    if options.no_scheduler:
        simulation = inputs.build(options.setup.options)
        return SchedulerOutcome("none", drive(simulation, SequentialExecution(), listener))
    return run_scheduler(
        inputs,
        _make_codec(options),
        options.scheduler,
        listener=listener,
        notice=lambda text: _note(options, text),
    )


def _make_codec(options: BatsimOptions) -> Codec:
    if options.protocol == 4:  # noqa: PLR2004
        return JsonCodec()
    return BatprotocolCodec(options.setup.options.scheduler_config.encode())


def _replay(options: BatsimOptions, path: Path, listener: Listener | None, *, as_json: bool) -> int:
    recorded = RecordedScheduler(path)
    try:
        result = drive(options.setup.build(), recorded, listener)
    except RunFailed as error:
        # The recorded run may have failed in the same way; only a difference is a finding.
        result = error.run
        _note(options, f"the run stops as it was recorded: {error}")
    recorded.check_end()
    if as_json:
        print_document(_document("replay", result, None, recorded.differences))
    else:
        _print_figures(result)
        for difference in recorded.differences:
            console().print(f"differs: {difference}", soft_wrap=True, markup=False)
        if not recorded.differences:
            console().print(f"all {result.messages} messages are equal to the recorded ones")
    return EXIT_REFUSED if recorded.differences else EXIT_OK


def _judge_exit(options: BatsimOptions, outcome: SchedulerOutcome) -> int:
    """Return the exit code: a scheduler that reports a failure of its own fails the command."""
    if outcome.was_stopped:
        _note(options, "the scheduler did not end by itself and was stopped")
    if not outcome.exit_code:
        return EXIT_OK
    _note(options, f"the scheduler ended with {describe_exit_code(outcome.exit_code)}")
    _note(options, outcome.last_lines)
    return EXIT_WORLD_FAILED


def _document(
    name: str, result: ScheduledRun, exit_code: int | None, differences: Sequence[str] = ()
) -> BatsimDocument:
    figures: dict[str, Any] = result.figures
    return BatsimDocument(
        policy=name,
        **figures,
        wall_s=round(result.wall_s, 3),
        scheduling_time=round(result.scheduling_s, 3),
        messages=result.messages,
        scheduler_exit_code=exit_code,
        differences=tuple(differences),
    )


def _print_result(outcome: SchedulerOutcome, *, as_json: bool) -> None:
    if as_json:
        print_document(_document(outcome.name, outcome.run, outcome.exit_code))
    else:
        _print_figures(outcome.run)


def _print_figures(result: ScheduledRun) -> None:
    table = make_table("measure", "value", right=("value",))
    figures = result.figures | {
        "messages": result.messages,
        "scheduling_time": result.scheduling_s,
        "wall_s": result.wall_s,
    }
    for key, value in figures.items():
        table.add_row(key, figure_text(value))
    console().print(keep_figures(table))


def _make_listener(options: BatsimOptions, stack: ExitStack) -> Listener | None:
    """Return what receives each message: the record, the terminal, both or none."""
    listeners: list[Listener] = []
    if options.record is not None:
        listeners.append(stack.enter_context(ExchangeRecorder(options.record)))
    if options.show_messages:
        listeners.append(_print_message)
    if not listeners:
        return None

    def pass_on(sender: str, message: object) -> None:
        for listener in listeners:
            listener(sender, message)

    return pass_on


def _print_message(sender: str, message: object) -> None:
    from equipoise.adapters.batsim.transport.record import format_message

    sys.stderr.write(f"{sender}: {format_message(message)}\n")


def _note(options: BatsimOptions, text: str) -> None:
    if text and not options.quiet:
        sys.stderr.write(f"{text}\n")


@contextmanager
def _termination_interrupts() -> Iterator[None]:
    """Treat SIGTERM and SIGHUP as Ctrl-C: files are closed and the scheduler ends."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {
        number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
