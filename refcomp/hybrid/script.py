"""The decorator `script`, which makes a hybrid function of a Python function."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.foundation.provenance import declared_at
from refcomp.hybrid import plain
from refcomp.hybrid.expressions import Value
from refcomp.hybrid.loop_axes import find_axes
from refcomp.hybrid.source import PythonSource, read_source
from refcomp.hybrid.statements import Writer
from refcomp.ir.buffer import READ
from refcomp.ir.expr import Expr
from refcomp.ir.view import BufferView
from refcomp.te.declare import decl_buffer
from refcomp.te.externs import make_extern
from refcomp.te.hybrid_operation import HybridOp
from refcomp.te.tensor import Tensor


def script(function: Callable[..., object]) -> HybridFunction:
    """Return the hybrid function that a Python function describes.

    Its body may contain:

    - loops over range, parallel, vectorize, unroll, const_range and bind
    - branches and assignments
    - asserts about shapes and integer arguments, which each call checks at its entry
    - `output_tensor(shape, dtype)` and `allocate(shape, dtype, scope)`
    - arithmetic, maths by name, and conversions such as `float32(x)`
    - at the end a return of outputs

    Args:
        function: a function of plain parameters. Numbers and tuples of them may come from outside.

    Returns:
        The hybrid function. Called with tensors, it returns tensors, and `tensor.op.axis` are its
        loops, to which split, fuse, reorder, unroll, vectorize, parallel and bind apply.

    Raises:
        UserError: the source cannot be read, or holds something else. The error names the line.

    Source: TVM, te.hybrid.script.

    Example::

        >>> @rc.hybrid.script
        ... def prefix_sums(a):
        ...     s = output_tensor(a.shape, a.dtype)
        ...     s[0] = a[0]
        ...     for i in range(1, a.shape[0]):
        ...         s[i] = s[i - 1] + a[i]
        ...     return s
        >>> A = rc.placeholder((4,), name="A")
        >>> S = prefix_sums(A)
        >>> print(rc.lower(rc.create_schedule(S), [A, S], "prefix_sums"))
        func prefix_sums(A: f32[4], prefix_sums: f32[4] out) {
          prefix_sums[0] = A[0]
          for i in range(1, extent=3) {
            prefix_sums[i] = prefix_sums[i - 1] + A[i]
          }
        }
    """
    return HybridFunction(function)


class HybridFunction:
    """A function that tensors compile and numpy arrays run; `script` makes it.

    A call with tensors returns the tensor, or the tuple of tensors, that is computed. Other
    arguments are expressions, numbers, and tuples of these. A call with numpy arrays runs in
    Python.

    Args:
        function: the Python function.

    Raises:
        UserError: the source cannot be read or has other parameters than plain names.

    Example::

        >>> @rc.hybrid.script
        ... def double(a):
        ...     b = output_tensor(a.shape, "float32")
        ...     for i in range(a.shape[0]):
        ...         b[i] = a[i] * 2.0
        ...     return b
        >>> double(rc.placeholder((3,), name="A"))
        Tensor(double: f32, rank 1)
        >>> double.run_in_python(np.ones(3, "float32")).tolist()
        [2.0, 2.0, 2.0]
    """

    def __init__(self, function: Callable[..., object]) -> None:
        functools.update_wrapper(self, function)
        self._function = function  # the original, which run_in_python calls
        self.source: PythonSource = read_source(function)
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
                "its parameters must be plain names",
                "def f(a, b, n): ...",
            )

    def __call__(self, *args: object) -> Any:
        """Return the tensor, or the tuple of tensors, that is computed from the arguments.

        Arguments are tensors, expressions, numbers, and tuples of these. With numpy arrays, the
        function runs in Python.
        """
        if any(isinstance(arg, np.ndarray) or hasattr(arg, "asnumpy") for arg in args):
            return self.run_in_python(*args)
        return self._compile(args)

    def run_in_python(self, *args: object) -> Any:
        """Run the function in Python, with numpy's rules for types.

        Args:
            *args: numpy arrays, NDArrays and numbers.
        """
        given = [arg.asnumpy() if hasattr(arg, "asnumpy") else arg for arg in args]
        return plain.run(self._function, given)

    def _compile(self, args: Sequence[object]) -> object:
        source = self.source
        names = [arg.arg for arg in source.definition.args.args]
        if len(args) != len(names):
            raise UserError(
                f"hybrid function {source.name} takes {len(names)} arguments, "
                f"{len(args)} given",
                earlier=[declared_at(source.place(source.definition), source.name)],
            )
        writer = Writer(source)
        # One view for each parameter: a tensor that is passed twice is read through two.
        inputs: dict[BufferView, Tensor] = {}
        for name, arg in zip(names, args, strict=True):
            value = self._checked(name, arg)
            if isinstance(arg, Tensor):
                buffer = decl_buffer(arg.shape, arg.dtype, name).buffer
                view = BufferView(buffer, access=READ)
                inputs[view] = arg
                value = writer.builder.buffer_ptr(view)
            writer.evaluator.names[name] = value
        writer.write(source.definition.body)
        return self._as_extern(writer, inputs)

    def _checked(self, name: str, arg: object) -> Value:
        if isinstance(arg, tuple | list):
            return tuple(self._checked(name, item) for item in arg)
        if isinstance(arg, Tensor | bool | int | float | Expr):
            return arg
        raise UserError(
            f"argument {name} of hybrid function {self.source.name} is a {type(arg).__name__}",
            remedy="pass tensors, expressions, numbers or tuples of them; or numpy arrays alone",
        )

    def _as_extern(self, writer: Writer, inputs: dict[BufferView, Tensor]) -> object:
        """Return the outputs as those of an extern operation."""
        returned = writer.returned
        body = writer.builder.get()
        definition = self.source.definition
        if not returned:
            self.source.refuse(
                definition, "it returns nothing", "return what output_tensor made"
            )
        unused = [view.name for view in writer.outputs if view not in returned]
        if unused:
            self.source.refuse(definition, f"it does not return its output {unused[0]}")
        op = make_extern(
            HybridOp,
            [view.shape for view in returned],
            list(inputs.values()),
            lambda _ins, _outs: body,
            name=self.source.name,
            dtype=[view.dtype for view in returned],
            in_buffers=list(inputs),
            out_buffers=returned,
            tag="hybrid",
        )
        op.requires = tuple(writer.requires)
        find_axes(op)
        return op.outputs if writer.is_tuple else op.outputs[0]
