"""Calls of functions by name.

call_packed, trace, call_extern, call_pure_extern, call_pure_intrin and call_llvm_intrin.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from refcomp.foundation.dtype import F32, I32, DType, as_dtype
from refcomp.foundation.errors import Unsupported, UserError
from refcomp.foundation.names import checked_callee
from refcomp.foundation.registered_calls import DEFAULT_ACTION
from refcomp.ir.buffer import AddressOf
from refcomp.ir.expr import (
    REGISTERED,
    TRACE,
    Call,
    Callee,
    Expr,
    PureExtern,
    TextImm,
)
from refcomp.ir.intrinsics import INTRINSICS, find_intrinsic
from refcomp.ir.node import Node
from refcomp.ir.promotion import as_expr, cast
from refcomp.ir.stmt import CallExtern, CallPacked
from refcomp.ir.view import BufferView
from refcomp.te.tensor import DTypeLike, ExprLike, Tensor

# Intrinsics of LLVM -> refcomp's intrinsic with the same meaning, which every target has.
_SAME_NAMES = "sqrt floor ceil trunc fma copysign exp exp2 log log2 log10 pow sin cos"
_SAME = {f"llvm.{name}": name for name in _SAME_NAMES.split()} | {
    "llvm.fabs": "abs",
    "llvm.ctpop": "popcount",
    "llvm.rint": "round",
    "llvm.nearbyint": "round",
    "llvm.roundeven": "round",
}
_N = TypeVar("_N", bound=Node)
# What a function can be given: numbers, and buffers.
CallArgument = ExprLike | BufferView


def call_packed(
    name: str, *args: CallArgument | str, dtype: DTypeLike | None = None
) -> Any:
    """Return a call of a registered Python function: a statement, or an expression.

    With a buffer among the arguments it is a statement. Without one it is an expression, whose
    value is what the function returns. Where a statement is expected, in `extern` and in
    `ir_builder.emit`, the expression becomes one, and its value is dropped.

    Args:
        name: the name under which `register_func` registered the function. It is looked up at each
            call of the compiled function.
        *args: a buffer arrives as an NDArray on the host, which is a copy. The copy is read-only
            unless the function may write the buffer. When the function returns, what it wrote is
            stored. A number arrives as a Python int, float or bool, a text as a str.
        dtype: the dtype of the value, int32 by default. A call with buffers has no value.

    Returns:
        A `CallPacked`, or an expression of `dtype`. Only host code can evaluate it. Loops that call
        registered functions run in order, by one thread. If the function returns None or a number
        that does not fit, the call of the compiled function raises UserError.

    Raises:
        UserError: the name is not an identifier, an argument is a tensor instead of a buffer or a
            vector, or a dtype is given with buffers.

    Source: TVM, tir.call_packed.

    Example::

        >>> def reverse(a, b):
        ...     b[:] = a[::-1]
        >>> _ = rc.register_func("demo.reverse", reverse, override=True)
        >>> A = rc.placeholder((3,), name="A")
        >>> def call_reverse(ins, outs):
        ...     return rc.call_packed("demo.reverse", ins[0], outs[0])
        >>> B = rc.extern((3,), [A], call_reverse, name="B")
        >>> print(*rc.oracle.evaluate([B], {A: np.array([1, 2, 3], "float32")}))
        [3. 2. 1.]
        >>> _ = rc.register_func("demo.scale", lambda how, x: x * len(how), override=True)
        >>> def scaled(i):
        ...     return rc.call_packed("demo.scale", "ab", A[i], dtype="float32") + 1.0
        >>> C = rc.compute((3,), scaled, name="C")
        >>> print(*rc.oracle.evaluate([C], {A: np.array([1, 2, 3], "float32")}))
        [3. 5. 7.]
    """
    callee = checked_callee(name)
    passed = tuple(_packed_argument(a, name) for a in args)
    if not any(isinstance(arg, AddressOf) for arg in passed):
        target = I32 if dtype is None else as_dtype(dtype)
        return _registered(callee, passed, target, REGISTERED)
    if dtype is not None:
        raise UserError(
            f"the value of {name} is used as {dtype}, but it is given buffers",
            why="a call that may write memory is a statement, and has no value",
            remedy="let the function write its result to a buffer, and leave out dtype",
        )
    return _checked(CallPacked(callee, passed))


def trace(
    args: Sequence[ExprLike | str],
    trace_action: str = DEFAULT_ACTION,
) -> Expr:
    """Return the last of `args`, and pass all of them to a registered function at each evaluation.

    Args:
        args: numbers, expressions and texts; the last one is the value that is traced.
        trace_action: the name of the registered function. The default prints the arguments as a
            list. If the function returns a number, the number replaces the traced value.

    Returns:
        An expression of the dtype of the last argument. Only host code can evaluate it. Loops that
        trace run in order, by one thread.

    Raises:
        UserError: `args` is not a list, is empty or ends in a text; or an argument is a tensor, a
            buffer or a vector.

    Source: TVM, tvm.trace.

    Example::

        >>> A = rc.placeholder((3,), name="A")
        >>> B = rc.compute((3,), lambda i: rc.trace(["A", i, A[i]]) + 1.0, name="B")
        >>> module = rc.build(rc.create_schedule(B), [A, B], target="interp")
        >>> b = np.zeros(3, "float32")
        >>> module(np.array([1, 2, 3], "float32"), b)
        ['A', 0, 1.0]
        ['A', 1, 2.0]
        ['A', 2, 3.0]
        >>> print(b)
        [2. 3. 4.]
    """
    is_list = isinstance(args, list | tuple)
    if not is_list or not args or isinstance(args[-1], str | bytes):
        raise UserError(
            f"trace is given {args!r}",
            why="it returns the last item of a list, which is a number",
            remedy="pass a list such as [A[i]] or [i, A[i]]",
        )
    passed = tuple(_packed_argument(a, trace_action) for a in args)
    for given, arg in zip(args, passed, strict=True):
        if isinstance(arg, AddressOf):
            raise UserError(
                f"trace is given the buffer {given!r}",
                remedy="pass elements of it",
            )
    return _registered(checked_callee(trace_action), passed, passed[-1].dtype, TRACE)


def call_extern(dtype: DTypeLike, name: str, *args: CallArgument) -> CallExtern:
    """Return a statement that calls a C function and drops its result.

    Args:
        dtype: the dtype of the result.
        name: the symbol, which is looked up in the shared objects of the target's option `-libs`,
            in libm and in libc.
        *args: a buffer becomes the address of its first element. Numbers are passed unchanged, so
            convert them to the types of the function's parameters.

    Raises:
        UserError: the name is not an identifier, or an argument is a text, or a tensor instead of a
            buffer.

    Source: TVM, tir.call_extern.

    Example::

        >>> A = rc.placeholder((3,), name="A")
        >>> def copy(ins, outs):
        ...     return rc.call_extern("int64", "memcpy", outs[0], ins[0], rc.const(12, "int64"))
        >>> B = rc.extern((3,), [A], copy, name="B")
        >>> print(rc.lower(rc.create_schedule(B), [A, B], "copy"))
        func copy(A: f32[3], B: f32[3] out) {
          extern i64 memcpy(write(B), read(A), 12)
        }
    """
    passed = tuple(_argument(a, name) for a in args)
    return _checked(CallExtern(checked_callee(name), as_dtype(dtype), passed))


def call_pure_extern(dtype: DTypeLike, name: str, *args: CallArgument) -> Expr:
    """Return the result of a C function of numbers without side effects, as an expression.

    Args:
        dtype: the dtype of the result.
        name: the symbol, found as for `call_extern`.
        *args: numbers and expressions. They are passed unchanged, so convert them to the types of
            the function's parameters.

    Raises:
        UserError: the name is not an identifier, or an argument is a text, a tensor or a buffer.

    Source: TVM, tir.call_pure_extern.

    Example::

        >>> A = rc.placeholder((3,), "float64", name="A")
        >>> B = rc.compute((3,), lambda i: rc.call_pure_extern("float64", "cbrt", A[i]), name="B")
        >>> print(rc.lower(rc.create_schedule(B), [A, B], "roots"))
        func roots(A: f64[3], B: f64[3] out) {
          for i in range(3) {
            B[i] = extern f64 cbrt(A[i])
          }
        }
    """
    passed = tuple(_argument(a, name) for a in args)
    return _checked(PureExtern(checked_callee(name), passed, as_dtype(dtype)))


def call_pure_intrin(dtype: DTypeLike, name: str, *args: CallArgument) -> Expr:
    """Return an intrinsic of refcomp as an expression.

    Args:
        dtype: the dtype. If it is a float, the operands are converted to it. The dtype of the
            result follows from the operands.
        name: the name in the table of `refcomp.ir.intrinsics`, such as `"exp"`, `"fma"`,
            `"popcount"`.
        *args: numbers and expressions.

    Raises:
        UserError: the intrinsic is unknown, or does not take so many operands or their dtype.

    Source: TVM, tir.call_pure_intrin.

    Example::

        >>> x = rc.var("x", "float32")
        >>> rc.call_pure_intrin("float64", "fma", x, x, 1.0)
        fma(f64(x), f64(x), 1.0f64)
        >>> rc.call_pure_intrin("float32", "cbrt", x)
        Traceback (most recent call last):
            ...
        refcomp.foundation.errors.UserError: unknown intrinsic 'cbrt'...
    """
    target = as_dtype(dtype)
    operands = [as_expr(a) for a in args]
    if target.is_float:
        operands = [cast(target, operand) for operand in operands]
    operand = operands[0].dtype if operands else F32
    intrinsic = find_intrinsic(name, operand, len(operands))
    return _checked(Call(name, tuple(operands), intrinsic.result_dtype(operand)))


def call_llvm_intrin(dtype: DTypeLike, name: str, *args: CallArgument) -> Expr:
    """Return the result of an LLVM intrinsic whose value depends only on its arguments.

    Args:
        dtype: the dtype of the result.
        name: the intrinsic, such as `llvm.fshl.i32`. If refcomp has the same function, that
            function is used, on every target. Other intrinsics exist only on hosts.
        *args: numbers and expressions. A Python number becomes `dtype`; others are passed
            unchanged.

    Raises:
        UserError: the name does not begin with `llvm.`, or an argument is a text, a tensor or a
            buffer.
        Unsupported: a value is a vector, and refcomp does not have the function.

    Source: TVM, tir.call_llvm_pure_intrin; the LLVM Language Reference for each intrinsic.

    Example::

        >>> x = rc.var("x", "int32")
        >>> rc.call_llvm_intrin("int32", "llvm.fshl.i32", x, x, 5)
        extern i32 llvm.fshl.i32(x, x, 5i32)
        >>> rc.call_llvm_intrin("int32", "llvm.ctpop.i32", x)
        popcount(x)
    """
    target = as_dtype(dtype)
    operands = []
    for given in args:
        is_number = isinstance(given, int | float) and not isinstance(given, bool)
        operand = _argument(given, name)
        operands.append(cast(target, operand) if is_number else operand)
    if not str(name).startswith("llvm."):
        raise UserError(
            f"{name!r} is not an intrinsic of LLVM",
            why='their names begin with "llvm."',
            remedy="call C functions with call_pure_extern, refcomp's own with call_pure_intrin",
        )
    stem, _, suffix = str(name).rpartition(".")
    own = _SAME.get(stem)
    # LLVM's name of the type: i32 for int32 and uint32, f32 for float32, v4f32 for float32x4.
    llvm_type = f"{target.kind[0].replace('u', 'i')}{target.bits}"
    if target.lanes > 1:
        llvm_type = f"v{target.lanes}{llvm_type}"
    if own is not None and suffix == llvm_type and target.kind != "bfloat":
        is_typed = all(operand.dtype == target for operand in operands)
        if is_typed and len(operands) == INTRINSICS[own].arity:
            return call_pure_intrin(target, own, *operands)
    if any(lanes > 1 for lanes in (target.lanes, *(o.dtype.lanes for o in operands))):
        raise Unsupported(
            f"{name} is called with vectors",
            why="it may exchange lanes, and the loop IR has only operations lane by lane",
            remedy="write what it computes as loops over scalars, and vectorize them; "
            "or call a C function: call_extern with the buffers' access_ptr",
        )
    return _checked(PureExtern(checked_callee(name), tuple(operands), target))


def _registered(
    name: str, args: tuple[Expr, ...], dtype: DType, callee: Callee
) -> Expr:
    """Return the value of a registered function, with bf16 passed and returned as f32."""
    passed = tuple(cast(F32, a) if a.dtype.kind == "bfloat" else a for a in args)
    wide = F32 if dtype.kind == "bfloat" and dtype.lanes == 1 else dtype
    return cast(dtype, _checked(PureExtern(name, passed, wide, callee)))


def _packed_argument(given: CallArgument | str, name: str) -> Expr:
    if not isinstance(given, str):
        return _argument(given, name)
    try:
        given.encode()
    except UnicodeEncodeError as error:
        raise UserError(
            f"{name} is given a text that is not Unicode", why=str(error)
        ) from error
    return TextImm(str(given))


def _argument(given: CallArgument, name: str) -> Expr:
    if isinstance(given, BufferView):
        return given.data
    if isinstance(given, AddressOf):
        return given
    if isinstance(given, Tensor):
        raise UserError(
            f"{name} is given the tensor {given.name}",
            why="a tensor has no memory while it is described",
            remedy="call it in the function of extern(), with the buffers that this is given",
        )
    if isinstance(given, str | bytes):
        raise UserError(
            f"{name} is given the text {given!r}",
            why="numbers and buffers can be passed to it",
            remedy="pass a str by call_packed, or register a function that knows the text: "
            "functools.partial(f, text)",
        )
    return as_expr(given)


def _checked(node: _N) -> _N:
    # Here, since most programs call nothing, and the rules know each instruction of GPUs.
    from refcomp.ir.type_rules import type_fault  # noqa: PLC0415

    fault = type_fault(node)
    if fault is not None:
        raise UserError(
            f"{getattr(node, 'name', '')} cannot be called: {fault}",
            remedy="convert numbers with .astype(...), pass buffers as they are",
        )
    return node
