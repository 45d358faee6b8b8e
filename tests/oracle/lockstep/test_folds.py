"""Which loops are folds, and that folding step by step is what a loop does."""

import numpy as np
import pytest

from refcomp.ir.parser import parse_func
from refcomp.ir.rewrite import walk, with_fields
from refcomp.ir.stmt import BufferStore, For
from refcomp.oracle.interpreter.interpret import InterpretError
from refcomp.oracle.lockstep import statements
from refcomp.oracle.lockstep.folds import fold_of
from refcomp.oracle.lockstep.interpret import interpret
from tests.oracle.lockstep.batches import same_bits


def _func(body, kind=""):
    return parse_func(
        f"func f(A: f32[n, m], T: f32[n] out, I: i64[n]) "
        f"{{ for i in range(n) {{ for k in range(m) {kind} {{ {body} }} }} }}"
    )


def _fold(body, kind=""):
    loops = [node for node in walk(_func(body, kind).body) if isinstance(node, For)]
    return fold_of(loops[1])


FOLDS = [
    "T[i] = T[i] + A[i, k]",
    "T[i] = T[i] * exp(A[i, k])",
    "T[i] = A[i, k] - T[i]",
    "T[i] = max(T[i], 1.0f32 / A[i, k])",
    "T[i] = T[i] - 0.5f32",
    "T@[i] = T@[i] + A@[i * m + k]",
    "T[I[i]] = T[I[i]] + f32(k)",
]
OTHERS = [
    "T[i] = A[i, k] + A[i, 0]",
    "T[i] = T[i] + T[n - 1 - i]",  # what another thread makes
    "T[i] = T[0] + A[i, k]",
    "T[k] = T[k] + A[i, k]",
    "T[i] = sqrt(T[i] + A[i, k])",
    "T[i64(T[i])] = T[i64(T[i])] + A[i, k]",
    "T[i] = T[i] + A[i, k] T[i] = T[i] + 1.0f32",
    "if (k > 1) { T[i] = T[i] + A[i, k] }",
]


def test_loops_that_fold():
    assert all(_fold(body) is not None for body in FOLDS)


def test_loops_that_do_not():
    assert not any(_fold(body) for body in OTHERS)
    assert _fold(FOLDS[0], "parallel") is None


def test_a_load_of_another_rank_is_no_fold():
    func = _func("T[i] = T[i] + A[i, k]")
    store = next(node for node in walk(func.body) if isinstance(node, BufferStore))
    load = with_fields(store.value.a, indices=(store.indices[0], store.indices[0]))
    body = with_fields(store, value=with_fields(store.value, a=load))
    loop = next(node for node in walk(func.body) if isinstance(node, For) and node.body is store)
    assert fold_of(loop) is not None
    assert fold_of(with_fields(loop, body=body)) is None


def _outcome(func, in_step):
    rng = np.random.default_rng(1)
    a = rng.standard_normal((7, 11)).astype(np.float32)
    t = rng.standard_normal(7).astype(np.float32)
    try:
        interpret(func, [a, t, np.arange(7)[::-1].copy()], in_step=in_step)
    except InterpretError as error:
        return str(error), t
    return "", t


@pytest.mark.parametrize("most", [1, 20, 1 << 18])
@pytest.mark.parametrize("body", [*FOLDS, *OTHERS])
def test_the_bits_of_the_plain_interpreter(body, most, monkeypatch):
    monkeypatch.setattr(statements, "_MAX_VALUES", most)
    func = _func(body)
    (told, expected), (found, actual) = _outcome(func, None), _outcome(func, 1)
    assert told == found
    assert same_bits(actual, expected)


def test_folds_are_taken_where_threads_are_few(monkeypatch):
    taken = []
    run_fold = statements._run_fold

    def noted(*args):
        taken.append(args)
        run_fold(*args)

    monkeypatch.setattr(statements, "_run_fold", noted)
    _outcome(_func(FOLDS[0]), 1)
    assert len(taken) == 1
    monkeypatch.setattr(statements, "_MAX_FOLD_THREADS", 6)
    _outcome(_func(FOLDS[0]), 1)
    assert len(taken) == 1
