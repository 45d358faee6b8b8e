"""Memory plans: buffers in use at the same time never overlap, and others share."""

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from refcomp.graph.memory_plan import ALIGNMENT, Request, least_memory, plan_memory

lives = st.tuples(st.integers(0, 9), st.integers(0, 5)).map(lambda t: (t[0], t[0] + t[1]))
requests = st.lists(st.builds(lambda size, life: Request(size, *life), st.integers(0, 500), lives))


@given(requests)
def test_no_two_live_buffers_overlap(wanted):
    plan = plan_memory(wanted)
    ends = [o + max(1, r.size) for o, r in zip(plan.offsets, wanted, strict=True)]
    assert all(offset % ALIGNMENT == 0 for offset in plan.offsets)
    assert max(ends, default=0) <= plan.total
    for i, j in combinations(range(len(wanted)), 2):
        together = wanted[i].first <= wanted[j].last and wanted[j].first <= wanted[i].last
        apart = ends[i] <= plan.offsets[j] or ends[j] <= plan.offsets[i]
        assert apart or not together


def test_a_chain_needs_two_buffers() -> None:
    chain = [Request(640, k, k + 1) for k in range(8)]
    assert plan_memory(chain).total == 2 * 640


def test_nothing_needs_nothing() -> None:
    assert plan_memory([]).total == 0
    assert plan_memory([Request(0, 0, 0), Request(0, 0, 0)]).offsets == (0, ALIGNMENT)


@given(requests)
def test_no_plan_is_smaller_than_what_lives_at_once(wanted):
    plan = plan_memory(wanted)
    assert plan.total >= least_memory(wanted)
    steps = range(16)
    live = [
        sum(max(1, -(-r.size // 64)) * 64 for r in wanted if r.first <= k <= r.last) for k in steps
    ]
    assert least_memory(wanted) == max(live, default=0)


def test_another_order_is_tried_where_size_alone_is_not_enough() -> None:
    """By size, c lies on a; but only b lives as long as both."""
    a, b, c = Request(640, 0, 1), Request(576, 1, 2), Request(512, 2, 3)
    d = Request(576, 3, 4)
    wanted = [a, b, c, d, Request(64, 0, 4)]
    assert plan_memory(wanted).total == least_memory(wanted)


@given(requests)
def test_plans_are_near_the_least(wanted):
    """Of random requests; those of networks are nearer."""
    assert plan_memory(wanted).total <= 1.5 * least_memory(wanted)
