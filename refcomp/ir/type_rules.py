"""Rules for the operands of each node.

`type_fault(node)` looks at a node and the dtypes of its children, and not deeper. It describes what
is wrong in a sentence. The parser makes this an error with line and column, the verifier a
`CompilerBug`. `refcomp.ir.verify` checks names and levels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import chain
from typing import Any

from refcomp.foundation.dtype import BOOL, I32, I64, DType
from refcomp.foundation.errors import UserError
from refcomp.foundation.names import is_callee
from refcomp.ir import expr as ir
from refcomp.ir.buffer import (
    LOCAL,
    SHARED,
    AddressOf,
    Buffer,
    BufferAccess,
    BufferLoad,
    Load,
    StorageScope,
)
from refcomp.ir.expr import BinaryExpr, Expr
from refcomp.ir.func import PrimFunc, Requirement, checks_fault
from refcomp.ir.gpu_intrinsics import gpu_intrinsic_fault, is_gpu_intrinsic
from refcomp.ir.intrinsics import find_intrinsic, is_subgroup_call, subgroup_fault
from refcomp.ir.node import Node
from refcomp.ir.rewrite import children, walk
from refcomp.ir.stmt import (
    UNROLLABLE,
    UNROLLED,
    VECTORIZED,
    Allocate,
    AtomicOperator,
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
    LoopKind,
    ParallelRegion,
    Pragma,
    Prefetch,
    Store,
)

INDEX_DTYPES = (I64, I32)
_LOOP_KINDS = frozenset(LoopKind)
_CONSTANT_KINDS = (VECTORIZED, UNROLLED, UNROLLABLE)
_ATOMIC_OPERATORS = frozenset(AtomicOperator)
_ARITHMETIC_UPDATES = (AtomicOperator.ADD, AtomicOperator.MIN, AtomicOperator.MAX)
_SCOPES = frozenset(StorageScope)
_ACCESSES = frozenset(BufferAccess)
MAX_LANES = 1 << 16

_INT = ("int", "uint")
_NUMBER = (*_INT, "float", "bfloat")
_ANY = (*_NUMBER, "bool")
_PASSED_IN_C = (*_INT, "float", "bool")
_ANY_BUT_BFLOAT = (*_INT, "float", "bool")
# The operands that each binary node takes.
_OPERANDS: dict[type[Node], tuple[str, ...]] = {
    **dict.fromkeys((ir.Add, ir.Sub, ir.Mul, ir.Div, ir.Mod), _NUMBER),
    **dict.fromkeys((ir.FloorDiv, ir.FloorMod), _INT),
    **dict.fromkeys((ir.BitAnd, ir.BitOr, ir.BitXor), _INT),
    **dict.fromkeys((ir.ShiftLeft, ir.ShiftRight), _INT),
    **dict.fromkeys((ir.EQ, ir.NE, ir.LT, ir.LE, ir.GT, ir.GE), _ANY),
    **dict.fromkeys((ir.Min, ir.Max), _ANY),
    **dict.fromkeys((ir.And, ir.Or), ("bool",)),
}
# The nodes that a requirement may have: the entry checks of every target evaluate these only.
_LOGIC = (ir.Comparison, ir.And, ir.Or, ir.Not)
_ARITHMETIC = (ir.Add, ir.Sub, ir.Mul, ir.FloorDiv, ir.FloorMod, ir.Min, ir.Max)
_ENTRY_NODES = (ir.Var, ir.IntImm, ir.Cast, *_LOGIC, *_ARITHMETIC)
_ENTRY_OPERATORS = "+, -, *, //, %, min, max, comparisons, and, or, not"
# The nodes that a requirement with axes may have (see `refcomp.arith.everywhere`).
_POINT_NODES = (
    *(ir.Var, ir.IntImm, ir.FloatImm, ir.Cast, ir.Call, ir.BinaryExpr, ir.Not),
    *(ir.Select, ir.IfThenElseExpr),
)
_POINT_CALLS = ("sqrt", "floor", "ceil", "trunc", "round", "abs")

# A function that describes what is wrong with a node of one class; None if nothing is.
TypeRule = Callable[[Any], str | None]
_RULES: dict[type[Node], TypeRule] = {}


def type_fault(item: Node) -> str | None:
    """Describe what is wrong with the operands of `item`; None if nothing is."""
    return type_rule(type(item))(item)


def type_rule(cls: type[Node]) -> TypeRule:
    """Return the function that checks the operands of nodes of a class."""
    return _RULES.get(cls, _unknown)


def _unknown(item: Node) -> str:
    return f"{type(item).__name__} is not a node of the loop IR"


def _rule_for(*classes: type[Node]) -> Callable[[TypeRule], TypeRule]:
    """Register the decorated function as the rule for `classes`."""

    def register(rule: TypeRule) -> TypeRule:
        _RULES.update(dict.fromkeys(classes, rule))
        return rule

    return register


@_rule_for(*_OPERANDS)
def _binary(item: BinaryExpr) -> str | None:
    a = item.a.dtype
    b = item.b.dtype
    cls = type(item)
    if a is not b and a != b:
        return f"the operands of {cls.__name__} have dtypes {a} and {b}, which differ"
    if a.kind in _OPERANDS[cls]:
        return None
    return _not_among(cls.__name__, a, _OPERANDS[cls])


def _not_among(name: str, dtype: DType, kinds: tuple[str, ...]) -> str | None:
    if dtype.kind in kinds:
        return None
    return f"{name} is not defined on dtype {dtype}; it takes {', '.join(kinds)}"


@_rule_for(ir.Var)
def _var(item: ir.Var) -> str | None:
    return _not_among("a variable", item.dtype, _ANY)


@_rule_for(ir.IntImm, ir.FloatImm)
def _constant(item: ir.IntImm | ir.FloatImm) -> str | None:
    if item.dtype.lanes != 1:
        return f"a constant is a scalar, not {item.dtype}; broadcast it"
    is_float = isinstance(item, ir.FloatImm)
    kinds = ("float", "bfloat") if is_float else (*_INT, "bool")
    return _not_among("this constant", item.dtype, kinds)


@_rule_for(ir.Cast)
def _cast(item: ir.Cast) -> str | None:
    source = item.value.dtype
    target = item.dtype
    if source.kind not in _ANY:
        return f"a value of dtype {source} cannot be converted"
    if source.lanes != target.lanes:
        return f"a conversion from {source} to {target} changes the number of lanes"
    return _not_among("a conversion", target, _ANY)


@_rule_for(ir.Not)
def _not(item: ir.Not) -> str | None:
    return _not_among("Not", item.a.dtype, ("bool",))


@_rule_for(ir.Select, ir.IfThenElseExpr)
def _choice(item: ir.Select | ir.IfThenElseExpr) -> str | None:
    a = item.true_value.dtype
    b = item.false_value.dtype
    name = type(item).__name__
    if a != b:
        return f"the values of {name} have dtypes {a} and {b}, which differ"
    lanes = a.lanes if isinstance(item, ir.Select) else 1
    return _condition(f"the condition of {name}", item.condition.dtype, lanes)


def _condition(what: str, dtype: DType, lanes: int) -> str | None:
    if dtype.is_bool and dtype.lanes == lanes:
        return None
    return f"{what} has dtype {dtype}; it must be bool with {lanes} lane{'s' * (lanes > 1)}"


@_rule_for(ir.Ramp)
def _ramp(item: ir.Ramp) -> str | None:
    base = item.base.dtype
    stride = item.stride.dtype
    if base != stride:
        return f"base and stride of Ramp have dtypes {base} and {stride}, which differ"
    if base.lanes != 1:
        return f"base and stride of Ramp are scalars, not {base}"
    return _not_among("Ramp", base, _INT) or _lanes(item.lanes)


@_rule_for(ir.Broadcast)
def _broadcast(item: ir.Broadcast) -> str | None:
    if item.value.dtype.lanes != 1:
        return f"Broadcast takes a scalar, not {item.value.dtype}"
    return _lanes(item.lanes)


def _lanes(lanes: int) -> str | None:
    if 2 <= lanes <= MAX_LANES:
        return None
    return f"a vector has 2 to {MAX_LANES} lanes, not {lanes}"


@_rule_for(ir.Let, LetStmt)
def _let(item: ir.Let | LetStmt) -> str | None:
    if item.var.dtype == item.value.dtype:
        return _not_among("a variable", item.var.dtype, _ANY)
    return (
        f"{item.var.name} has dtype {item.var.dtype}, its value has {item.value.dtype}"
    )


@_rule_for(ir.Call)
def _call(item: ir.Call) -> str | None:
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


@_rule_for(BufferLoad)
def _buffer_load(item: BufferLoad) -> str | None:
    return _indices(item.buffer, item.indices)


@_rule_for(BufferStore)
def _buffer_store(item: BufferStore) -> str | None:
    fault = _indices(item.buffer, item.indices)
    return fault or _stored(item.buffer, item.value.dtype, 1)


def _stored(buffer: Buffer, dtype: DType, lanes: int) -> str | None:
    expected = buffer.dtype.with_lanes(lanes)
    if dtype == expected:
        return None
    return (
        f"a value of dtype {dtype} is stored to {buffer.name}, which holds {expected}"
    )


@_rule_for(Store)
def _store(item: Store) -> str | None:
    fault = _flat_index(item)
    return fault or _stored(item.buffer, item.value.dtype, item.index.dtype.lanes)


@_rule_for(Load)
def _flat_index(item: Load | Store) -> str | None:
    dtype = item.index.dtype
    if dtype.element not in INDEX_DTYPES:
        return (
            f"the index of {item.buffer.name} has dtype {dtype}; it must be i64 or i32"
        )
    if item.predicate is None:
        return None
    return _condition("the predicate", item.predicate.dtype, dtype.lanes)


@_rule_for(For)
def _for(item: For) -> str | None:
    dtypes = [item.var.dtype, item.minimum.dtype, item.extent.dtype]
    if len(set(dtypes)) > 1:
        return f"variable, minimum and extent of a loop have dtypes {_listed(dtypes)}"
    if dtypes[0] not in INDEX_DTYPES:
        return f"a loop variable has dtype {dtypes[0]}; it must be i64 or i32"
    if item.kind not in _LOOP_KINDS:
        return f"a loop is {', '.join(LoopKind)}, not {item.kind}"
    has_constant_extent = isinstance(item.extent, ir.IntImm)
    if item.kind in _CONSTANT_KINDS and not has_constant_extent:
        return f"the extent of a loop that is {item.kind} must be a constant"
    return None


@_rule_for(Allocate)
def _allocate(item: Allocate) -> str | None:
    return type_fault(item.buffer)


@_rule_for(Buffer)
def _buffer(item: Buffer) -> str | None:
    if item.dtype.kind not in _ANY or item.dtype.lanes != 1:
        return f"the elements of {item.name} are scalars of memory, not {item.dtype}"
    if item.scope not in _SCOPES:
        return f"{item.name} lies in {', '.join(StorageScope)}, not {item.scope}"
    if item.alignment < 0 or item.alignment & (item.alignment - 1):
        return (
            f"the alignment of {item.name} is a power of two or 0, not {item.alignment}"
        )
    for dim in item.shape:
        if dim.dtype != I64:
            return f"a dimension of {item.name} has dtype {dim.dtype}; it must be i64"
    return None


@_rule_for(IfThenElse)
def _if_then_else(item: IfThenElse) -> str | None:
    return _condition("the condition", item.condition.dtype, 1)


@_rule_for(ParallelRegion)
def _parallel_region(item: ParallelRegion) -> str | None:
    for var in (item.task, item.num_tasks):
        if var.dtype != I64:
            return f"{var.name} of a region has dtype {var.dtype}; it must be i64"
    return None


@_rule_for(AtomicUpdate)
def _atomic_update(item: AtomicUpdate) -> str | None:
    if item.operator not in _ATOMIC_OPERATORS:
        return f"an atomic update is {', '.join(AtomicOperator)}, not {item.operator}"
    if item.buffer.scope == LOCAL:
        return f"{item.buffer.name} is local to a thread: no atomic update is needed"
    fault = _offset_or_indices(item.buffer, item.indices)
    if fault is not None:
        return fault
    dtype = item.value.dtype
    kinds = ("float", *_INT) if item.operator in _ARITHMETIC_UPDATES else _INT
    fault = _stored(item.buffer, dtype, 1)
    return fault or _not_among(f"atomic {item.operator}", dtype, kinds)


def _offset_or_indices(buffer: Buffer, indices: tuple[Expr, ...]) -> str | None:
    is_offset = len(indices) == 1 and indices[0].dtype in INDEX_DTYPES
    return None if is_offset else _indices(buffer, indices)


@_rule_for(Prefetch)
def _prefetch(item: Prefetch) -> str | None:
    return _offset_or_indices(item.buffer, item.indices)


@_rule_for(Pragma)
def _pragma(item: Pragma) -> str | None:
    return "the value of a pragma is a scalar" if item.value.dtype.lanes != 1 else None


@_rule_for(LaunchKernel)
def _launch_kernel(item: LaunchKernel) -> str | None:
    for extents, what in ((item.grid, "grid"), (item.block, "block")):
        if len(extents) != 3:
            return f"the {what} of a launch has 3 extents, not {len(extents)}"
    for extent in (*item.grid, *item.block, *item.shared_bytes):
        if extent.dtype not in INDEX_DTYPES:
            return f"an extent of the launch of {item.kernel} has dtype {extent.dtype}"
    return None


@_rule_for(AddressOf)
def _address_of(item: AddressOf) -> str | None:
    if item.access not in _ACCESSES:
        known = ", ".join(BufferAccess)
        return f"a callee has {known} access to {item.buffer.name}, not {item.access}"
    if item.element.kind not in _ANY or item.element.bytes != item.buffer.dtype.bytes:
        held = f"elements of {item.buffer.name}, {item.buffer.dtype}"
        return f"{held}, cannot be accessed as {item.element}"
    if len(item.indices) <= 1 and all(i.dtype in INDEX_DTYPES for i in item.indices):
        return None
    return _indices(item.buffer, item.indices)


@_rule_for(ir.TextImm)
def _text(item: ir.TextImm) -> str | None:
    try:
        item.value.encode()
    except UnicodeEncodeError:
        return "a text that is not Unicode cannot be passed"
    return None


@_rule_for(CallPacked)
def _call_packed(item: CallPacked) -> str | None:
    for arg in item.args:
        if isinstance(arg, AddressOf) and arg.indices:
            return f"{item.name} is given a part of {arg.buffer.name}, not the whole buffer"
    fault = _callee(item.name)
    numbers = tuple(arg for arg in item.args if not isinstance(arg, ir.TextImm))
    return fault or _arguments(item.name, numbers, _ANY)


@_rule_for(CallExtern)
def _call_extern(item: CallExtern) -> str | None:
    fault = _c_function(item.name, item.result)
    return fault or _arguments(item.name, item.args, _PASSED_IN_C)


@_rule_for(ir.PureExtern)
def _pure_extern(item: ir.PureExtern) -> str | None:
    for arg in item.args:
        if isinstance(arg, AddressOf):
            return f"{item.name} is given the address of {arg.buffer.name}, but called as pure"
    if item.callee != ir.C_FUNCTION:
        return _registered(item)
    if is_gpu_intrinsic(item.name):
        return gpu_intrinsic_fault(item)
    name = item.name.replace(".", "_") if item.is_llvm_intrinsic else item.name
    fault = _c_function(name, item.dtype)
    return fault or _arguments(item.name, item.args, _PASSED_IN_C)


def _registered(item: ir.PureExtern) -> str | None:
    """Return the fault of a call of a registered function whose value is used."""
    if is_gpu_intrinsic(item.name):
        return f"{item.name} is an instruction of a GPU, not a registered function"
    fault = _callee(item.name)
    fault = fault or _passed(f"the result of {item.name}", item.dtype, _ANY_BUT_BFLOAT)
    fault = fault or _arguments(item.name, item.numbers, _ANY_BUT_BFLOAT)
    if fault is not None or item.callee != ir.TRACE:
        return fault
    if not item.args or item.args[-1].dtype != item.dtype:
        return f"a trace by {item.name} has the dtype {item.dtype}, not that of its last argument"
    return None


def _c_function(name: str, result: DType) -> str | None:
    if "." in name:
        return f"{name!r} is not the name of a C function"
    return _callee(name) or _passed(f"the result of {name}", result, _PASSED_IN_C)


def _callee(name: str) -> str | None:
    return None if is_callee(name) else f"{name!r} is not the name of a function"


def _arguments(name: str, args: tuple[Expr, ...], kinds: tuple[str, ...]) -> str | None:
    for k, arg in enumerate(args):
        if not isinstance(arg, AddressOf):
            fault = _passed(f"argument {k} of {name}", arg.dtype, kinds)
            if fault is not None:
                return fault
    return None


def _passed(what: str, dtype: DType, kinds: tuple[str, ...]) -> str | None:
    # How C passes half precision differs from compiler to compiler.
    is_half = kinds is _PASSED_IN_C and dtype.is_float and dtype.bits == 16
    if dtype.kind in kinds and dtype.lanes == 1 and not is_half:
        return None
    return f"{what} has dtype {dtype}, which cannot be passed"


@_rule_for(PrimFunc)
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
        if buffer.scope == SHARED:
            return f"the parameter {buffer.name} is shared, but memory of callers is global"
    unknown = set(item.outputs) - {buffer.name for buffer in item.buffers}
    if unknown:
        return f"the output {min(unknown)} is not a parameter"
    return checks_fault(item)


@_rule_for(Requirement)
def _requirement(item: Requirement) -> str | None:
    if item.condition.dtype != BOOL:
        return f"a requirement is a bool, not {item.condition.dtype}"
    if item.axes:
        return _requirement_at_points(item)
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


def _requirement_at_points(item: Requirement) -> str | None:
    """Describe what is wrong with a requirement that has axes."""
    for axis, minimum, extent in zip(item.axes, item.minima, item.extents, strict=True):
        dtypes = [axis.dtype, minimum.dtype, extent.dtype]
        if axis.dtype not in INDEX_DTYPES or len(set(dtypes)) > 1:
            return f"an axis and its range are i64 or i32, not {_listed(dtypes)}"
    for part in chain.from_iterable(map(walk, children(item))):
        is_known = isinstance(part, _POINT_NODES)
        if isinstance(part, ir.Call) and part.name not in _POINT_CALLS:
            return (
                f"a requirement calls {', '.join(_POINT_CALLS)} only, not {part.name}"
            )
        if not is_known or not isinstance(part, Expr):
            return f"a requirement has no {type(part).__name__}"
        kinds = (*_INT, "bool") if isinstance(part, ir.Var) else _ANY_BUT_BFLOAT
        if part.dtype.kind not in kinds or part.dtype.lanes != 1:
            return f"a requirement has no value of {part.dtype}"
    return None


@_rule_for(Block, Barrier)
def _without_operands(_item: Block | Barrier) -> None:
    return None
