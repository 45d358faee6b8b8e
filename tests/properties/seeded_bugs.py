"""Deliberate compiler bugs, each one line of the compiler's source replaced by a wrong one.

Switching a bug on compiles the changed function beside the real one and puts its code into the
real one, so that everybody who imported it meets the bug; switching it off puts the right code
back. A bug whose line is not found exactly once is an error: it would test nothing.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from operator import attrgetter
from textwrap import dedent

from tests.strategies.computation import DTYPES


@dataclass(frozen=True)
class SeededBug:
    """In `function` (a method as Class.method) of `module`, `right` becomes `wrong`.

    The hunt draws computations of `kinds` and `dtypes` only, where the bug can show at all.
    """

    name: str
    module: str
    function: str
    right: str
    wrong: str
    kinds: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = DTYPES


@contextmanager
def switched_on(bug: SeededBug) -> Iterator[None]:
    """The bug is in the compiler inside the `with` block."""
    module = import_module(bug.module)
    function = inspect.unwrap(attrgetter(bug.function)(module))
    text = dedent(inspect.getsource(function))
    assert text.count(bug.right) == 1, f"{bug.name}: its line is not in {bug.function} once"
    namespace = dict(vars(module))
    changed = "from __future__ import annotations\n" + text.replace(bug.right, bug.wrong)
    exec(compile(changed, f"<seeded {bug.name}>", "exec"), namespace)  # noqa: S102  our own text
    right_code = function.__code__
    function.__code__ = namespace[function.__name__].__code__
    try:
        yield
    finally:
        function.__code__ = right_code


_LOWER, _PASSES = "refcomp.lowering", "refcomp.passes"
_RFACTOR = "refcomp.schedule.primitives.rfactor"

# Found by the interpreter, which runs what every pass made: none of them can harm this process.
INTERPRETED = (
    SeededBug(
        *("lost tail guard", "refcomp.schedule.axes", "_needed"),
        *("if not prove(guard.condition, facts):", "if False:"),
    ),
    SeededBug(
        *("guard one too far", "refcomp.schedule.axes", "root_indices"),
        *("LT(value, extents[relation.parent])", "LT(value, extents[relation.parent] + 1)"),
    ),
    SeededBug(
        *("wrong step of a split", "refcomp.schedule.axes", "root_indices"),
        *("step = extents[relation.inner]", "step = extents[relation.outer]"),
    ),
    SeededBug(
        *("fused indices mixed up", "refcomp.schedule.relations", "Fuse.indices"),
        *(
            "FloorDiv(fused, inner_extent), FloorMod(fused, inner_extent)",
            "FloorMod(fused, inner_extent), FloorDiv(fused, inner_extent)",
        ),
    ),
    SeededBug(
        *("split rounds down", "refcomp.schedule.relations", "ceil_div"),
        *("value + (divisor - 1)", "value"),
    ),
    SeededBug(
        *("missing initialisation of a reduction", f"{_LOWER}.nest", "_lower_reduction"),
        *("block([init, update])", "block([update])"),
    ),
    SeededBug(
        *("tail guards of inner loops lost", f"{_LOWER}.nest", "_lower_reduction"),
        *("init = _initialisation(", "deeper = []\n    init = _initialisation("),
    ),
    SeededBug(
        *("condition of a reduction lost", f"{_LOWER}.nest", "_update"),
        *("if as_int(condition):", "if True:"),
        kinds=("fold",),
    ),
    SeededBug(
        *("tuple stored piece by piece", f"{_LOWER}.together", "store_together"),
        *("if len(stores) == 1:\n        return stores[0]", "return block(stores)"),
    ),
    SeededBug(
        *("inlined at the consumer's index", f"{_LOWER}.inline", "inline_reads"),
        *("substitute(value, at)", "value"),
    ),
    SeededBug(
        *("halo of a region lost", "refcomp.lowering.bounds.ranges", "union"),
        *("greatest(a.high, b.high, facts)", "a.high"),
        kinds=("stencil", "padded stencil", "window"),
    ),
    SeededBug(
        *("region one element short", "refcomp.lowering.bounds.regions", "_extent"),
        *("found.high - found.low + 1", "found.high - found.low"),
    ),
    SeededBug(
        *("region read at absolute indices", f"{_LOWER}.nest", "_element"),
        *("index - origin", "index"),
    ),
    SeededBug(
        *("attached stage computed beyond its tensor", "refcomp.schedule.axes"),
        *("root_indices", "guards += _domain_guards(stage, values)", "pass"),
    ),
    SeededBug(
        *("loops of the reader taken to stand still", "refcomp.lowering.bounds.regions"),
        *(
            "_Needs._range_of_loop",
            "[loop.axis], extent, ",
            "[loop.axis], extent * 0 + 1, ",
        ),
    ),
    SeededBug(
        *("copy written where the tensor is", "refcomp.schedule.primitives.cache_write"),
        *("cache_write", "substitute(value, fresh)", "value"),
    ),
    SeededBug(
        *("wrong rfactor identity", _RFACTOR, "_Parts._bodies"),
        *(
            "IfThenElseExpr(condition, *pair) for pair in pairs",
            "IfThenElseExpr(condition, a, b + 1) for a, b in pairs",
        ),
        kinds=("fold",),
    ),
    SeededBug(
        *("tail of a factored reduction lost", _RFACTOR, "_Parts._bodies"),
        *("if guards:", "if False:"),
        kinds=("fold", "matmul", "argmax"),
    ),
    SeededBug(
        *("factored axis read as the first", _RFACTOR, "_reduce_the_rest"),
        *("[*op.axis[:position], rest, *op.axis[position:]]", "[rest, *op.axis]"),
        kinds=("fold", "matmul", "argmax"),
    ),
    SeededBug(
        *("wrong stride", f"{_PASSES}.flatten_storage", "_offset"),
        *("inner_extents = buffer.shape[1:]", "inner_extents = buffer.shape[:-1]"),
    ),
    SeededBug(
        *("off by one in unroll", f"{_PASSES}.unroll_loops", "_visit"),
        *("for step in range(copies):", "for step in range(copies - 1):"),
    ),
    SeededBug(
        *("mask of a vector store lost", f"{_PASSES}.vectorize_loops", "_Widening._store"),
        *("self.with_mask(predicate)", "None"),
    ),
    SeededBug(
        *("mask of a vector load lost", f"{_PASSES}.vectorize_loops", "_Widening._load"),
        *("self.with_mask(predicate))", "predicate)"),
    ),
    SeededBug(
        *("vectors one lane short", f"{_PASSES}.vectorize_loops", "_vectorize"),
        *(
            "Ramp(loop.minimum, IntImm(1, loop.var.dtype), lanes)",
            "Ramp(loop.minimum + 1, IntImm(1, loop.var.dtype), lanes)",
        ),
    ),
    SeededBug(
        *("last iterations of a parallel loop lost", f"{_PASSES}.outline_parallel", "_region"),
        *("FloorDiv(count * (task + 1), tasks)", "FloorDiv(count, tasks) * (task + 1)"),
    ),
    SeededBug(
        *("bits of bf16 one place off", f"{_PASSES}.lower_bfloat16", "_from_bits"),
        *("_number(16, wide)", "_number(15, wide)"),
        dtypes=("bfloat16",),
    ),
    SeededBug(
        *("range of a loop one too short", "refcomp.arith.facts", "Facts._in_range"),
        *("low.plus(count).shift(-1)", "low.plus(count).shift(-2)"),
    ),
    SeededBug(
        *("whole tiles one too many", "refcomp.arith.solve", "_nonnegative_range"),
        *("rest.plus(step), step", "rest.plus(step, 2), step"),
    ),
    SeededBug(
        *("inner loop taken at its first iteration", "refcomp.arith.solve", "_end"),
        *(
            "symbolic = facts.upper.get(serial)\n        constant = values.high",
            "symbolic = facts.lower.get(serial)\n        constant = values.low",
        ),
    ),
    SeededBug(
        *("tail of a divided loop lost", f"{_PASSES}.partition_loops", "_cut_by"),
        *("has_behind = bool(highs) and", "has_behind = False and"),
    ),
    SeededBug(
        *("condition hoisted out of its own loop", f"{_PASSES}.hoist_conditions", "_visit"),
        *(
            "buffers_in(part) or loop.var in variables_in(part)",
            "buffers_in(part) and loop.var in variables_in(part)",
        ),
    ),
    SeededBug(
        *("memory shared one statement too early", f"{_PASSES}.reuse_storage", "_put"),
        *("m.last < use.first", "m.last <= use.first"),
        kinds=("chain of folds", "scan of computed init"),
    ),
    SeededBug(
        *("all guards of an attached stage lost", f"{_LOWER}.needed_guards", "needed_guards"),
        *("if all(one.holds(around if one.is_write else inside) for one in ranges):", "if True:"),
    ),
)


_PRINTER = "refcomp.codegen.llvm"

# Found by running machine code, in a process of its own: a crash is a find as well.
COMPILED = (
    SeededBug(
        *("mask of a store lost in print", f"{_PRINTER}.memory", "_store_masked"),
        *("_mask(out, store.predicate, ", "_mask(out, None, "),
    ),
    SeededBug(
        *("strided load taken for a contiguous one", f"{_PRINTER}.memory", "_load_strided"),
        *("number * stride, names", "number, names"),
    ),
    SeededBug(
        *("remainder by a power of two", f"{_PRINTER}.expressions", "_floormod"),
        *("expr, divisor - 1)", "expr, divisor)"),
    ),
    SeededBug(
        *("quotient by a power of two", f"{_PRINTER}.expressions", "_floordiv"),
        *("divisor.bit_length() - 1)", "divisor.bit_length())"),
    ),
)
