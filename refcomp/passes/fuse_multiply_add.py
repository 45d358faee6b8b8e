"""Makes sums with a product fused multiply-adds, which round once.

Before::

    func f(A: f32[n], B: f32[n], C: f32[n] out) {
      for i in range(n) {
        C[i] = C[i] + A[i] * B[i]
      }
    }

After::

    func f(A: f32[n], B: f32[n], C: f32[n] out) {
      for i in range(n) {
        C[i] = fma(A[i], B[i], C[i])
      }
    }

The pipeline has this pass only if `contract` of `refcomp.foundation.options` permits it,
since results change. A sum of n products, each at most p, changes by less than
2 (n + 1)^2 p units of roundoff (2^-24 for f32). The loop IR shows which operations are
fused. So all targets and the interpreter compute the same bits.

Of two products, the left one is fused. x * y - z is fma(x, y, -z), and z - x * y is
fma(-x, y, z). The negation, a product with -1, is exact.

Requires: nothing. Ensures: no sum of f32 or f64 with a product is left. Other types are
not changed, as their fma is not a single instruction. Level: any, kept. It refuses
nothing.
"""

from __future__ import annotations

from refcomp.foundation.dtype import F32, F64
from refcomp.ir.expr import Add, Call, Expr, Mul, Sub
from refcomp.ir.func import PrimFunc
from refcomp.ir.promotion import const
from refcomp.ir.rewrite import replacer
from refcomp.passes.analysis.contents import holds


def fuse_multiply_add(func: PrimFunc) -> PrimFunc:
    """Return `func` with an fma in place of each product that is added to something."""
    if not holds(func, Mul):
        return func
    fuse = replacer({Add: _fuse, Sub: _fuse})
    return func.with_body(fuse(func.body))


def _fuse(node: Add | Sub) -> Expr:
    if node.dtype.element not in (F32, F64):
        return node
    if isinstance(node.a, Mul):
        product = node.a
        addend = node.b
        if isinstance(node, Sub):
            addend = _negated(addend)
        return Call("fma", (product.a, product.b, addend), node.dtype)
    if isinstance(node.b, Mul):
        product = node.b
        # a - b * c is (-b) * c + a. Changing a sign is exact.
        factor = product.a
        if isinstance(node, Sub):
            factor = _negated(factor)
        return Call("fma", (factor, product.b, node.a), node.dtype)
    return node


def _negated(expr: Expr) -> Expr:
    return Mul(expr, const(-1.0, expr.dtype))
