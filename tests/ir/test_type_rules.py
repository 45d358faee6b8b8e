"""What operands each node may have."""

import pytest
from hypothesis import given

from refcomp.foundation.dtype import BOOL, F32, I32, I64, STRING, DType, as_dtype
from refcomp.ir import expr as ir
from refcomp.ir.buffer import Buffer, BufferLoad, Load
from refcomp.ir.expr import Expr, FloatImm, IntImm, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.node import Node
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import Block, BufferStore, For, IfThenElse, LetStmt, ParallelRegion, Store
from refcomp.ir.type_rules import type_fault
from tests.ir.samples import EXPRS, i, j, p, u, x
from tests.strategies.exprs import dtypes, exprs

ONE, SMALL = IntImm(1, I64), IntImm(1, I32)
V = Var("v", I64.with_lanes(4))
Q = Var("q", BOOL.with_lanes(4))
A = Buffer("A", F32, (IntImm(4, I64),))
CHECK = "reads\nA\n0\nn\ni\nB[i] = A[i]\n"


@pytest.mark.parametrize("expr", EXPRS, ids=str)
def test_the_samples_are_right(expr):
    assert type_fault(expr) is None


@pytest.mark.parametrize("expr", [e for e in EXPRS if isinstance(e, ir.BinaryExpr)], ids=str)
def test_operands_of_each_binary_class_have_one_dtype(expr):
    fault = type_fault(type(expr)(i, u))
    assert fault == f"the operands of {type(expr).__name__} have dtypes i64 and u8, which differ"


