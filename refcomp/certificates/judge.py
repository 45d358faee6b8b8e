"""Holds one program against what was asked for, in two algebras, for one set of sizes.

On elements of a prime field (`refcomp.oracle.exact.field`), and integers modulo 2^w, a program must
give what the tensor expressions give, to the bit: no order of adding up can excuse a difference. On
floats it must keep within the error bound of each element (`refcomp.oracle.floats.error_bounds`),
or give the very bits of another program. Nothing may break a rule of the interpreter on the way:
range, race, initialisation. Functions that are called have stand-ins
(`refcomp.oracle.exact.stand_ins`): what is right is so whatever they do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from refcomp.certificates.arguments import Arguments, Arrays
from refcomp.certificates.certificate import Difference, changed_writes, shown
from refcomp.certificates.trial import Algebra, Trial
from refcomp.foundation.errors import RefcompError, Unsupported
from refcomp.ir.expr import Var
from refcomp.ir.func import PrimFunc, Program
from refcomp.oracle.compare import WRONG, judge_bounded, upper_f64
from refcomp.oracle.exact.field import field_dtype, tensors_to_field, to_field
from refcomp.oracle.exact.stand_ins import tensors_with_stand_ins
from refcomp.oracle.floats.error_bounds import Bounded, bound_errors
from refcomp.oracle.lockstep.interpret import interpret, interpret_program
from refcomp.oracle.tensors.evaluate import evaluate
from refcomp.oracle.watch import Write, writes_to
from refcomp.te.operation import PlaceholderOp
from refcomp.te.tensor import Tensor

Runnable = PrimFunc | Program


@dataclass(frozen=True, slots=True)
class Judge:
    """What the outputs must be, by their places among the arguments: `exact` on field elements,
    `bounded` on floats; None where no bounds are known."""

    arguments: Arguments
    exact: Mapping[int, Any]
    bounded: Mapping[int, Bounded] | None = None

    def trial(self, programs: int) -> Trial:
        """Return the inputs that `programs` programs were held against this judge on."""
        given = self.arguments
        floats = any(arg.dtype.is_float for arg in given.args)
        last = Algebra.BITS if self.bounded is None else Algebra.BOUNDS
        algebras = (Algebra.FIELD, last) if floats else (Algebra.FIELD,)
        sizes = {var.name: size for var, size in given.sizes.items()}
        return Trial(sizes, given.seed, given.greatest, algebras, programs)

    def on_field(
        self, program: PrimFunc, before: PrimFunc | None = None
    ) -> Difference | None:
        """How `program` differs from what is exact; `before` does not."""
        fielded, arrays = to_field(program), self.arguments.residues()
        return _broken(fielded, arrays) or self._exact_difference(
            fielded, arrays, self.exact, None if before is None else to_field(before)
        )

    def on_floats(self, program: Runnable, arrays: Arrays) -> Difference | None:
        """The bound of an element that is not kept, once `arrays` are the program's arguments."""
        broken = _broken(program, arrays)
        if broken is not None or self.bounded is None:
            return broken
        for place, bounded in self.bounded.items():
            found = judge_bounded(arrays[place], bounded).indices(WRONG)
            if found:
                index, wanted = found[0], bounded.nearest
                pair = (
                    arrays[place][index],
                    wanted[index],
                    upper_f64(bounded.error[index]),
                )
                return self._told(program, place, index, *pair)
        return None

    def to_the_bit(
        self, program: Runnable, arrays: Arrays, before: Runnable, wanted: Arrays
    ) -> Difference | None:
        """How `program` differs from `before`, which made `wanted` of its arguments."""
        expected = {k: a for k, a in enumerate(wanted) if isinstance(a, np.ndarray)}
        return _broken(program, arrays) or self._exact_difference(
            program, arrays, expected, before
        )

    def _exact_difference(
        self,
        program: Runnable,
        arrays: Arrays,
        expected: Mapping[int, Any],
        before: Runnable | None = None,
    ) -> Difference | None:
        for place, wanted in expected.items():
            index = _first_difference(arrays[place], wanted)
            if index is not None:
                pair = arrays[place][index], wanted[index]
                return self._told(program, place, index, *pair, before=before)
        return None

    def _told(
        self,
        program: Runnable,
        place: int,
        index: tuple[int, ...],
        found: Any,
        expected: Any,
        allowed: float = 0.0,
        before: Runnable | None = None,
    ) -> Difference:
        params = program.host.params if isinstance(program, Program) else program.params
        writes, others = (self._writes(p, place, index) for p in (program, before))
        missing, extra = (
            ((), ()) if others is None else changed_writes(others, writes or ())
        )
        return Difference(
            params[place].name, index, found, expected, shown(writes or ()), "", missing, extra,
            allowed,
        )  # fmt: skip

    def _writes(
        self, program: Runnable | None, place: int, index: tuple[int, ...]
    ) -> list[Write] | None:
        """Who writes the element; None where that cannot be told: of a Program, and of none."""
        if not isinstance(program, PrimFunc):
            return None
        args = self.arguments
        is_fielded = any(
            param.dtype != arg.dtype and param.dtype == field_dtype(arg.dtype)
            for param, arg in zip(program.params, args.args, strict=True)
        )
        arrays = args.residues() if is_fielded else args.floats()
        return writes_to(
            program, _as_stored(program, arrays), program.params[place].name, index
        )


