"""The identity of a scheduled computation sees every field, and nothing else."""

from __future__ import annotations

import copy
import math
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pytest

import refcomp
from refcomp.foundation.dtype import DType
from refcomp.ir.expr import Expr, IntImm, Var
from refcomp.ir.node import Node
from refcomp.ir.stmt import Block, Stmt
from refcomp.schedule.identity import LINE, REDUNDANT, schedule_identity
from refcomp.te.operation import ComputeOp
from refcomp.te.tensor import IterVar, Tensor


def _rows(constant=1.0, name="B", dtype="float32", tag="", attrs=None):
    a = refcomp.placeholder((4, 8), dtype, name="A")
    b = refcomp.compute((4, 8), lambda i, j: a[i, j] + constant, name, tag, attrs)
    return refcomp.create_schedule(b), [a, b]


def _tiled():
    n = refcomp.var("n")
    a = refcomp.placeholder((n, 8), name="A")
    b = refcomp.compute((n, 8), lambda i, j: a[i, j] * 2.0, name="B", attrs={"width": (4, None)})
    c = refcomp.compute((n, 8), lambda i, j: b[i, j] - 1.0, name="C", tag="minus")
    s = refcomp.create_schedule(c)
    outer, inner = s[c].split(c.op.axis[0], factor=4)
    s[c].vectorize(s[c].split(c.op.axis[1], nparts=2)[1])
    s[b].compute_at(s[c], outer)
    s[b].double_buffer()
    s[b].storage_align(b.op.axis[0], factor=16, offset=1)
    s[b].set_scope("local")
    s[c].pragma(inner, "auto_unroll_max_step", 16)
    s[c].prefetch(b, inner, 2)
    copied = s.cache_read(a, "local", [b])
    s[copied].compute_at(s[b], b.op.axis[0])
    return s, [a, c, n]


def _summed():
    a = refcomp.placeholder((4, 32), name="A")
    k = refcomp.reduce_axis((0, 32), name="k")
    b = refcomp.compute((4,), lambda i: refcomp.sum(a[i, k], k, where=k > 1), name="B")
    s = refcomp.create_schedule(b)
    s[b].bind(b.op.axis[0], refcomp.thread_axis("blockIdx.x"))
    thread = refcomp.thread_axis("threadIdx.x")
    s[b].bind(k, thread)
    s[b].set_store_predicate(thread.var == 0)
    return s, [a, b]


def _argmax():
    def greater(x: Any, y: Any) -> tuple[Any, Any]:
        return refcomp.select(x[1] >= y[1], x[0], y[0]), refcomp.maximum(x[1], y[1])

    def identity(index: str, value: str) -> tuple[Any, Any]:
        return refcomp.const(-1, index), refcomp.min_value(value)

    argmax = refcomp.comm_reducer(greater, identity, name="argmax")
    a = refcomp.placeholder((4, 8), name="A")
    k = refcomp.reduce_axis((0, 8), name="k")
    outputs = refcomp.compute((4,), lambda i: argmax((k.var, a[i, k]), axis=k), name="I")
    s = refcomp.create_schedule(outputs[0].op)
    s[outputs[0]].fuse(*s[outputs[0]].split(outputs[0].op.axis[0], factor=2))
    s[outputs[0]].env_threads([refcomp.thread_axis((0, 4), "threadIdx.x")])
    return s, [a, *outputs]


def _scanned():
    x = refcomp.placeholder((5, 3), name="X")
    state = refcomp.placeholder((5, 3), name="state")
    init = refcomp.compute((1, 3), lambda t, i: x[t, i], name="init")
    update = refcomp.compute((5, 3), lambda t, i: state[t - 1, i] + x[t, i], name="update")
    scan = refcomp.scan(init, update, state, inputs=[x], name="S")
    return refcomp.create_schedule(scan), [x, scan]


def _extern():
    a = refcomp.placeholder((4,), name="A")

    def body(ins: Any, outs: Any) -> Stmt:
        builder = refcomp.ir_builder.create()
        with builder.for_range(0, 4, name="i", for_type="unroll") as i:
            builder.emit(outs[0].vstore(i, ins[0].vload(i) * 2.0))
        builder.emit(refcomp.call_packed("seen", outs[0]))
        return builder.get()

    b = refcomp.extern((4,), [a], body, name="B", tag="opaque")
    return refcomp.create_schedule(b), [a, b]