@pytest.mark.parametrize(
    ("node", "fault"),
    [
        (Var("h", DType("handle", 64)), "a variable is not defined on dtype handle"),
        (IntImm(1, F32), "this constant is not defined on dtype f32"),
        (FloatImm(1.0, F32.with_lanes(4)), "a constant is a scalar, not f32x4; broadcast it"),
        (ir.Cast(STRING, x), "a conversion is not defined on dtype string"),
        (ir.Cast(F32, V), "a conversion from i64x4 to f32 changes the number of lanes"),
        (ir.FloorDiv(x, x), "FloorDiv is not defined on dtype f32; it takes int, uint"),
        (ir.Add(p, p), "Add is not defined on dtype bool"),
        (ir.BitAnd(p, p), "BitAnd is not defined on dtype bool"),
        (ir.And(i, i), "And is not defined on dtype i64; it takes bool"),
        (ir.Not(i), "Not is not defined on dtype i64"),
        (ir.Select(p, i, x), "the values of Select have dtypes i64 and f32, which differ"),
        (
            ir.Select(p, V, V),
            "the condition of Select has dtype bool; it must be bool with 4 lanes",
        ),
        (ir.IfThenElseExpr(Q, V, V), "the condition of IfThenElseExpr has dtype boolx4"),
        (ir.Ramp(i, SMALL, 4), "base and stride of Ramp have dtypes i64 and i32, which differ"),
        (ir.Ramp(V, V, 4), "base and stride of Ramp are scalars, not i64x4"),
        (ir.Ramp(i, i, 1), "a vector has 2 to 65536 lanes, not 1"),
        (ir.Broadcast(V, 4), "Broadcast takes a scalar, not i64x4"),
        (ir.Broadcast(i, -2), "a vector has 2 to 65536 lanes, not -2"),
        (ir.Let(i, x, i), "i has dtype i64, its value has f32"),
        (ir.Call("pow", (x, i), F32), "the operands of pow have dtypes f32, i64, which differ"),
        (ir.Call("exp", (x,), I64), "exp of f32 does not give dtype i64"),
        (ir.Call("nothing", (x,), F32), "unknown intrinsic 'nothing'"),
        (ir.Call("subgroup_reduce_add", (x, i), F32), "the operands of subgroup_reduce_add"),
        (
            ir.Call("subgroup_reduce_add", (x, IntImm(24, I32)), F32),
            "a subgroup has 2, 4, 8, 16, 32 or 64",
        ),
        (
            ir.Call("subgroup_reduce_add", (V, IntImm(8, I32)), V.dtype),
            "subgroup_reduce_add takes a",
        ),
        (
            ir.Call("subgroup_shuffle_xor", (x, IntImm(8, I32), IntImm(8, I32)), F32),
            "a mask of subgroup_shuffle_xor is less than the width 8, not 8",
        ),
        (
            ir.Call("bits_to_float", (u,), DType("float", 8)),
            "bits_to_float of u8 does not give dtype f8",
        ),
        (BufferLoad(A, (i, i)), "A has rank 1, but 2 indices"),
        (BufferLoad(A, (u,)), "an index of A has dtype u8; it must be i64 or i32"),
        (Load(A, x), "the index of A has dtype f32; it must be i64 or i32"),
        (Load(A, V, p), "the predicate has dtype bool; it must be bool with 4 lanes"),
        (BufferStore(A, (i,), i), "a value of dtype i64 is stored to A, which holds f32"),
        (Store(A, V, x), "a value of dtype f32 is stored to A, which holds f32x4"),
        (For(i, SMALL, ONE, "serial", Block(())), "variable, minimum and extent of a loop have"),
        (For(u, u, u, "serial", Block(())), "a loop variable has dtype u8"),
        (For(i, ONE, ONE, "fast", Block(())), "a loop is serial, parallel, vectorized, unrolled"),
        (For(i, ONE, j, "unrolled", Block(())), "the extent of a loop that is unrolled must be"),
        (IfThenElse(i, Block(())), "the condition has dtype i64; it must be bool with 1 lane"),
        (LetStmt(i, x, Block(())), "i has dtype i64, its value has f32"),
        (ParallelRegion("r", (), u, i, Block(())), "u of a region has dtype u8; it must be i64"),
        (Buffer("B", F32.with_lanes(2), ()), "the elements of B are scalars of memory, not f32x2"),
        (Buffer("B", F32, (SMALL,)), "a dimension of B has dtype i32; it must be i64"),
        (Buffer("B", F32, (), "warp"), "B lies in global, local, shared, not warp"),
        (Buffer("B", F32, (), "local", 48), "the alignment of B is a power of two or 0, not 48"),
        (PrimFunc("f", (A, A), Block(())), "two parameters or symbols are named A"),
        (PrimFunc("f", (V,), Block(())), "the parameter v is a scalar or a buffer, not i64x4"),
        (PrimFunc("f", (A,), Block(()), ("B",)), "the output B is not a parameter"),
        (
            PrimFunc("f", (A,), Block(()), ("A",), checks=(CHECK,)),
            "a function with 1 checks takes an i64[1, 3] out last",
        ),
        (
            PrimFunc("f", (), Block(()), checks=(CHECK,)),
            "a function with 1 checks takes an i64[1, 3] out last",
        ),
        (
            PrimFunc("f", (A,), Block(()), ("A",), checks=("eats A",)),
            "'eats A' does not describe an access",
        ),
        (
            PrimFunc("f", (Buffer("B", F32, (ir.Cast(I64, Var("n", I32)),)),), Block(())),
            "the symbol n has dtype i32; it must be i64",
        ),
    ],
    ids=str,
)
def test_each_rule_has_its_sentence(node: Node, fault: str):
    assert (type_fault(node) or "").startswith(fault)


def test_an_unknown_node_belongs_to_no_level():
    class Foreign(Node):
        pass

    assert type_fault(Foreign()) == "Foreign is not a node of the loop IR"


@pytest.mark.search
@given(dtypes().flatmap(lambda dtype: exprs(dtype, [i, p, x])))
def test_random_expressions_are_right(expr: Expr):
    assert [type_fault(node) for node in walk(expr) if type_fault(node)] == []


def test_narrow_indices_are_allowed():
    assert type_fault(Load(A, SMALL)) is None
    assert type_fault(Load(A, Var("w", as_dtype("i32x4")))) is None