def judge_of_tensors(arguments: Arguments) -> Judge:
    """What the tensor expressions among the arguments say. EvaluateError where an integer that is
    an index is out of range."""
    places = [k for k, arg in enumerate(arguments.args) if is_computed(arg)]
    outputs = [
        arg for arg in arguments.args if isinstance(arg, Tensor) and is_computed(arg)
    ]
    exact = _field_values(outputs, arguments)
    bounded = _bounds(outputs, arguments)
    return Judge(
        arguments,
        dict(zip(places, exact, strict=True)),
        None if bounded is None else dict(zip(places, bounded, strict=True)),
    )


def judge_of_program(func: PrimFunc, arguments: Arguments) -> Judge:
    """What `func` itself says. InterpretError where it breaks a rule."""
    arrays = arguments.residues()
    interpret(to_field(func), arrays)
    return Judge(
        arguments, {k: a for k, a in enumerate(arrays) if isinstance(a, np.ndarray)}
    )


def is_computed(arg: Any) -> bool:
    """Whether an argument is a tensor that the schedule computes."""
    return isinstance(arg, Tensor) and not isinstance(arg.op, PlaceholderOp)


def _feeds(
    arguments: Arguments, arrays: Arrays
) -> tuple[dict[Tensor, Any], dict[Var, Any]]:
    pairs = list(zip(arguments.args, arrays, strict=True))
    inputs = {
        arg: a for arg, a in pairs if isinstance(arg, Tensor) and not is_computed(arg)
    }
    scalars = {arg: value for arg, value in pairs if isinstance(arg, Var)}
    return inputs, {**arguments.sizes, **scalars}


def _field_values(outputs: Sequence[Tensor], arguments: Arguments) -> list[Any]:
    called, stood = tensors_with_stand_ins(outputs)
    inputs, scalars = _feeds(arguments, arguments.residues())
    fresh = {
        var: Var(var.name, field_dtype(var.dtype))
        for var in scalars
        if var.dtype.is_float
    }
    fielded, places = tensors_to_field(called, fresh)
    feeds = {places[stood[t]]: array for t, array in inputs.items() if t in stood}
    values = {fresh.get(var, var): value for var, value in scalars.items()}
    return evaluate(fielded, feeds, values)


def _bounds(outputs: Sequence[Tensor], arguments: Arguments) -> list[Bounded] | None:
    called, stood = tensors_with_stand_ins(outputs)
    inputs, scalars = _feeds(arguments, arguments.floats())
    feeds = {
        stood[tensor]: array for tensor, array in inputs.items() if tensor in stood
    }
    try:
        return bound_errors(called, feeds, scalars)
    except Unsupported:
        return None


def _broken(program: Runnable, arrays: Arrays) -> Difference | None:
    """The rule that `program` breaks on `arrays`, which it changes. Unsupported where it cannot be
    interpreted."""
    try:
        if isinstance(program, Program):
            interpret_program(program, arrays)
        else:
            interpret(program, _as_stored(program, arrays))
    except Unsupported:
        raise
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
    return (
        np.ascontiguousarray(array)
        .view(f"u{array.dtype.itemsize}")
        .reshape(array.shape)
    )
