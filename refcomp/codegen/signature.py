"""Derive the Signature of a function, by which it is called from outside, from its parameters.

Needs a function of the nested level, whose buffers still have the shapes and the types that the
user gave them. Refuses, with Unsupported, a dimension that no caller could compute.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, replace

from refcomp.foundation.artifacts import (
    CheckedAccess,
    Condition,
    Dim,
    PointCondition,
    ScalarParam,
    Signature,
    TensorParam,
    checked_access_from_text,
)
from refcomp.foundation.dtype import I64, DType
from refcomp.foundation.errors import Unsupported
from refcomp.foundation.names import UniqueNames, mangle
from refcomp.ir import expr as ir
from refcomp.ir.buffer import Buffer
from refcomp.ir.expr import Expr, Var
from refcomp.ir.func import PrimFunc, Requirement
from refcomp.ir.printer import print_func, print_requirement
from refcomp.ir.rewrite import substitute, variables_in, with_fields
from refcomp.ir.stmt import Block

_DIM_OPERATORS: dict[type[Expr], str] = {
    ir.Add: "add",
    ir.Sub: "sub",
    ir.Mul: "mul",
    ir.FloorDiv: "floordiv",
    ir.FloorMod: "floormod",
    ir.Min: "min",
    ir.Max: "max",
}
_TEST_OPERATORS: dict[type[Expr], str] = {
    **_DIM_OPERATORS,
    ir.LT: "lt",
    ir.LE: "le",
    ir.EQ: "eq",
    ir.NE: "ne",
    ir.And: "and",
    ir.Or: "or",
}
Names = Mapping[Buffer | Var, str]  # of parameters and symbols
_WRAPPING = (ir.Add, ir.Sub, ir.Mul, ir.FloorDiv)
_MIRRORED: dict[type[Expr], str] = {ir.GT: "lt", ir.GE: "le"}

# The optimizer and the loader would take a kernel of such a name for the C function.
_C_NAMES = """
acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp10 exp2
expm1 fabs fdim floor fma fmax fmin fmod frexp hypot ilogb ldexp lgamma log log10 log1p log2
logb lrint lround modf nearbyint nextafter pow powi remainder rint round roundeven scalbn sin
sincos sinh sinpi cospi sqrt tan tanh tgamma trunc abs labs llabs div ffs
malloc calloc realloc free aligned_alloc memalign posix_memalign valloc alloca
memcpy memmove memset memcmp memchr memccpy mempcpy memrchr bcmp bcopy bzero
strlen strcpy strcat strcmp strchr strncpy strncat strncmp strdup strstr atoi atol strtol
printf puts putchar fprintf fputs fputc fwrite sprintf snprintf scanf fopen fclose
read write open close exit abort atexit qsort getenv rename remove access stat
syscall pthread_create pthread_detach __register_atfork _init _fini
"""
_RESERVED = frozenset(_C_NAMES.split())


def machine_symbol(name: str) -> str:
    """Return the name of the function `name` in machine code, which the C library does not use."""
    symbol = mangle(name)
    is_taken = symbol in _RESERVED or (symbol[:-1] in _RESERVED and symbol[-1] in "fl")
    return f"{symbol}_" if is_taken else symbol


def signature_of(func: PrimFunc) -> Signature:
    """Return the arguments of `func` in order, with its symbol in machine code.

    Parameters and symbols that share a name get numbers. Raise Unsupported as the module says.
    """
    unique = UniqueNames(first=2)
    names = {item: unique.take(item.name) for item in (*func.params, *func.symbols)}
    checks = checks_of(func)
    own = func.params[:-1] if checks else func.params
    return Signature(
        machine_symbol(func.name),
        params=tuple(_param(func, param, names) for param in own),
        symbols=tuple(names[var] for var in func.symbols),
        requires=tuple(_condition(requirement, names) for requirement in func.requires),
        checks=checks,
    )


def checks_of(func: PrimFunc) -> tuple[CheckedAccess, ...]:
    """Return the accesses that `func` checks. If there are any, refcomp adds the last parameter."""
    return tuple(map(checked_access_from_text, func.checks))


def _param(
    func: PrimFunc, param: Buffer | Var, names: Names
) -> TensorParam | ScalarParam:
    if isinstance(param, Var):
        return ScalarParam(names[param], param.dtype)
    shape = tuple(_dim(dim, param, names) for dim in param.shape)
    return TensorParam(names[param], param.dtype, shape, param.name in func.outputs)


def _condition(requirement: Requirement, names: Names) -> Condition:
    points = _points(requirement, names) if requirement.axes else None
    test = 1 if points else _test(requirement.condition, names)
    origin = () if requirement.origin is None else astuple(requirement.origin)
    return replace(Condition(test, *origin), points=points)


def _points(requirement: Requirement, names: Names) -> PointCondition:
    """Return a requirement with axes as text, and the names of the arguments that it needs."""
    bound = set(requirement.axes)
    parts = (*requirement.minima, *requirement.extents, requirement.condition)
    named = dict.fromkeys(var for part in parts for var in variables_in(part))
    free = [var for var in named if var not in bound]
    # A function has one scalar of a name.
    renamed = {var: Var(names[var], var.dtype) for var in free}
    alone = substitute(with_fields(requirement, origin=None), renamed)
    func = PrimFunc("check", tuple(renamed.values()), Block(()), requires=(alone,))
    return PointCondition(
        print_requirement(alone),
        print_func(func),
        tuple(names[var] for var in free),
    )


def _test(expr: Expr, names: Names) -> Dim:
    """Return a condition as a tree. The type rules of the loop IR allow no other node in it."""
    match expr:
        case ir.IntImm(value=value):
            return value
        case Var():
            return names[expr]
        case ir.Cast(dtype=dtype, value=value):
            return _wrapped(_test(value, names), dtype, value.dtype)
        case ir.Not(a=a):
            return ("eq", _test(a, names), 0)
        case ir.GT(a=a, b=b) | ir.GE(a=a, b=b):
            return (_MIRRORED[type(expr)], _test(b, names), _test(a, names))
        case ir.BinaryExpr(a=a, b=b):
            test = (_TEST_OPERATORS[type(expr)], _test(a, names), _test(b, names))
            # Sums of i64 do not overflow: see `refcomp.arith.facts`.
            if isinstance(expr, _WRAPPING) and expr.dtype != I64:
                return (str(expr.dtype), test, 0)
            return test
    raise AssertionError(expr)


def _wrapped(test: Dim, dtype: DType, source: DType) -> Dim:
    """Return a value of `source` converted to `dtype`."""
    if not (dtype.is_int and source.is_int):
        return test
    if dtype.min_value <= source.min_value and source.max_value <= dtype.max_value:
        return test
    return (str(dtype), test, 0)


def _dim(expr: Expr, buffer: Buffer, names: Names) -> Dim:
    match expr:
        case ir.IntImm(value=value):
            return value
        case Var():
            return names[expr]
        case ir.Cast(dtype=dtype, value=value) if dtype.is_int and value.dtype.is_int:
            return _dim(value, buffer, names)
        case ir.BinaryExpr(a=a, b=b) if type(expr) in _DIM_OPERATORS:
            operator = _DIM_OPERATORS[type(expr)]
            return (operator, _dim(a, buffer, names), _dim(b, buffer, names))
    raise Unsupported(
        f"a dimension of {buffer.name} is a {type(expr).__name__}, which a caller cannot compute",
        why="dimensions are sums, products, floor quotients, least and greatest values of symbols",
        remedy="compute the value outside and pass it as a scalar argument",
    )
