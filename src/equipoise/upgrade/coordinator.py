"""The coordinator: takes an upgrade from iteration to iteration, as a state machine without I/O.

``handle`` takes in an event that was written down, ``decide`` gives the next thing to write down,
until there is none. What it knows follows from the events alone, so after a crash the same events
bring it back to where it was. ``instruction`` says what a decision asks of the engine.
"""

from __future__ import annotations

from equipoise.model.event import Event
from equipoise.model.upgrade.event import (
    BatchDecided,
    BatchStarted,
    CampaignBegan,
    CampaignEnded,
    CampaignStatus,
    IterationBegan,
    IterationEnded,
    OrderRefused,
    SetUndoBegan,
    VmBatchDecided,
    VmBatchStarted,
)
from equipoise.model.upgrade.work import Batch, VmBatch, VmMove
from equipoise.upgrade.answers import answer_scaling, restart
from equipoise.upgrade.begin import begin
from equipoise.upgrade.change import change
from equipoise.upgrade.cover import MayLeave
from equipoise.upgrade.graph.build import grouping
from equipoise.upgrade.moves import vms
from equipoise.upgrade.moves.consolidate import free_hosts
from equipoise.upgrade.moves.gate import admitted
from equipoise.upgrade.moves.gather import clear_storage
from equipoise.upgrade.requests.bound import in_the_way
from equipoise.upgrade.review import deadline_ms, review
from equipoise.upgrade.rules.brakes import all_held, window_opens_ms
from equipoise.upgrade.rules.protection import unspared
from equipoise.upgrade.scene import Scene, look_at_sides, scene_of
from equipoise.upgrade.select import select
from equipoise.upgrade.sides import used
from equipoise.upgrade.state import Phase, Progress, State, next_batch_id
from equipoise.upgrade.tasks import checking, mending, reverting, schedule


