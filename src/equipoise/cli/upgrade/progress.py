"""The progress of a run on a terminal: which batch, which hosts, what each does, what is next."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from equipoise.cli.output import format_time_ms
from equipoise.model.event import Event, HostFailed, HostJoined, HostRecovered
from equipoise.model.upgrade.event import (
    BatchDecided,
    BatchStarted,
    IterationEnded,
    ResourceIsolated,
    SetEnded,
    SetUndoStarted,
    TaskFailed,
    TaskFinished,
    VmBatchStarted,
    VmMoved,
    VmMoveFailed,
)
from equipoise.model.upgrade.work import TaskBatch, UpgradeTask
from equipoise.upgrade.select_batch import VM_MOVES_REASON
from equipoise.upgrade.state import UpgradeState

NAMES_SHOWN = 6


class UpgradeProgress:
    """Prints a line for each event that an operator follows."""

    def __init__(self, show: Callable[[str], object]) -> None:
        self._show = show
        self._began_ms: dict[str, int] = {}
        """When the task of each resource, or the move of each VM, was sent."""

    def __call__(self, event: Event, state: UpgradeState) -> None:
        """Print what an event means."""
        for text in self._lines(event, state):
            self._show(f"{format_time_ms(event.at_ms)}  {text}")

    def _lines(self, event: Event, state: UpgradeState) -> Iterable[str]:
        match event:
            case BatchDecided():
                waiting = [
                    vertex
                    for elimination in event.eliminated
                    if elimination.code != VM_MOVES_REASON.code
                    for vertex in elimination.vertices
                ]
                next_ = f"; then {_names(waiting)}" if waiting else ""
                yield f"iteration {event.iteration}: {_names(event.batch) or 'no change'}{next_}"
            case BatchStarted():
                yield from self._batch_lines(event.batch, event.at_ms)
            case TaskFinished():
                yield f"  {event.resource}: {event.kind} done{self._after(event.resource, event)}"
            case TaskFailed():
                after = self._after(event.resource, event)
                yield f"  {event.resource}: {event.kind} failed{after}: {event.reason}"
            case VmBatchStarted():
                self._began_ms |= {move.vm: event.at_ms for move in event.batch.moves}
                about = format_time_ms(1000 * state.settings.vm_move_s)
                for move in event.batch.moves:
                    yield f"  {move.vm}: moves from {move.source} to {move.target}, about {about}"
            case VmMoved():
                yield f"  {event.vm}: moved{self._after(event.vm, event)}"
            case VmMoveFailed():
                yield f"  {event.vm}: stayed{self._after(event.vm, event)}: {event.reason}"
            case IterationEnded() if event.paused:
                yield f"pauses: {event.paused}"
            case _:
                yield from _other_lines(event)

    def _batch_lines(self, batch: TaskBatch, at_ms: int) -> Iterable[str]:
        for task in batch.tasks:
            self._began_ms[task.resource] = at_ms
            about = format_time_ms(1000 * task.duration_s)
            host = (
                f" on {task.host}"
                if task.host is not None and str(task.host) != task.resource
                else ""
            )
            yield f"  {task.resource}{host}: {_task_text(task)}, about {about}"

    def _after(self, name: str, event: Event) -> str:
        began_ms = self._began_ms.get(name)
        return "" if began_ms is None else f" after {format_time_ms(event.at_ms - began_ms)}"


def _task_text(task: UpgradeTask) -> str:
    works = [f"{work.component} {work.before or '-'} to {work.after or '-'}" for work in task.works]
    attempt = f" (attempt {task.attempt})" if task.attempt > 1 else ""
    return " ".join((task.kind.value, ", ".join(works))).strip() + attempt


def _other_lines(event: Event) -> Iterable[str]:
    match event:
        case SetEnded():
            yield f"set {event.set}: {event.outcome}" + (
                f": {event.reason}" if event.reason else ""
            )
        case SetUndoStarted():
            yield f"set {event.set} is undone: {event.reason}"
        case ResourceIsolated():
            yield f"{event.resource} is isolated: {event.reason}"
        case HostFailed():
            yield f"host {event.host} failed: {event.reason}"
        case HostRecovered():
            yield f"host {event.host} is back"
        case HostJoined():
            yield f"host {event.host.id} joined"


def _names(names: Iterable[str]) -> str:
    all_ = list(names)
    more = f" and {len(all_) - NAMES_SHOWN} more" if len(all_) > NAMES_SHOWN else ""
    return ", ".join(all_[:NAMES_SHOWN]) + more
