"""The comparison of one program with its specification, in two algebras, for one set of sizes.

On elements of a prime field (`refcomp.oracle.exact.field`), and on integers modulo 2^w, addition is
associative. So a program must agree with the tensor expressions to the bit. On floats it must keep
within the error bound of each element (`refcomp.oracle.floats.error_bounds`), or have the very bits
of another program. No program may break a rule of the interpreter: range, race, initialisation.
Called functions are replaced by stand-ins (`refcomp.oracle.exact.stand_ins`), so the verdict holds
whatever they do.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

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
from refcomp.oracle.tensors.arrays import Array
from refcomp.oracle.tensors.evaluate import evaluate
from refcomp.oracle.watch import Write, writes_to
from refcomp.te.operation import PlaceholderOp
from refcomp.te.tensor import Tensor

Runnable = PrimFunc | Program


@dataclass(frozen=True, slots=True)
class Judge:
    """The right values of the outputs, by their positions among the arguments."""

    arguments: Arguments
    exact: Mapping[int, Array]  # on field elements
    bounded: Mapping[int, Bounded] | None = None  # on floats; None: no bounds are known

    def trial(self, programs: int) -> Trial:
        """Return the trial of `programs` programs that this judge has compared."""
        given = self.arguments
        algebras = [Algebra.FIELD]
        if any(arg.dtype.is_float for arg in given.args):
            algebras.append(Algebra.BITS if self.bounded is None else Algebra.BOUNDS)
        return Trial(
            sizes={var.name: size for var, size in given.sizes.items()},
            seed=given.seed,
            max_integer=given.max_integer,
            algebras=tuple(algebras),
            programs=programs,
        )

    def on_field(
        self, program: PrimFunc, before: PrimFunc | None = None
    ) -> Difference | None:
        """Return how `program` differs on field elements; `before` is a right program."""
        in_field = to_field(program)
        arrays = self.arguments.residues()
        right = None if before is None else to_field(before)
        return _broken_rule(in_field, arrays) or self._difference(
            in_field, arrays, self.exact, right
        )

    def on_floats(self, program: Runnable, arrays: Arrays) -> Difference | None:
        """Run `program` on `arrays`; return the first element that exceeds its bound."""
        broken = _broken_rule(program, arrays)
        if broken is not None or self.bounded is None:
            return broken
        for position, bounded in self.bounded.items():
            wrong = judge_bounded(arrays[position], bounded).indices(WRONG)
            if wrong:
                return self._describe(
                    program,
                    position,
                    index=wrong[0],
                    found=arrays[position],
                    expected=bounded.nearest,
                    allowed=upper_f64(bounded.error[wrong[0]]),
                )
        return None

    def to_the_bit(
        self, program: Runnable, arrays: Arrays, before: Runnable, expected: Arrays
    ) -> Difference | None:
        """Run `program` on `arrays`; return how it differs from `before`.

        `expected` are the arguments after `before` ran.
        """
        outputs = {k: a for k, a in enumerate(expected) if isinstance(a, np.ndarray)}
        return _broken_rule(program, arrays) or self._difference(
            program, arrays, outputs, before
        )

    def _difference(
        self,
        program: Runnable,
        arrays: Arrays,
        expected: Mapping[int, Array],
        before: Runnable | None,
    ) -> Difference | None:
        for position, right in expected.items():
            found = arrays[position]
            same = _bits(found) == _bits(right)
            if found.dtype.kind in "fV":
                same |= np.isnan(found) & np.isnan(right)
            if not same.all():
                return self._describe(
                    program,
                    position,
                    index=tuple(int(i) for i in np.argwhere(~same)[0]),
                    found=found,
                    expected=right,
                    before=before,
                )
        return None

    def _describe(
        self,
        program: Runnable,
        position: int,
        *,
        index: tuple[int, ...],
        found: Array,
        expected: Array,
        allowed: float = 0.0,
        before: Runnable | None = None,
    ) -> Difference:
        """Return the difference of one element, with its writes if the program shows them."""
        params = program.host.params if isinstance(program, Program) else program.params
        writes = self._writes(program, position, index)
        missing: tuple[str, ...] = ()
        extra: tuple[str, ...] = ()
        if isinstance(before, PrimFunc):
            right = self._writes(before, position, index)
            missing, extra = changed_writes(right, writes)
        return Difference(
            output=params[position].name,
            index=index,
            found=found[index],
            expected=expected[index],
            writes=shown(writes),
            missing=missing,
            extra=extra,
            allowed=allowed,
        )

    def _writes(
        self, program: Runnable, position: int, index: tuple[int, ...]
    ) -> list[Write]:
        """Return the writes to one element; none are known of a Program, which has kernels."""
        if isinstance(program, Program):
            return []
        args = self.arguments
        is_in_field = any(
            param.dtype != arg.dtype and param.dtype == field_dtype(arg.dtype)
            for param, arg in zip(program.params, args.args, strict=True)
        )
        arrays = args.residues() if is_in_field else args.floats()
        output = program.params[position].name
        return writes_to(program, _as_stored(program, arrays), output, index)


def judge_of_tensors(arguments: Arguments) -> Judge:
    """Return the judge whose specification is the tensor expressions among the arguments.

    Raises EvaluateError if a random integer is an index out of range.
    """
    outputs = {
        position: arg
        for position, arg in enumerate(arguments.args)
        if isinstance(arg, Tensor) and not isinstance(arg.op, PlaceholderOp)
    }
    called, stood = tensors_with_stand_ins(list(outputs.values()))
    exact = _exact_values(called, stood, arguments)
    feeds, scalars = _feeds(arguments, arguments.floats(), stood)
    bounded: dict[int, Bounded] | None = None
    with suppress(Unsupported):
        bounds = bound_errors(called, feeds, scalars)
        bounded = dict(zip(outputs, bounds, strict=True))
    return Judge(arguments, dict(zip(outputs, exact, strict=True)), bounded)


def judge_of_program(func: PrimFunc, arguments: Arguments) -> Judge:
    """Return the judge whose specification is `func`. Raises InterpretError if it breaks a rule."""
    arrays = arguments.residues()
    interpret(to_field(func), arrays)
    exact = {k: a for k, a in enumerate(arrays) if isinstance(a, np.ndarray)}
    return Judge(arguments, exact)


def _exact_values(
    outputs: list[Tensor], stood: Mapping[Tensor, Tensor], arguments: Arguments
) -> list[Array]:
    """Return the values of `outputs` on field elements; `stood` as in `_feeds`."""
    feeds, scalars = _feeds(arguments, arguments.residues(), stood)
    in_field = {
        var: Var(var.name, field_dtype(var.dtype))
        for var in scalars
        if var.dtype.is_float
    }
    rebuilt, places = tensors_to_field(outputs, in_field)
    return evaluate(
        rebuilt,
        {places[tensor]: array for tensor, array in feeds.items()},
        {in_field.get(var, var): value for var, value in scalars.items()},
    )


def _feeds(
    arguments: Arguments, arrays: Arrays, stood: Mapping[Tensor, Tensor]
) -> tuple[dict[Tensor, Array], dict[Var, object]]:
    """Return the values of the placeholders and of all scalars.

    `stood` maps each tensor to its counterpart where calls are replaced by stand-ins.
    """
    given = dict(zip(arguments.args, arrays, strict=True))
    feeds = {
        stood[arg]: value
        for arg, value in given.items()
        if isinstance(arg, Tensor)
        and isinstance(arg.op, PlaceholderOp)
        and arg in stood
    }
    scalars = {arg: value for arg, value in given.items() if isinstance(arg, Var)}
    return feeds, {**arguments.sizes, **scalars}


def _broken_rule(program: Runnable, arrays: Arrays) -> Difference | None:
    """Run `program` on `arrays`; return the rule that it breaks.

    Raises Unsupported for what the interpreter does not know.
    """
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
    """View bfloat16 values as the integers that programs after `lower_bfloat16` take."""
    stored = []
    for param, value in zip(func.params, arrays, strict=True):
        dtype = getattr(value, "dtype", None)
        is_viewed = dtype == "bfloat16" and param.dtype.kind == "uint"
        stored.append(value.view(np.uint16) if is_viewed else value)
    return stored


def _bits(array: Array) -> Array:
    bits = np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")
    return bits.reshape(array.shape)
