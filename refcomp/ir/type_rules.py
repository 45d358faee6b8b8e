"""Which operands each node may have: the one statement of these rules.

`type_fault(node)` looks at one node and its children's dtypes, not deeper, and says in a sentence
what is wrong, or None. The parser turns that into an error with a line and a column, the
verifier into a `CompilerBug`. Whether a node belongs to a level, and whether names are bound, is
checked by `refcomp.ir.verify` alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from refcomp.foundation.dtype import BOOL, I32, I64, DType
from refcomp.foundation.errors import UserError
from refcomp.foundation.names import is_callee
from refcomp.ir import expr as nodes
from refcomp.ir.buffer import ACCESSES, AddressOf, Buffer, BufferLoad, Load
from refcomp.ir.expr import BinaryExpr, Expr
from refcomp.ir.func import PrimFunc, Requirement, checks_fault
from refcomp.ir.gpu_intrinsics import gpu_intrinsic_fault, is_gpu_intrinsic
from refcomp.ir.intrinsics import find_intrinsic, is_subgroup_call, subgroup_fault
from refcomp.ir.node import Node
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import (
    ATOMIC_OPERATORS,
    LOOP_KINDS,
    UNROLLED,
    VECTORIZED,
    Allocate,
    AtomicUpdate,
    Barrier,
    Block,
    BufferStore,
    CallExtern,
    CallPacked,
    For,
    IfThenElse,
    LaunchKernel,
    LetStmt,
    ParallelRegion,
    Pragma,
    Prefetch,
    Store,
)

INDEX_DTYPES = (I64, I32)
SCOPES = ("global", "local", "shared")
MOST_LANES = 1 << 16

_INT = ("int", "uint")
_NUMBER = (*_INT, "float", "bfloat")
_ANY = (*_NUMBER, "bool")
_PASSED_IN_C = (*_INT, "float", "bool")
# What a requirement is made of: the entry checks of every target evaluate these, and no others.
_ENTRY_NODES = (
    *(
        nodes.Var,
        nodes.IntImm,
        nodes.Cast,
        nodes.Comparison,
        nodes.And,
        nodes.Or,
        nodes.Not,
    ),
    *(
        nodes.Add,
        nodes.Sub,
        nodes.Mul,
        nodes.FloorDiv,
        nodes.FloorMod,
        nodes.Min,
        nodes.Max,
    ),
)
_ENTRY_OPERATORS = "+, -, *, //, %, min, max, comparisons, and, or, not"


def type_fault(item: Node) -> str | None:
    """Describe what is wrong with the operands of `item`; None if nothing is."""
    return type_rule(type(item))(item)


def type_rule(cls: type[Any]) -> Callable[[Any], str | None]:
    """Return the function that checks the operands of nodes of a class."""
    return _RULES.get(cls, _unknown)


def _unknown(item: Any) -> str:
    return f"{type(item).__name__} is no node of the loop IR"


def _binary(kinds: tuple[str, ...]) -> Callable[[Any], str | None]:
    def rule(item: BinaryExpr) -> str | None:
        a, b = item.a.dtype, item.b.dtype
        if a is not b and a != b:
            return f"the operands of {type(item).__name__} have dtypes {a} and {b}, which differ"
        return None if a.kind in kinds else _not_among(type(item).__name__, a, kinds)

    return rule


def _not_among(name: str, dtype: DType, kinds: tuple[str, ...]) -> str | None:
    if dtype.kind in kinds:
        return None
    return f"{name} is not defined on dtype {dtype}; it takes {', '.join(kinds)}"


def _var(item: nodes.Var) -> str | None:
    return _not_among("a variable", item.dtype, _ANY)


def _int_imm(item: nodes.IntImm) -> str | None:
    return _constant(item.dtype, (*_INT, "bool"))


def _float_imm(item: nodes.FloatImm) -> str | None:
    return _constant(item.dtype, ("float", "bfloat"))


def _constant(dtype: DType, kinds: tuple[str, ...]) -> str | None:
    if dtype.lanes != 1:
        return f"a constant is a scalar, not {dtype}; broadcast it"
    return _not_among("this constant", dtype, kinds)


def _cast(item: nodes.Cast) -> str | None:
    source, target = item.value.dtype, item.dtype
    if source.kind not in _ANY:
        return f"a value of dtype {source} cannot be converted"
    if source.lanes != target.lanes:
        return f"a conversion from {source} to {target} changes the number of lanes"
    return _not_among("a conversion", target, _ANY)


def _not(item: nodes.Not) -> str | None:
    return _not_among("Not", item.a.dtype, ("bool",))


def _select(item: nodes.Select) -> str | None:
    lanes = item.true_value.dtype.lanes
    return _choice("Select", item, lanes)


def _if_then_else_expr(item: nodes.IfThenElseExpr) -> str | None:
    return _choice("IfThenElseExpr", item, 1)


def _choice(
    name: str, item: nodes.Select | nodes.IfThenElseExpr, lanes: int
) -> str | None:
    a, b = item.true_value.dtype, item.false_value.dtype
    if a != b:
        return f"the values of {name} have dtypes {a} and {b}, which differ"
    return _condition(f"the condition of {name}", item.condition.dtype, lanes)


def _condition(what: str, dtype: DType, lanes: int) -> str | None:
    if dtype.is_bool and dtype.lanes == lanes:
        return None
    return f"{what} has dtype {dtype}; it must be bool with {lanes} lane{'s' * (lanes > 1)}"


def _ramp(item: nodes.Ramp) -> str | None:
    base, stride = item.base.dtype, item.stride.dtype
    if base != stride:
        return f"base and stride of Ramp have dtypes {base} and {stride}, which differ"
    if base.lanes != 1:
        return f"base and stride of Ramp are scalars, not {base}"
    return _not_among("Ramp", base, _INT) or _lanes(item.lanes)


def _broadcast(item: nodes.Broadcast) -> str | None:
    if item.value.dtype.lanes != 1:
        return f"Broadcast takes a scalar, not {item.value.dtype}"
    return _lanes(item.lanes)


def _lanes(lanes: int) -> str | None:
    if 2 <= lanes <= MOST_LANES:
        return None
    return f"a vector has 2 to {MOST_LANES} lanes, not {lanes}"


def _let(item: nodes.Let | LetStmt) -> str | None:
    if item.var.dtype == item.value.dtype:
        return _not_among("a variable", item.var.dtype, _ANY)
    return (
        f"{item.var.name} has dtype {item.var.dtype}, its value has {item.value.dtype}"
    )


def _call(item: nodes.Call) -> str | None:
    dtypes = [arg.dtype for arg in item.args]
    if len(set(dtypes)) > 1 and not is_subgroup_call(item):
        return (
            f"the operands of {item.name} have dtypes {_listed(dtypes)}, which differ"
        )
    dtype = dtypes[0] if dtypes else item.dtype
    try:
        expected = find_intrinsic(item.name, dtype, len(dtypes)).result_dtype(dtype)
    except UserError as error:
        return error.what
    if item.dtype != expected or (expected.is_float and expected.bits < 16):
        return f"{item.name} of {dtype} does not give dtype {item.dtype}"
    return subgroup_fault(item) if is_subgroup_call(item) else None


def _listed(values: list[DType]) -> str:
    return ", ".join(map(str, values))


def _indices(buffer: Buffer, indices: tuple[Expr, ...]) -> str | None:
    if len(indices) != len(buffer.shape):
        return f"{buffer.name} has rank {len(buffer.shape)}, but {len(indices)} indices"
    for index in indices:
        if index.dtype not in INDEX_DTYPES:
            return f"an index of {buffer.name} has dtype {index.dtype}; it must be i64 or i32"
    return None


def _buffer_load(item: BufferLoad) -> str | None:
    return _indices(item.buffer, item.indices)


def _buffer_store(item: BufferStore) -> str | None:
    return _indices(item.buffer, item.indices) or _stored(
        item.buffer, item.value.dtype, 1
    )


def _stored(buffer: Buffer, dtype: DType, lanes: int) -> str | None:
    expected = buffer.dtype.with_lanes(lanes)
    if dtype == expected:
        return None
    return (
        f"a value of dtype {dtype} is stored to {buffer.name}, where {expected} belongs"
    )


def _load(item: Load) -> str | None:
    return _flat_index(item)


def _store(item: Store) -> str | None:
    return _flat_index(item) or _stored(
        item.buffer, item.value.dtype, item.index.dtype.lanes
    )


def _flat_index(item: Load | Store) -> str | None:
    dtype = item.index.dtype
    if dtype.element not in INDEX_DTYPES:
        return (
            f"the index of {item.buffer.name} has dtype {dtype}; it must be i64 or i32"
        )
    if item.predicate is None:
        return None
    return _condition("the predicate", item.predicate.dtype, dtype.lanes)


def _for(item: For) -> str | None:
    dtypes = [item.var.dtype, item.minimum.dtype, item.extent.dtype]
    if len(set(dtypes)) > 1:
        return f"variable, minimum and extent of a loop have dtypes {_listed(dtypes)}"
    if dtypes[0] not in INDEX_DTYPES:
        return f"a loop variable has dtype {dtypes[0]}; it must be i64 or i32"
    if item.kind not in LOOP_KINDS:
        return f"a loop is {', '.join(LOOP_KINDS)}, not {item.kind}"
    if item.kind in (VECTORIZED, UNROLLED) and not isinstance(
        item.extent, nodes.IntImm
    ):
        return f"the extent of a loop that is {item.kind} must be a constant"
    return None


def _allocate(item: Allocate) -> str | None:
    return type_fault(item.buffer)


def _buffer(item: Buffer) -> str | None:
    if item.dtype.kind not in _ANY or item.dtype.lanes != 1:
        return f"the elements of {item.name} are scalars of memory, not {item.dtype}"
    if item.scope not in SCOPES:
        return f"{item.name} lies in {', '.join(SCOPES)}, not {item.scope}"
    if item.alignment < 0 or item.alignment & (item.alignment - 1):
        return (
            f"the alignment of {item.name} is a power of two or 0, not {item.alignment}"
        )
    for dim in item.shape:
        if dim.dtype != I64:
            return f"a dimension of {item.name} has dtype {dim.dtype}; it must be i64"
    return None


def _if_then_else(item: IfThenElse) -> str | None:
    return _condition("the condition", item.condition.dtype, 1)


def _parallel_region(item: ParallelRegion) -> str | None:
    for var in (item.task, item.num_tasks):
        if var.dtype != I64:
            return f"{var.name} of a region has dtype {var.dtype}; it must be i64"
    return None


def _atomic_update(item: AtomicUpdate) -> str | None:
    if item.operator not in ATOMIC_OPERATORS:
        return f"an atomic update is {', '.join(ATOMIC_OPERATORS)}, not {item.operator}"
    if item.buffer.scope == "local":
        return f"{item.buffer.name} is one thread's own: an atomic update of it is none"
    fault = _offset_or_indices(item.buffer, item.indices)
    if fault is not None:
        return fault
    kinds = ("float", *_INT) if item.operator in ("add", "min", "max") else _INT
    return _stored(item.buffer, item.value.dtype, 1) or _not_among(
        f"atomic {item.operator}", item.value.dtype, kinds
    )


def _offset_or_indices(buffer: Buffer, indices: tuple[Expr, ...]) -> str | None:
    is_offset = len(indices) == 1 and indices[0].dtype in INDEX_DTYPES
    return None if is_offset else _indices(buffer, indices)


def _prefetch(item: Prefetch) -> str | None:
    return _offset_or_indices(item.buffer, item.indices)


def _pragma(item: Pragma) -> str | None:
    return "the value of a pragma is a scalar" if item.value.dtype.lanes != 1 else None


def _launch_kernel(item: LaunchKernel) -> str | None:
    for extents, what in ((item.grid, "grid"), (item.block, "block")):
        if len(extents) != 3:
            return f"the {what} of a launch has 3 extents, not {len(extents)}"
    for extent in (*item.grid, *item.block, *item.shared_bytes):
        if extent.dtype not in INDEX_DTYPES:
            return f"an extent of the launch of {item.kernel} has dtype {extent.dtype}"
    return None


def _address_of(item: AddressOf) -> str | None:
    if item.access not in ACCESSES:
        return f"a callee has {', '.join(ACCESSES)} access to {item.buffer.name}, not {item.access}"
    if item.element.kind not in _ANY or item.element.bytes != item.buffer.dtype.bytes:
        return f"elements of {item.buffer.name}, {item.buffer.dtype}, are no {item.element}"
    if len(item.indices) <= 1 and all(i.dtype in INDEX_DTYPES for i in item.indices):
        return None
    return _indices(item.buffer, item.indices)


def _call_packed(item: CallPacked) -> str | None:
    for arg in item.args:
        if isinstance(arg, AddressOf) and arg.indices:
            return f"{item.name} is given a part of {arg.buffer.name}, not the whole buffer"
    return _callee(item.name) or _arguments(item.name, item.args, _ANY)


def _call_extern(item: CallExtern) -> str | None:
    return _c_function(item.name, item.result) or _arguments(
        item.name, item.args, _PASSED_IN_C
    )


def _pure_extern(item: nodes.PureExtern) -> str | None:
    for arg in item.args:
        if isinstance(arg, AddressOf):
            return f"{item.name} is given the address of {arg.buffer.name}, but called as pure"
    if is_gpu_intrinsic(item.name):
        return gpu_intrinsic_fault(item)
    name = item.name.replace(".", "_") if item.is_llvm_intrinsic else item.name
    return _c_function(name, item.dtype) or _arguments(
        item.name, item.args, _PASSED_IN_C
    )


def _c_function(name: str, result: DType) -> str | None:
    if "." in name:
        return f"{name!r} is no name of a C function"
    return _callee(name) or _passed(f"the result of {name}", result, _PASSED_IN_C)


def _callee(name: str) -> str | None:
    return None if is_callee(name) else f"{name!r} is no name of a function"


def _arguments(name: str, args: tuple[Expr, ...], kinds: tuple[str, ...]) -> str | None:
    faults = (
        _passed(f"argument {k} of {name}", arg.dtype, kinds)
        for k, arg in enumerate(args)
        if not isinstance(arg, AddressOf)
    )
    return next((fault for fault in faults if fault), None)


def _passed(what: str, dtype: DType, kinds: tuple[str, ...]) -> str | None:
    # How C passes half precision differs from compiler to compiler.
    is_half = kinds is _PASSED_IN_C and dtype.is_float and dtype.bits == 16
    if dtype.kind in kinds and dtype.lanes == 1 and not is_half:
        return None
    return f"{what} has dtype {dtype}, which cannot be passed"


def _prim_func(item: PrimFunc) -> str | None:
    names = [param.name for param in (*item.params, *item.symbols)]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        return f"two parameters or symbols are named {twice[0]}"
    for var in (*item.params, *item.symbols):
        if var.dtype.lanes != 1:
            return f"the parameter {var.name} is a scalar or a buffer, not {var.dtype}"
    for symbol in item.symbols:
        if symbol.dtype != I64:
            return f"the symbol {symbol.name} has dtype {symbol.dtype}; it must be i64"
    for buffer in item.buffers:
        if buffer.scope == "shared":
            return (
                f"the parameter {buffer.name} is shared; memory of a caller is global"
            )
    unknown = set(item.outputs) - {buffer.name for buffer in item.buffers}
    return (
        f"the output {min(unknown)} is no parameter" if unknown else checks_fault(item)
    )


def _requirement(item: Requirement) -> str | None:
    if item.condition.dtype != BOOL:
        return f"a requirement is a bool, not {item.condition.dtype}"
    for part in walk(item.condition):
        if not isinstance(part, _ENTRY_NODES):
            return (
                f"a requirement compares sizes and integers, by {_ENTRY_OPERATORS} only"
            )
        if isinstance(part, Expr) and part.dtype.kind not in (*_INT, "bool"):
            return (
                f"a requirement compares sizes and integers, not values of {part.dtype}"
            )
    return None


def _nothing(_item: Any) -> None:
    return None


_RULES: dict[type[Any], Callable[[Any], str | None]] = {
    **dict.fromkeys(
        (nodes.Add, nodes.Sub, nodes.Mul, nodes.Div, nodes.Mod), _binary(_NUMBER)
    ),
    **dict.fromkeys((nodes.FloorDiv, nodes.FloorMod), _binary(_INT)),
    **dict.fromkeys((nodes.BitAnd, nodes.BitOr, nodes.BitXor), _binary(_INT)),
    **dict.fromkeys((nodes.ShiftLeft, nodes.ShiftRight), _binary(_INT)),
    **dict.fromkeys(
        (nodes.EQ, nodes.NE, nodes.LT, nodes.LE, nodes.GT, nodes.GE), _binary(_ANY)
    ),
    **dict.fromkeys((nodes.Min, nodes.Max), _binary(_ANY)),
    **dict.fromkeys((nodes.And, nodes.Or), _binary(("bool",))),
    nodes.Var: _var,
    nodes.IntImm: _int_imm,
    nodes.FloatImm: _float_imm,
    nodes.Cast: _cast,
    nodes.Not: _not,
    nodes.Select: _select,
    nodes.IfThenElseExpr: _if_then_else_expr,
    nodes.Ramp: _ramp,
    nodes.Broadcast: _broadcast,
    nodes.Let: _let,
    nodes.Call: _call,
    nodes.PureExtern: _pure_extern,
    Buffer: _buffer,
    BufferLoad: _buffer_load,
    Load: _load,
    AddressOf: _address_of,
    For: _for,
    BufferStore: _buffer_store,
    Store: _store,
    Allocate: _allocate,
    IfThenElse: _if_then_else,
    Block: _nothing,
    LetStmt: _let,
    ParallelRegion: _parallel_region,
    Barrier: _nothing,
    AtomicUpdate: _atomic_update,
    Prefetch: _prefetch,
    Pragma: _pragma,
    LaunchKernel: _launch_kernel,
    CallPacked: _call_packed,
    CallExtern: _call_extern,
    PrimFunc: _prim_func,
    Requirement: _requirement,
}
