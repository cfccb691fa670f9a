"""Laws of sets of hosts and of the times of their states, against plain definitions."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.sim.jobs.fluid import TaskFactory
from equipoise.sim.jobs.host_set import bits_of, format_bits, hosts_of, lowest_bits, parse_host_set
from equipoise.sim.jobs.hosts import HostStates, JobHostState
from equipoise.sim.jobs.platform import uniform_platform

numbers = st.sets(st.integers(0, 300), max_size=60) | st.integers(0, 40).map(
    lambda size: set(range(7, 7 + size))
)


@given(members=numbers, data=st.data())
def test_the_lowest_members_are_the_first_of_the_sorted_ones(
    members: set[int], data: st.DataObject
) -> None:
    count = data.draw(st.integers(0, len(members)))
    assert lowest_bits(bits_of(members), count) == bits_of(sorted(members)[:count])


@given(members=numbers)
def test_a_set_becomes_numbers_and_text_and_back(members: set[int]) -> None:
    bits = bits_of(members)
    assert hosts_of(bits) == tuple(sorted(members))
    assert parse_host_set(format_bits(bits)) == tuple(sorted(members))


@given(
    changes=st.lists(
        st.tuples(
            st.lists(st.integers(0, 5), unique=True),
            st.sampled_from(list(JobHostState)),
            st.floats(0.0, 9.0),
        ),
        max_size=12,
    )
)
@settings(max_examples=200)
def test_times_and_counts_of_states_are_sums_over_single_hosts(
    changes: list[tuple[list[int], JobHostState, float]],
) -> None:
    platform = uniform_platform(6)
    states = HostStates(platform, TaskFactory(platform), energy=False)
    state, since_s = [JobHostState.IDLE] * 6, [0.0] * 6
    total_s = [0.0] * len(JobHostState)
    now_s = 0.0
    for hosts, following, passed_s in changes:
        now_s += passed_s
        states.change(hosts, following, now_s)
        for number in hosts:
            total_s[state[number]] += now_s - since_s[number]
            state[number], since_s[number] = following, now_s
    assert states.state == state
    assert states.total_s == total_s  # with equal bits: replays depend on it
    assert states.counts == [state.count(kind) for kind in JobHostState]
