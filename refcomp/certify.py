"""Certificates: that a schedule and the passes behind it left the result of a computation alone.

Three links, from what was asked for to what is compiled:

1. The tensor expressions, evaluated by numpy, and the scheduled loop IR, interpreted, both on
   elements of a prime field (`refcomp.oracle.field`), must agree to the bit: no order of adding up
   can excuse a difference.
2. What every pass of the host makes of the loop IR must give the bits that the loop IR gave, on
   floats: no pass may change an order, or a rounding.
3. Nothing on the way may break a rule of the interpreter: range, race, initialisation.

The first and the last program are compared; only where they differ, or with `every_step`, each
prefix of the recorded primitives and each pass. The first guilty one is named, with the first
element that differs and the iterations that wrote it. Sizes are small: symbols get a few values,
among them some that no factor divides. Refuses computations whose constant extents make too many
points to interpret (Unsupported).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import numpy as np

from refcomp.dtype import DType, to_numpy
from refcomp.errors import CompilerBug, RefcompError, Unsupported, UserError
from refcomp.ir.expr import Expr, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.kernels import kernels_in
from refcomp.ir.rewrite import variables_in, walk
from refcomp.ir.stmt import CALLS
from refcomp.lower.lower import lower
from refcomp.oracle.evaluate import EvaluateError, evaluate
from refcomp.oracle.field import P, field_dtype, tensors_to_field, to_field
from refcomp.oracle.interpret import evaluate_expr, interpret
from refcomp.oracle.watch import writes_to
from refcomp.pipeline import passes_for, run_pass
from refcomp.schedule.schedule import Schedule, replay
from refcomp.schedule.stage import Tensorized
from refcomp.te.operation import ComputeOp, PlaceholderOp
from refcomp.te.tensor import Tensor

Arrays = list[Any]
_MOST_POINTS = 200_000
_SIZES = (5, 3, 7, 4, 6, 2)  # of the symbols in order; another run adds the greatest factor
_MOST_SHOWN_WRITES = 4
# Before these a program with threads has no order in which it can be run.
_ORDERING = ("inject_virtual_threads", "inject_double_buffers", "insert_barriers")


@dataclass(frozen=True, slots=True)
class Difference:
    """Where two programs part: an element of an output, and who wrote it; or the rule broken."""

    output: str = ""
    index: tuple[int, ...] = ()
    found: Any = None
    expected: Any = None
    writes: tuple[str, ...] = ()
    broken_rule: str = ""

    def __str__(self) -> str:
        if self.broken_rule:
            return self.broken_rule
        at = ", ".join(map(str, self.index))
        told = f"{self.output}[{at}] is {self.found}, expected {self.expected}"
        if not self.writes:
            return f"{told}; nothing writes it"
        return "\n    ".join([f"{told}; written", *self.writes])


@dataclass(frozen=True, slots=True)
class Certificate:
    """What was compared. `guilty` names the first step that changed the result ('' when none did),
    and `difference` says how; `sizes` are those of the symbols where it showed."""

    name: str
    compared: tuple[str, ...]
    guilty: str = ""
    difference: Difference | None = None
    sizes: Mapping[str, int] = field(default_factory=dict)

    @property
    def holds(self) -> bool:
        """Whether no step changed the result."""
        return not self.guilty

    def __str__(self) -> str:
        if self.holds:
            return f"{self.name}: certified, {len(self.compared)} programs agree"
        sizes = ", ".join(f"{name} = {size}" for name, size in self.sizes.items())
        return f"{self.name}: {self.guilty} is guilty{f' ({sizes})' if sizes else ''}\n  " + (
            str(self.difference)
        )

    def require(self) -> None:
        """CompilerBug unless it holds."""
        if not self.holds:
            raise CompilerBug(
                f"{self.guilty} changes the result of {self.name}",
                why=str(self.difference),
                remedy="please report it with the schedule's steps",
            )


def certify(
    schedule: Schedule,
    args: Sequence[Tensor | Var],
    *,
    name: str = "main",
    every_step: bool = False,
    seed: int = 0,
    kind: str = "",
) -> Certificate:
    """The Certificate of `schedule` on `args` and of the passes for targets of `kind`; without one,
    of `llvm`, or of `opencl` where loops are bound to threads."""
    _check(schedule, args)
    kind = kind or ("opencl" if any(kernels_in(lower(schedule, args).body)) else "llvm")
    compared: list[str] = []
    for sizes in _size_sets(schedule, args):
        trial = _Trial(schedule, tuple(args), name, sizes, seed, kind)
        found = trial.find(every_step, compared)
        if found is not None:
            told = {var.name: size for var, size in sizes.items()}
            return Certificate(name, tuple(compared), *found, told)
    return Certificate(name, tuple(compared))


def _check(schedule: Schedule, args: Sequence[Tensor | Var]) -> None:
    if not isinstance(schedule, Schedule):
        raise UserError(f"{schedule!r} cannot be certified", remedy="pass a schedule")
    foreign = [
        stage.name for stage in schedule.stages
        if not isinstance(stage.op, ComputeOp | PlaceholderOp)
    ]  # fmt: skip
    if foreign:
        raise Unsupported(
            f"stage {foreign[0]} is no compute and cannot be certified",
            why="what an extern function or a scan does is not known as tensor expressions",
            remedy="certify the computes before and behind it",
        )
    calling = [stage for stage in schedule.stages if _calls_functions(stage.tensorized)]
    if calling:
        raise Unsupported(
            f"stage {calling[0].name} is tensorized by functions, and cannot be certified",
            why="what a function outside of the loop IR does to field elements is not known",
            remedy="certify it with an intrinsic that is written in loops",
        )


def _calls_functions(wish: Tensorized | None) -> bool:
    intrin = None if wish is None else wish.intrin
    parts = () if intrin is None else (intrin.body, intrin.reset, intrin.update)
    return any(isinstance(item, CALLS) for part in parts if part for item in walk(part))


def _size_sets(schedule: Schedule, args: Sequence[Tensor | Var]) -> Iterator[dict[Var, int]]:
    """Values for all scalar variables: small, and beyond the greatest factor of a split."""
    symbols: dict[Var, None] = {}
    for arg in args:
        dims: tuple[Expr, ...] = arg.shape if isinstance(arg, Tensor) else (arg,)
        symbols.update(dict.fromkeys(var for dim in dims for var in variables_in(dim)))
    factors = [
        value
        for step in schedule.steps
        for value in (*step.args, *(given for _, given in step.options))
        if isinstance(value, int) and 1 < value <= 64
    ]
    small = {var: _SIZES[k % len(_SIZES)] for k, var in enumerate(symbols)}
    yield small
    if symbols and factors:
        most = max(factors)
        large = {var: size + most for var, size in small.items()}
        if _points(schedule, large) <= _MOST_POINTS:
            yield large


def _points(schedule: Schedule, sizes: Mapping[Var, int]) -> int:
    """How many values the computes of the schedule combine."""
    total = 0
    for stage in schedule.stages:
        if isinstance(stage.op, ComputeOp):
            axes = (*stage.op.axis, *stage.op.reduce_axis)
            total += prod(max(0, evaluate_expr(axis.extent, sizes)) for axis in axes)
    return total


@dataclass(frozen=True, slots=True)
class _Trial:
    """One comparison of all programs, for some sizes."""

    schedule: Schedule
    args: tuple[Tensor | Var, ...]
    name: str
    sizes: dict[Var, int]
    seed: int
    kind: str
    greatest: int = 99  # of the random integers

    def find(self, every_step: bool, compared: list[str]) -> tuple[str, Difference] | None:
        """The first guilty step and the difference, None when all programs agree."""
        self._check_size()
        try:
            expected = self._expected()
        except EvaluateError:
            if self.greatest == 1:
                raise
            # Integers that are used as indices must be small.
            return replace(self, greatest=1).find(every_step, compared)
        last = self._in_order(lower(self.schedule, self.args, self.name))
        compared += ["the tensor expressions", "the scheduled program"]
        difference = self._field_difference(last, expected)
        if difference is not None or every_step:
            found = self._guilty_primitive(expected, compared)
            if found is not None:
                return found
        if difference is not None:
            return "lowering", difference
        return self._guilty_pass(last, compared)

    def _check_size(self) -> None:
        points = _points(self.schedule, self.sizes)
        if points > _MOST_POINTS:
            raise Unsupported(
                f"{self.name} computes {points} values, too many to interpret",
                why=f"a certificate interprets every program; {_MOST_POINTS} values are the most",
                remedy="declare the computation with symbolic extents (refcomp.var), or smaller",
            )

    def _expected(self) -> dict[int, Any]:
        """The outputs in the field, by their position among the arguments."""
        outputs = [t for t in self.args if isinstance(t, Tensor) and _is_computed(t)]
        fielded, places = tensors_to_field(outputs)
        arrays = dict(zip(self.args, self._arrays(field_dtype), strict=True))
        inputs = [t for t in self.args if isinstance(t, Tensor) and not _is_computed(t)]
        feeds = {places[t]: arrays[t] for t in inputs if t in places}
        scalars = {arg: arrays[arg] for arg in self.args if isinstance(arg, Var)}
        values = evaluate(fielded, feeds, {**self.sizes, **scalars})
        return dict(zip((self.args.index(t) for t in outputs), values, strict=True))

    def _field_difference(self, func: PrimFunc, expected: Mapping[int, Any]) -> Difference | None:
        arrays = self._arrays(field_dtype)
        return self._difference(to_field(func), arrays, expected)

    def _in_order(self, func: PrimFunc) -> PrimFunc:
        """`func` with virtual threads in order and barriers in place, so that it can be run."""
        for step in passes_for(self.kind):
            if step.name in _ORDERING:
                func = run_pass(step, func)
        return func

    def _guilty_primitive(
        self, expected: Mapping[int, Any], compared: list[str]
    ) -> tuple[str, Difference] | None:
        for count in range(len(self.schedule.steps) + 1):
            steps = self.schedule.steps[:count]
            try:
                schedule = replay(self.schedule.outputs, steps)
                func = self._in_order(lower(schedule, self.args, self.name))
            except UserError:
                continue  # a schedule may be illegal until its next steps are taken
            compared.append(str(steps[-1]) if steps else "the program as lowered by default")
            difference = self._field_difference(func, expected)
            if difference is not None:
                step = steps[-1] if steps else None
                return (f"{step}, at {step.line}," if step else "lowering"), difference
        return None

    def _guilty_pass(self, func: PrimFunc, compared: list[str]) -> tuple[str, Difference] | None:
        expected: dict[int, Any] = {}
        for step in passes_for(self.kind):
            if not expected:
                arrays = self._arrays(lambda dtype: dtype)
                broken = _run(func, arrays)
                if broken is not None:
                    return "lowering", broken
                expected = {k: a for k, a in enumerate(arrays) if isinstance(a, np.ndarray)}
            changed = run_pass(step, func)
            if changed is not func:
                compared.append(step.name)
                arrays = self._arrays(lambda dtype: dtype)
                difference = self._difference(changed, arrays, expected)
                if difference is not None:
                    return f"pass {step.name}", difference
            func = changed
        return None

    def _arrays(self, stored: Callable[[DType], DType]) -> Arrays:
        """Random arguments, the same on every call; outputs hold what no program writes."""
        rng = np.random.default_rng(self.seed)
        return [self._argument(arg, stored, rng) for arg in self.args]

    def _argument(
        self, arg: Tensor | Var, stored: Callable[[DType], DType], rng: np.random.Generator
    ) -> Any:
        if isinstance(arg, Var):
            return self.sizes[arg]
        shape = tuple(evaluate_expr(dim, self.sizes) for dim in arg.shape)
        dtype = stored(arg.dtype)
        if dtype != arg.dtype:
            values: Any = rng.integers(0, P, shape)
        elif dtype.is_float:
            values = rng.standard_normal(shape)
        else:
            values = rng.integers(0, 1 if dtype.is_bool else self.greatest, shape, endpoint=True)
        return np.asarray(values).astype(to_numpy(dtype))

    def _difference(
        self, func: PrimFunc, arrays: Arrays, expected: Mapping[int, Any]
    ) -> Difference | None:
        broken = _run(func, arrays)
        if broken is not None:
            return broken
        for position, wanted in expected.items():
            found = arrays[position]
            index = _first_difference(found, wanted)
            if index is not None:
                output = func.params[position].name
                fresh = self._arrays(field_dtype if found.dtype == np.int64 else lambda d: d)
                writes = writes_to(func, _as_stored(func, fresh), output, index)
                shown = tuple(f"  {write}" for write in writes[-_MOST_SHOWN_WRITES:])
                return Difference(output, index, found[index], wanted[index], shown)
        return None


def _is_computed(tensor: Tensor) -> bool:
    return isinstance(tensor.op, ComputeOp)


def _run(func: PrimFunc, arrays: Arrays) -> Difference | None:
    try:
        interpret(func, _as_stored(func, arrays))
    except RefcompError as error:
        return Difference(broken_rule=f"{type(error).__name__}: {error}")
    return None


def _as_stored(func: PrimFunc, arrays: Arrays) -> Arrays:
    """bf16 arrays as the integers that late passes take them for."""
    return [
        a.view(np.uint16)
        if getattr(a, "dtype", None) == "bfloat16" and p.dtype.kind == "uint"
        else a
        for p, a in zip(func.params, arrays, strict=True)
    ]


def _first_difference(found: Any, wanted: Any) -> tuple[int, ...] | None:
    """The first index at which the bits differ; any NaN is as good as any other."""
    same = _bits(found) == _bits(wanted)
    if found.dtype.kind in "fV":
        same |= np.isnan(found) & np.isnan(wanted)
    if same.all():
        return None
    return tuple(int(i) for i in np.argwhere(~same)[0])


def _bits(array: Any) -> Any:
    return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}").reshape(array.shape)