class Coordinator:
    """One upgrade campaign, from its first request to its end."""

    def __init__(self, may_leave: MayLeave | None = None) -> None:
        """``may_leave`` is how the roles of hosts are asked about; without it they are not."""
        self._may_leave = may_leave
        self._state: State | None = None
        self._scene: Scene | None = None
        """What the batch under way was chosen from, so that it is not looked at twice."""
        self._moves: tuple[VmMove, ...] = ()

    @property
    def state(self) -> State:
        """What is known. Only to be read."""
        assert self._state is not None, "the first event is CampaignBegan"
        return self._state

    @property
    def ended(self) -> bool:
        """Whether nothing more will be decided."""
        return self._state is not None and self._state.ended

    def handle(self, event: Event) -> None:
        """Take in what has happened."""
        if isinstance(event, CampaignBegan):
            self._state = begin(event.campaign)
            self._state.at_ms = event.at_ms
            self._state.may_leave = self._may_leave
            return
        if not isinstance(event, VmBatchDecided):
            self._moves = ()  # chosen from a state that is past
        change(self.state, event)

    def decide(self, now_ms: int) -> Event | None:
        """Give the next thing to write down, or nothing if there is nothing to do now."""
        state = self.state
        state.at_ms = max(state.at_ms, now_ms)
        if state.ended:
            return None
        if state.unheeded:
            one = state.unheeded[0]
            return OrderRefused(
                at_ms=state.at_ms, order=one.order, reason=one.reason, number=one.number
            )
        if state.lost:
            return restart(state, next(iter(state.lost)))
        if state.asked:
            return answer_scaling(state, *state.asked[0])
        return None if state.open is not None else self._go_on()

    def _go_on(self) -> Event | None:
        """What comes next in the iteration, or after it."""
        state = self.state
        waits = state.at_ms < state.ready_ms
        match state.phase:
            case Phase.IDLE:
                return self._begin_or_end()
            case Phase.TAKING_UP:
                return None if waits else self._take_up()
            case Phase.CHANGING:
                return self._start_batch()
            case Phase.REVERTING:
                # Two schedules of one name would be one to an engine.
                id_ = next_batch_id(state, "/revert-unwell" if state.checked else "/revert")
                batch = reverting(state, grouping(state).group_of, id_)
                return BatchStarted(at_ms=state.at_ms, batch=batch)
            case Phase.BAKING:
                return None if waits else self._check()
            case _:
                return self._move()

    def alarm_ms(self) -> int | None:
        """When something is to be decided even if nothing happens."""
        state = self.state
        if state.open is None and state.phase in (Phase.TAKING_UP, Phase.BAKING):
            return state.ready_ms
        if state.phase is Phase.IDLE and state.paused:
            return min(self._alarms(), default=None)
        return None

    def _alarms(self) -> list[int]:
        """Deadlines and openings of windows that lie behind the moment at which it paused."""
        state = self.state
        found: list[int] = []
        for standing in state.standings.values():
            if standing.progress is Progress.ENDED:
                continue
            due_ms = deadline_ms(standing)
            if due_ms is not None and due_ms > state.paused_ms:
                found.append(due_ms)
            if standing.set.windows:
                found.append(window_opens_ms(state, standing, state.paused_ms))
        return [one for one in found if one > state.paused_ms]

    def _begin_or_end(self) -> Event | None:
        state = self.state
        at_ms = state.at_ms
        sets = state.standings.values()
        done = all(one.progress is Progress.ENDED for one in sets)
        if done and not state.requests and not _someone_returns(state):
            if state.standings or state.iteration:
                return CampaignEnded(at_ms=at_ms, status=CampaignStatus.COMPLETED)
            return None
        if state.paused and not state.changed:
            alarm_ms = min(self._alarms(), default=None)
            if alarm_ms is None or at_ms < alarm_ms:
                return None
        if state.iteration >= state.settings.iterations_max:
            why = f"after {state.iteration} iterations there is no end in sight"
            return CampaignEnded(at_ms=at_ms, status=CampaignStatus.PAUSED, reason=why)
        return IterationBegan(at_ms=at_ms, iteration=state.iteration + 1)

    def give_up(self, now_ms: int) -> CampaignEnded:
        """End a campaign that waits for something that will not come."""
        why = self.state.paused or "nothing more will happen"
        return CampaignEnded(at_ms=now_ms, status=CampaignStatus.PAUSED, reason=why)

    # Steps 1 to 3

    def _take_up(self) -> Event:
        state = self.state
        finding = review(state)
        if finding is not None:
            return finding
        scene = scene_of(state, with_vms=False)
        held = all_held(state)
        moves, _ = admitted(state, () if held else clear_storage(scene))
        if moves:
            return self._consolidate(moves, "to leave hosts to the storage that is replaced")
        chosen = select(scene)
        moves = () if held else free_hosts(scene, chosen)
        if moves:
            return self._consolidate(moves, "to free hosts")
        self._scene = scene
        return BatchDecided(
            at_ms=state.at_ms,
            iteration=state.iteration,
            z=chosen.z,
            batch=chosen.batch,
            eliminated=chosen.eliminated,
        )

    def _consolidate(self, moves: tuple[VmMove, ...], why: str) -> VmBatchStarted:
        state = self.state
        id_ = next_batch_id(state, f"/consolidation-{state.sub_iteration + 1}")
        return VmBatchStarted(at_ms=state.at_ms, batch=VmBatch(id=id_, moves=moves), why=why)

    def _start_batch(self) -> BatchStarted:
        state = self.state
        scene = self._scene or scene_of(state, with_vms=False)
        self._scene = None
        batch = schedule(scene, state.batch, next_batch_id(state, ""))
        return BatchStarted(at_ms=state.at_ms, batch=batch)

    def _check(self) -> Event:
        state = self.state
        batch = checking(state, grouping(state).group_of, next_batch_id(state, "/check"))
        if batch.stages:
            return BatchStarted(at_ms=state.at_ms, batch=batch)
        return self._move()

    # Step 4

    def _move(self) -> Event:
        state = self.state
        mended = mending(state, grouping(state).group_of, next_batch_id(state, "/links"))
        if mended is not None:
            return BatchStarted(at_ms=state.at_ms, batch=mended)
        if not (state.vm_done or state.vm_due or all_held(state)):
            sides = look_at_sides(state)
            if sides.new and (used(state, sides.old) or (sides.divided and sides.old)):
                v = vms.limit(state, sides) if state.vm_limit is None else state.vm_limit
                chosen = vms.choose(state, sides, v)
                self._moves = chosen.moves
                return VmBatchDecided(
                    at_ms=state.at_ms,
                    iteration=state.iteration,
                    v=v,
                    wanted=chosen.wanted,
                    size=len(chosen.moves),
                    reason=chosen.reason,
                )
        if state.vm_due:
            moves = self._moves or self._moves_again()
            self._moves = ()
            id_ = next_batch_id(state, f"/vms-{state.sub_iteration + 1}")
            return VmBatchStarted(at_ms=state.at_ms, batch=VmBatch(id=id_, moves=moves))
        return self._end_iteration()

    def _moves_again(self) -> tuple[VmMove, ...]:
        """After a crash: the moves that were decided, from the same state."""
        state = self.state
        assert state.vm_limit is not None
        return vms.choose(state, look_at_sides(state), state.vm_limit).moves

    def _end_iteration(self) -> Event:
        state = self.state
        finding = review(state)
        if finding is not None:
            return finding
        paused = "" if state.progressed else self._why_paused()
        if paused:
            blocked = self._never() or unspared(state) or self._in_circles()
            if blocked is not None:
                return blocked
        return IterationEnded(at_ms=state.at_ms, iteration=state.iteration, paused=paused)

    def _why_paused(self) -> str:
        told = self.state.told
        return "; ".join(dict.fromkeys(told)) or "there is nothing that can be done now"

    def _in_circles(self) -> SetUndoBegan | None:
        """If neither load nor anybody holds it back, its resources wait for each other for ever."""
        state = self.state
        if state.told:
            return None
        for standing in state.standings.values():
            if standing.progress is Progress.SCHEDULED:
                why = "its resources wait for each other"
                return SetUndoBegan(at_ms=state.at_ms, set=standing.id, reason=why)
        return None

    def _never(self) -> SetUndoBegan | None:
        """A set that waits for a resource whose peer is lost for good cannot be completed."""
        state = self.state
        for bond in state.bonds:
            one = bond.dependency
            if not one.kind.is_symmetrical:
                continue
            for lost, waiting in ((one.dependent, one.sponsor), (one.sponsor, one.dependent)):
                part, other = state.parts.get(waiting), state.parts.get(lost)
                if part is None or other is None or other.operational or not part.levels:
                    continue
                for work in part.levels[0].works:
                    if state.standings[work.set].progress is Progress.SCHEDULED:
                        why = f"{waiting} cannot be taken out, since its peer {lost} is lost"
                        return SetUndoBegan(at_ms=state.at_ms, set=work.set, reason=why)
        return None


def _someone_returns(state: State) -> bool:
    """Whether a method has kept something off that can be put back: it would be understood."""
    off = [
        id_
        for id_, one in state.parts.items()
        if one.present and one.operational and not one.active
    ]
    met = in_the_way(state) if off else {}
    return any(one not in met for one in off)


def instruction(decision: Event) -> Batch | VmBatch | None:
    """Say what a decision, once it is written down, asks of the engine."""
    return decision.batch if isinstance(decision, BatchStarted | VmBatchStarted) else None