def _tensorized():
    a = refcomp.placeholder((8,), name="A")
    b = refcomp.compute((8,), lambda i: a[i] * 2.0, name="B")
    one = refcomp.placeholder((4,), name="a")
    two = refcomp.compute((4,), lambda i: one[i] * 2.0, name="b")

    def call(ins: Any, outs: Any) -> Stmt:
        return refcomp.call_extern("int32", "double_four", outs[0], ins[0])

    intrin = refcomp.decl_tensor_intrin(two.op, call, name="double_four")
    s = refcomp.create_schedule(b)
    s[b].tensorize(s[b].split(b.op.axis[0], factor=4)[1], intrin)
    return s, [a, b]


@refcomp.hybrid.script
def _doubled(a):
    result = output_tensor((4,), "float32")  # noqa: F821
    for i in range(4):
        result[i] = a[i] * 2.0
    return result


def _hybrid():
    a = refcomp.placeholder((4,), name="A")
    b = _doubled(a)
    return refcomp.create_schedule(b), [a, b]


_MAKERS = (_tiled, _summed, _argmax, _scanned, _extern, _tensorized, _hybrid)


@pytest.mark.parametrize("make", _MAKERS)
def test_equal_programs_have_equal_identities(make):
    first = schedule_identity(*make())
    assert first is not None and first == schedule_identity(*make())


@pytest.mark.parametrize("make", _MAKERS)
def test_copies_have_the_identity_of_the_original(make):
    schedule, args = make()
    outputs, stages, copied = copy.deepcopy((schedule.outputs, schedule.stages, args))
    clone = copy.copy(schedule)
    clone.outputs, clone.stages = outputs, stages
    assert schedule_identity(clone, copied) == schedule_identity(schedule, args)


def test_all_programs_have_different_identities():
    identities = {schedule_identity(*make()) for make in _MAKERS}
    assert len(identities) == len(_MAKERS)


def test_shared_subtrees_do_not_count():
    def made(shared):
        a = refcomp.placeholder((4,), name="A")

        def body(i):
            x = a[i] + 1.0
            return x * (x if shared else a[i] + 1.0)

        b = refcomp.compute((4,), body, name="B")
        return schedule_identity(refcomp.create_schedule(b), [a, b])

    assert made(True) == made(False)


def _values(root: object) -> Iterator[object]:
    """All objects with fields that `root` reaches, each once."""
    seen: dict[int, object] = {}
    stack = [root]
    while stack:
        value = stack.pop()
        if isinstance(value, tuple | list):
            stack.extend(value)
        elif isinstance(value, dict):
            stack.extend((*value, *value.values()))
        elif (is_dataclass(value) or isinstance(value, Tensor)) and id(value) not in seen:
            seen[id(value)] = value
            yield value
            stack.extend(getattr(value, name) for name in _field_names(value))


def _field_names(value: Any) -> list[str]:
    return list(value.__slots__) if isinstance(value, Tensor) else [f.name for f in fields(value)]


def _changed(value: Any) -> Any:
    """Another value of the type of a field."""
    match value:
        case bool():
            return not value
        case int():
            return value + 1
        case float():
            return 3.0 if math.isinf(value) else value + 1.0
        case str():
            return value + "x"
        case None:
            return 7
        case DType():
            return DType("uint", 64)
        case tuple() if value:
            return value[:-1]
        case tuple():
            return (7,)
        case list():
            return [*value, 7]
        case dict():
            return {**value, "added": 7}
        case Expr():
            return Var("other", value.dtype)
        case Stmt():
            return Block(())
        case Node() | IterVar() | Tensor():
            return copy.copy(value)
        case _:
            return None


def _unnoticed(make: Any, **options: bool) -> tuple[set[str], set[str]]:
    """The fields of which a change is not noticed, and all fields that the program has."""
    schedule, args = make()
    before = schedule_identity(schedule, args, **options)
    unnoticed = set()
    names = set()
    for value in list(_values((schedule.outputs, schedule.stages, args))):
        for field in _field_names(value):
            name = f"{type(value).__name__}.{field}"
            names.add(name)
            old = getattr(value, field)
            object.__setattr__(value, field, _changed(old))
            if schedule_identity(schedule, args, **options) == before:
                unnoticed.add(name)
            object.__setattr__(value, field, old)
    assert schedule_identity(schedule, args, **options) == before
    return unnoticed, names


@pytest.mark.parametrize("make", _MAKERS)
def test_each_field_counts(make):
    unnoticed, names = _unnoticed(make, with_lines=True)
    assert unnoticed == REDUNDANT & names


@pytest.mark.parametrize("make", _MAKERS)
def test_lines_count_only_on_request(make):
    unnoticed, names = _unnoticed(make)
    lines = {name for name in names if name.endswith(f".{LINE}")}
    assert unnoticed == (REDUNDANT & names) | lines and lines


