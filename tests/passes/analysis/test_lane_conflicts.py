import pytest
from hypothesis import given
from hypothesis import strategies as st

from refcomp.foundation.dtype import F32, I64
from refcomp.ir.buffer import Buffer, Load
from refcomp.ir.expr import Add, Broadcast, IntImm, Let, Mul, Ramp, Var
from refcomp.ir.promotion import const
from refcomp.ir.stmt import Block, For, Store
from refcomp.passes.analysis.lane_conflicts import affine, may_conflict

N, K = Var("n", I64), Var("k", I64)
A, B = Buffer("A", F32, (N,)), Buffer("B", F32, (N,))
LANES = 4


def _int(value):
    return IntImm(value, I64)


def _lanes(base, stride=1):
    return Ramp(base if not isinstance(base, int) else _int(base), _int(stride), LANES)


def _store(index, value=None, buffer=B):
    return Store(buffer, index, value if value is not None else const(0.0, F32.with_lanes(LANES)))


def _conflict(*stmts, private=()):
    return may_conflict(Block(stmts), LANES, frozenset(private))


def _loop(body):
    return For(K, _int(0), N, "serial", body)


def test_affine():
    base, stride = affine(_lanes(N, 2))
    assert (base, stride.value) == (N, 2)
    base, stride = affine(Broadcast(N, LANES))
    assert (base, stride.value) == (N, 0)
    assert affine(N)[0] is N
    assert affine(Mul(_lanes(0), _lanes(0))) is None


@pytest.mark.parametrize(("base", "stride"), [(0, 1), (5, 1), (0, -1), (2, 3)])
def test_the_same_element_per_lane(base, stride):
    index = _lanes(base, stride)
    assert not _conflict(_store(index, Load(B, index)))


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (_lanes(1), True),
        (_lanes(-3), True),
        (_lanes(4), False),
        (_lanes(-4), False),
        (_lanes(0, 2), True),
        (_lanes(N), True),
        (Mul(_lanes(0), _lanes(0)), True),
        (Broadcast(_int(9), LANES), True),
        (_int(9), True),
    ],
)
def test_a_store_and_a_load_elsewhere(other, expected):
    assert _conflict(_store(_lanes(0), Load(B, other))) == expected
    assert _conflict(_store(other, Load(B, _lanes(0)))) == expected


def test_lanes_that_interleave_do_not_meet():
    even, odd = _lanes(N, 2), _lanes(Add(N, _int(1)), 2)
    assert not _conflict(_store(even, Load(B, odd)))
    assert _conflict(_store(even, Load(B, _lanes(Add(N, _int(2)), 2))))


def test_loads_alone_and_other_buffers_never_conflict():
    loads = Load(A, _lanes(0)) + Load(A, _lanes(1))
    assert not _conflict(_store(_lanes(0), loads))
    assert _conflict(_store(_lanes(0), loads, buffer=A))


def test_private_memory_never_conflicts():
    stmt = _store(_lanes(0), Load(B, _lanes(1)))
    assert _conflict(stmt)
    assert not _conflict(stmt, private=[B])


def test_one_store_that_runs_once_may_meet_itself():
    assert not _conflict(_store(Mul(_lanes(0), _lanes(0))))
    assert not _conflict(_store(Broadcast(_int(0), LANES)))
    assert _conflict(_loop(_store(Mul(_lanes(0), _lanes(0)))))
    assert _conflict(_loop(_store(Broadcast(_int(0), LANES))))
    assert _conflict(_store(_int(0)), _store(_int(0)))


@pytest.mark.parametrize(
    ("base", "expected"),
    [(K * 4, False), (K * 8 + N, False), (K, True), (K * 2, True), (K * N, True), (N, False)],
)
def test_steps_of_an_inner_loop(base, expected):
    """Two steps of the loop may touch the same lanes' elements only if whole vectors lie apart."""
    assert _conflict(_loop(_store(_lanes(base)))) == expected


def test_a_let_in_an_inner_loop_has_a_value_per_step():
    t = Var("t", I64)
    index = Let(t, K * 4, t)
    assert _conflict(_loop(_store(_lanes(index))))


@given(*[st.integers(-6, 6)] * 2, st.integers(-3, 3), st.integers(-3, 3))
def test_never_wrong(base, other_base, stride, other_stride):
    """Held against counting: if two different lanes meet, the answer is yes."""
    first, second = _lanes(base, stride), _lanes(other_base, other_stride)
    meet = any(
        base + stride * i == other_base + other_stride * j
        for i in range(LANES)
        for j in range(LANES)
        if i != j
    )
    answer = _conflict(_store(first, Load(B, second)))
    assert answer or not meet
    if stride == other_stride:
        assert answer == meet
