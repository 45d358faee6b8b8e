"""script: makes a hybrid function of a Python function, to be compiled, or run as it stands."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.hybrid import plain
from refcomp.hybrid.source import PythonSource, read_source
from refcomp.hybrid.statements import Writer
from refcomp.ir.buffer import READ
from refcomp.ir.expr import Expr
from refcomp.ir.view import BufferView
from refcomp.te.declare import decl_buffer
from refcomp.te.extern import extern
from refcomp.te.tensor import Tensor


def script(function: Callable[..., Any]) -> HybridFunction:
    """The hybrid function that `function` describes; UserError when its source cannot be read.

    In its body stand loops over range, parallel, vectorize, unroll, const_range and bind, branches,
    assignments, `output_tensor(shape, dtype)`, `allocate(shape, dtype, scope)`, arithmetic and
    maths by name, conversions such as `float32(x)`, and at the end a return of outputs. Numbers
    and tuples of them may come from outside.
    """
    return HybridFunction(function)


class HybridFunction:
    """A function that tensors compile and numpy arrays run; see `script`."""

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self.source: PythonSource = read_source(function)
        self._check_parameters()

    def __call__(self, *args: Any) -> Any:
        """For tensors (and expressions, numbers, tuples): the tensor or tensors computed from
        them. For numpy arrays: what Python gives."""
        if any(isinstance(arg, np.ndarray) or hasattr(arg, "asnumpy") for arg in args):
            return self.run_in_python(*args)
        return self._compile(args)

    def run_in_python(self, *args: Any) -> Any:
        """Runs the function by Python and numpy, with numpy's rules for types."""
        given = tuple(arg.asnumpy() if hasattr(arg, "asnumpy") else arg for arg in args)
        return plain.run(self._function, given)

    def _check_parameters(self) -> None:
        args = self.source.definition.args
        if (
            args.vararg
            or args.kwarg
            or args.kwonlyargs
            or args.defaults
            or args.posonlyargs
        ):
            self.source.refuse(
                self.source.definition,
                "its parameters are plain names",
                "def f(a, b, n): ...",
            )

    def _compile(self, args: Sequence[Any]) -> Any:
        names = [arg.arg for arg in self.source.definition.args.args]
        if len(args) != len(names):
            raise UserError(
                f"hybrid function {self.source.name} takes {len(names)} arguments, "
                f"{len(args)} given",
                where=f"{self.source.filename}:{self.source.first_line}",
            )
        writer, tensors, views = Writer(self.source), list[Tensor](), list[BufferView]()
        for name, arg in zip(names, args, strict=True):
            value = self._checked(name, arg)
            if isinstance(arg, Tensor):
                view = BufferView(
                    decl_buffer(arg.shape, arg.dtype, name).buffer, access=READ
                )
                tensors.append(arg)
                views.append(view)
                value = writer.builder.buffer_ptr(view)
            writer.evaluator.names[name] = value
        writer.write(self.source.definition.body)
        return self._as_extern(writer, tensors, views)

    def _checked(self, name: str, arg: Any) -> Any:
        if isinstance(arg, tuple | list):
            return tuple(self._checked(name, item) for item in arg)
        if isinstance(arg, Tensor | bool | int | float | Expr):
            return arg
        raise UserError(
            f"argument {name} of hybrid function {self.source.name} is a {type(arg).__name__}",
            remedy="pass tensors, expressions, numbers or tuples of them; or numpy arrays alone",
        )

    def _as_extern(
        self, writer: Writer, tensors: list[Tensor], views: list[BufferView]
    ) -> Any:
        returned, body = writer.returned, writer.builder.get()
        definition = self.source.definition
        if not returned:
            self.source.refuse(
                definition, "it returns nothing", "return what output_tensor made"
            )
        unused = [view.name for view in writer.outputs if view not in returned]
        if unused:
            self.source.refuse(definition, f"it does not return its output {unused[0]}")
        result = extern(
            [view.shape for view in returned],
            tensors,
            lambda _ins, _outs: body,
            name=self.source.name,
            dtype=[view.dtype for view in returned],
            in_buffers=views,
            out_buffers=returned,
            tag="hybrid",
        )
        several = result if isinstance(result, list) else [result]
        return tuple(several) if writer.is_tuple else several[0]
