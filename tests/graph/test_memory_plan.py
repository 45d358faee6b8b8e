"""Memory plans: buffers in use at the same time never overlap, and others share."""

from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from refcomp.graph.memory_plan import ALIGNMENT, Request, least_memory, plan_in_order, plan_memory

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
def test_no_plan_is_below_the_lower_bound(wanted):
    assert plan_memory(wanted).total >= least_memory(wanted)


def test_the_lower_bound_is_what_lives_at_once() -> None:
    wanted = [Request(100, 0, 3), Request(64, 2, 5), Request(640, 4, 4), Request(1, 5, 5)]
    assert least_memory(wanted) == 64 + 640
    assert least_memory([]) == 0


def test_the_best_of_several_orders_is_kept() -> None:
    for seed in range(40):
        rng = np.random.default_rng(seed)
        firsts = rng.integers(0, 8, 8)
        wanted = [
            Request(64 * int(size), int(first), int(first + life))
            for first, size, life in zip(
                firsts, rng.integers(1, 9, 8), rng.integers(0, 5, 8), strict=True
            )
        ]
        by_size = plan_in_order(wanted, lambda request: (-request.size,))
        best = plan_memory(wanted)
        assert best.total <= by_size.total
        if best.total < by_size.total:
            return
    raise AssertionError("no order was better than that by size")
