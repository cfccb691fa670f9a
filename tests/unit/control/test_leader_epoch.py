"""Leader epochs: which actions a world refuses."""

from __future__ import annotations

from equipoise.control.leader_epoch import next_leader_epoch, stale_epoch_reason


def test_an_action_of_an_earlier_epoch_is_stale_and_all_others_are_not() -> None:
    for highest in range(4):
        for action in range(4):
            assert bool(stale_epoch_reason(action, highest)) == (action < highest)


def test_a_new_controller_makes_the_actions_of_the_one_before_stale() -> None:
    for current in range(4):
        assert stale_epoch_reason(current, next_leader_epoch(current))
        assert not stale_epoch_reason(next_leader_epoch(current), next_leader_epoch(current))
