"""The random functions keep what they promise: they run, and their text means the same."""

from collections import Counter
from functools import cache

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings

from refcomp.ir import buffer, expr, stmt
from refcomp.ir.func import PrimFunc
from refcomp.ir.node import Node
from refcomp.ir.parser import parse_func
from refcomp.ir.printer import print_func
from refcomp.ir.rewrite import walk
from refcomp.oracle.lockstep.interpret import interpret
from tests.strategies.funcs import assert_same_values, make_arguments, runnable_funcs

LEVELS = ("nested", "flat", "host")


def run(func: PrimFunc, symbols: dict, num_tasks: int = 3) -> list[np.ndarray]:
    """The arguments, as f64, after the function ran on them."""
    arguments = make_arguments(func, symbols)
    interpret(func, arguments, num_tasks=num_tasks)
    return as_floats(arguments)


def as_floats(arguments: list) -> list[np.ndarray]:
    return [np.asarray(argument, np.float64) for argument in arguments]


def are_same(a: list[np.ndarray], b: list[np.ndarray]) -> bool:
    return all(np.array_equal(x, y, equal_nan=True) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("level", LEVELS)
def test_they_run_and_neither_their_text_nor_the_number_of_tasks_matters(level: str):
    @given(runnable_funcs(level, rare=True))
    def check(drawn: tuple[PrimFunc, dict]) -> None:
        func, symbols = drawn
        again = parse_func(print_func(func))
        renamed = dict(zip(again.symbols, symbols.values(), strict=True))
        assert are_same(run(func, symbols), run(again, renamed, num_tasks=1))

    check()


@cache
def sample(level: str) -> list[tuple[PrimFunc, dict]]:
    drawn: list[tuple[PrimFunc, dict]] = []

    @settings(max_examples=250)
    @given(runnable_funcs(level, rare=True))
    def draw(func: tuple[PrimFunc, dict]) -> None:
        drawn.append(func)

    draw()
    return drawn


def classes_in(level: str) -> Counter[type[Node]]:
    """In how many functions of the sample each class of node is found."""
    return Counter(cls for func, _ in sample(level) for cls in set(map(type, walk(func))))


@pytest.mark.parametrize("level", LEVELS)
def test_many_of_them_change_their_outputs(level: str, record_property):
    changed = sum(
        not are_same(as_floats(make_arguments(func, symbols)), run(func, symbols))
        for func, symbols in sample(level)
    )
    counts = ", ".join(f"{cls.__name__} {n}" for cls, n in classes_in(level).most_common())
    record_property("summary", f"random {level} functions: {changed} change outputs; {counts}")
    assert changed >= len(sample(level)) // 4


def node_classes(*modules: object) -> set[type[Node]]:
    found = [cls for module in modules for cls in vars(module).values() if isinstance(cls, type)]
    nodes = [c for c in found if issubclass(c, Node) and "__dataclass_fields__" in vars(c)]
    return set(nodes) - {buffer.Buffer}


# Random kernels and launches are made by strategies of their own.
OF_DEVICES = {stmt.Barrier, stmt.AtomicUpdate, stmt.LaunchKernel}


@pytest.mark.parametrize("level", LEVELS)
def test_all_statements_of_a_level_are_made(level: str):
    foreign = {
        "nested": {stmt.Store, stmt.ParallelRegion},
        "flat": {stmt.BufferStore, stmt.ParallelRegion},
        "host": {stmt.BufferStore, stmt.Pragma},
    }
    statements = {c for c in node_classes(stmt) if issubclass(c, stmt.Stmt)} - OF_DEVICES
    expected = statements - foreign[level]
    assert expected <= set(classes_in(level)) and not foreign[level] & set(classes_in(level))


def test_all_classes_of_nodes_are_made():
    made = {cls for level in LEVELS for cls in classes_in(level)}
    assert node_classes(expr, buffer, stmt) - made == OF_DEVICES


def test_values_are_compared_with_nan_equal_to_nan_in_every_dtype():
    for dtype in (np.float16, np.float32, ml_dtypes.bfloat16):
        nan, one = np.array(np.nan, dtype), np.array([1, np.nan], dtype)
        assert_same_values([nan, one], [nan.copy(), one.copy()])
        with pytest.raises(AssertionError, match="here"):
            assert_same_values([one], [one[::-1]], "here")