def test_the_programs_of_these_tests_have_the_fields_of_all_classes():
    seen = set()
    for make in _MAKERS:
        schedule, args = make()
        seen |= {type(value) for value in _values((schedule.outputs, schedule.stages, args))}
    homes = ("refcomp.te.", "refcomp.schedule.stage", "refcomp.schedule.relations")
    # The records that differentiation works with stand in no computation.
    classes = _dataclasses_in(homes, without="refcomp.te.gradients.")
    # The base of all operations, a page of the manual, and what properties return.
    views = {"AxisRange", "IterVarAttr", "Singleton"}
    assert {cls.__name__ for cls in classes - seen} == {"Operation", "MathsPage"} | views


def _dataclasses_in(homes: tuple[str, ...], without: str) -> set[type]:
    found = set()
    for name, module in list(sys.modules.items()):
        if name.startswith(homes) and not name.startswith(without):
            for value in vars(module).values():
                if isinstance(value, type) and is_dataclass(value) and value.__module__ == name:
                    found.add(value)
    return found


def test_values_of_one_hash_in_python_differ():
    identities = {
        schedule_identity(*_rows(attrs={"value": value}))
        for value in (1, 1.0, True, "1", b"1", 0.0, -0.0, 0, False, None, (), "", np.float32(1), 1j)
    }
    assert len(identities) == 14 and None not in identities


def test_what_reaches_the_text_counts():
    base = schedule_identity(*_rows())
    others = [_rows(2.0), _rows(name="C"), _rows(dtype="float64"), _rows(tag="t")]
    identities = {base, *(schedule_identity(*other) for other in others)}
    assert len(identities) == 5


def test_the_order_of_arguments_and_of_primitives_counts():
    schedule, args = _rows()
    assert schedule_identity(schedule, args) != schedule_identity(schedule, args[::-1])
    forward, (_, b) = _rows()
    forward[b].unroll(b.op.axis[0])
    assert schedule_identity(forward, args) != schedule_identity(schedule, args)


def test_a_computation_that_keeps_a_function_has_no_identity():
    assert schedule_identity(*_rows(attrs={"choose": lambda: 1})) is None
    assert schedule_identity(*_rows(attrs={"names": {object()}})) is None
    assert schedule_identity(*_rows(attrs={"array": np.array([object()])})) is None


def test_attributes_of_a_subclass_of_the_users_are_not_forgotten():
    class Labelled(ComputeOp):
        pass

    schedule, args = _rows()
    op = args[1].op
    labelled = Labelled(op.name, op.line, op.axis, op.body)
    labelled.label = "unknown"
    schedule.outputs = (labelled,)
    assert schedule_identity(schedule, args) is None


def test_data_of_attributes_count():
    def identity(value: object) -> str | None:
        return schedule_identity(*_rows(attrs={"value": value}))

    assert identity(np.arange(3)) == identity(np.arange(3)) != identity(np.arange(4))
    assert identity(frozenset("ab")) == identity(frozenset("ba")) != identity(frozenset("ac"))
    assert identity(np.dtype("f4")) not in (identity(np.dtype("f8")), None)
    assert identity({"a": 1, "b": 2}) != identity({"b": 2, "a": 1})
    assert identity(IntImm(1, DType("int", 32))) != identity(IntImm(1, DType("int", 64)))


def test_deep_and_long_computations_have_identities():
    a = refcomp.placeholder((4,), name="A")
    value: Any = a[0]
    for _ in range(2_500):
        value = value + 1.0
    b = refcomp.compute((4,), lambda i: value, name="B")
    assert schedule_identity(refcomp.create_schedule(b), [a, b]) is not None
    tensor = a
    for number in range(1_500):
        tensor = refcomp.compute((4,), lambda i, t=tensor: t[i] + 1.0, name=f"T{number}")
    assert schedule_identity(refcomp.create_schedule(tensor), [a, tensor]) is not None


def test_a_computation_that_is_too_deep_to_be_lowered_has_no_identity():
    a = refcomp.placeholder((4,), name="A")
    b = refcomp.compute((4,), lambda i: a[i], name="B")
    value: Any = a[0]
    for _ in range(12_000):
        value = Expr.__add__(value, a[0])
    b.op.body = (value,)
    assert schedule_identity(refcomp.create_schedule(b), [a, b]) is None


_PROGRAM = """
import refcomp as rc
from refcomp.schedule.identity import schedule_identity
A = rc.placeholder((4,), name="A")
B = rc.compute((4,), lambda i: A[i] + 1.0, name="B", attrs={"set": frozenset("abcdef")})
print(schedule_identity(rc.create_schedule(B), [A, B]))
"""


def test_processes_agree():
    runs = {
        subprocess.run(
            [sys.executable, "-c", _PROGRAM],
            env={"PYTHONHASHSEED": hash_seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    }
    assert len(runs) == 1 and b"None" not in runs.pop()
