"""One expression of each class, as text and as a node, and the names these are made of."""

from refcomp.foundation.dtype import BOOL, F32, I64, DType
from refcomp.ir import expr as ir
from refcomp.ir.buffer import AddressOf, Buffer, BufferLoad, Load
from refcomp.ir.expr import Expr, IntImm, Var
from refcomp.ir.parser import parse_expr

i, j = Var("i", I64), Var("j", I64)
x, p = Var("x", F32), Var("p", BOOL)
u = Var("u", DType("uint", 8))
A = Buffer("A", F32, (IntImm(4, I64), IntImm(8, I64)))
NAMES: dict[str, Var | Buffer] = {"i": i, "j": j, "x": x, "p": p, "u": u, "A": A}

TEXTS: dict[type[Expr], str] = {
    Var: "i",
    IntImm: "7u8",
    ir.FloatImm: "0.1f32",
    ir.Cast: "f32(i)",
    ir.Add: "i + j",
    ir.Sub: "i - j",
    ir.Mul: "i * j",
    ir.Div: "x / 2.0f32",
    ir.Mod: "truncmod(i, j)",
    ir.FloorDiv: "i // j",
    ir.FloorMod: "i % j",
    ir.Min: "min(i, j)",
    ir.Max: "max(i, j)",
    ir.BitAnd: "i & j",
    ir.BitOr: "i | j",
    ir.BitXor: "i ^ j",
    ir.ShiftLeft: "i << j",
    ir.ShiftRight: "i >> j",
    ir.EQ: "i == j",
    ir.NE: "i != j",
    ir.LT: "i < j",
    ir.LE: "i <= j",
    ir.GT: "i > j",
    ir.GE: "i >= j",
    ir.And: "p and i < j",
    ir.Or: "p or i < j",
    ir.Not: "not p",
    ir.Select: "select(p, i, j)",
    ir.IfThenElseExpr: "if_then_else(p, i, j)",
    ir.Ramp: "ramp(i, 1, 8)",
    ir.Broadcast: "broadcast(x, 8)",
    ir.Let: "(let k: i64 = i in k * k)",
    ir.Call: "exp(x)",
    BufferLoad: "A[i, j]",
    Load: "A@[i if p]",
    AddressOf: "update(A[i, j])",
    ir.PureExtern: "extern f32 expf(x)",
    ir.TextImm: '"text"',
}
EXPRS: list[Expr] = [parse_expr(text, NAMES) for text in TEXTS.values()]
