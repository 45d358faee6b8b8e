"""Decides by pragmas which loops are unrolled, and removes all pragmas.

Before::

    func sums(A: f32[8], B: f32[8] out) {
      pragma auto_unroll_max_step 8 {
        for i in range(8) {
          for j in range(4) {
            B@[i] = B@[i] + A@[j]
          }
        }
      }
    }

After::

    func sums(A: f32[8], B: f32[8] out) {
      for i in range(8) {
        for j in range(4) unrolled {
          B@[i] = B@[i] + A@[j]
        }
      }
    }

`auto_unroll_max_step N`: a serial loop of constant extent becomes unrolled when all it does is at
most N stores, with the loops in it unrolled, too. `unroll_explicit 0`: unrolled loops stay loops
instead, for the compiler behind to unroll. The innermost pragma of a key counts. Requires: after
passes that read other pragmas. Ensures: no Pragma is left. Level: nested or flat, kept. It refuses
(UserError) a value that is no constant.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from refcomp.foundation.errors import UserError
from refcomp.ir.constants import as_int
from refcomp.ir.func import PrimFunc
from refcomp.ir.rewrite import children, map_children, with_fields
from refcomp.ir.stmt import (
    CALLS,
    SERIAL,
    UNROLLED,
    AtomicUpdate,
    BufferStore,
    For,
    Pragma,
    Stmt,
    Store,
)

AUTO_UNROLL_MAX_STEP, UNROLL_EXPLICIT = "auto_unroll_max_step", "unroll_explicit"
_STEPS = (BufferStore, Store, AtomicUpdate, *CALLS)


@dataclass(frozen=True, slots=True)
class _Wishes:
    """What the pragmas around a statement ask for."""

    max_step: int = 0
    is_explicit: bool = True


def apply_unroll_pragmas(func: PrimFunc) -> PrimFunc:
    """`func` without pragmas, its loops marked as they asked."""
    return func.with_body(_visit(func.body, _Wishes()))


def _visit(stmt: Stmt, wishes: _Wishes) -> Stmt:
    if isinstance(stmt, Pragma):
        return _visit(stmt.body, _with_pragma(wishes, stmt))
    stmt = map_children(stmt, lambda child: _visit(child, wishes), only=Stmt)
    if not isinstance(stmt, For):
        return stmt
    if stmt.kind == UNROLLED and not wishes.is_explicit:
        return with_fields(stmt, kind=SERIAL)
    if wishes.max_step and _is_short(stmt, wishes.max_step):
        return with_fields(stmt, kind=UNROLLED)
    return stmt


def _with_pragma(wishes: _Wishes, pragma: Pragma) -> _Wishes:
    if pragma.key not in (AUTO_UNROLL_MAX_STEP, UNROLL_EXPLICIT):
        return wishes
    value = as_int(pragma.value)
    if value is None:
        raise UserError(
            f"the pragma {pragma.key} has the value {pragma.value}, which is no constant",
            where=str(pragma.origin or ""),
            remedy=f"give it a number: pragma(axis, {pragma.key!r}, 16)",
        )
    if pragma.key == UNROLL_EXPLICIT:
        return replace(wishes, is_explicit=bool(value))
    return replace(wishes, max_step=value)


def _is_short(loop: For, most: int) -> bool:
    count = as_int(loop.extent)
    if loop.kind != SERIAL or count is None:
        return False
    inside = _steps(loop.body)
    return inside is not None and 1 <= inside * count <= most


def _steps(stmt: Stmt) -> int | None:
    """How many stores `stmt` does when all its loops are unrolled; None when some are not."""
    if isinstance(stmt, _STEPS):
        return 1
    counts = [_steps(child) for child in children(stmt) if isinstance(child, Stmt)]
    known = [count for count in counts if count is not None]
    if len(known) < len(counts):
        return None
    if not isinstance(stmt, For):
        return sum(known)
    count = as_int(stmt.extent)
    return sum(known) * count if stmt.kind == UNROLLED and count is not None else None
