"""Decides by pragmas which loops are unrolled, and removes all pragmas but those of parallel loops.

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

`auto_unroll_max_step N` unrolls serial loops of constant extent, if the unrolled loop has at most N
stores. Loops inside of it are unrolled, too, and their stores count. `unroll_explicit 0` makes
unrolled loops *unrollable*: the target's compiler may unroll them. The innermost pragma of a key
has precedence.

Requires: passes that read other pragmas have run. Ensures: no Pragma is left,
except `parallel_stride_pattern`. Level:
nested or flat, kept. It refuses (UserError) a value that is not a constant.
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
    STRIDE_PATTERN,
    UNROLLABLE,
    UNROLLED,
    AtomicUpdate,
    BufferStore,
    For,
    Pragma,
    Stmt,
    Store,
    line_of,
    place_of,
)
from refcomp.passes.analysis.contents import holds

AUTO_UNROLL_MAX_STEP, UNROLL_EXPLICIT = "auto_unroll_max_step", "unroll_explicit"
_STEPS = (BufferStore, Store, AtomicUpdate, *CALLS)


@dataclass(frozen=True, slots=True)
class _Settings:
    """The values of the pragmas around a statement."""

    max_step: int = 0  # stores; 0: no loop becomes unrolled
    is_explicit: bool = True


def apply_unroll_pragmas(func: PrimFunc) -> PrimFunc:
    """Return `func` without pragmas, its loops marked as they request."""
    if not holds(func, Pragma):
        return func
    return func.with_body(_visit(func.body, _Settings()))


def _visit(stmt: Stmt, settings: _Settings) -> Stmt:
    if isinstance(stmt, Pragma) and stmt.key == STRIDE_PATTERN:
        return map_children(stmt, lambda child: _visit(child, settings), only=Stmt)
    if isinstance(stmt, Pragma):
        return _visit(stmt.body, _with_pragma(settings, stmt))
    stmt = map_children(stmt, lambda child: _visit(child, settings), only=Stmt)
    if not isinstance(stmt, For):
        return stmt
    if stmt.kind == UNROLLED and not settings.is_explicit:
        return with_fields(stmt, kind=UNROLLABLE)
    if stmt.kind != SERIAL or settings.max_step == 0:
        return stmt
    count = as_int(stmt.extent)
    inside = _steps(stmt.body)
    if count is None or inside is None:
        return stmt
    # A loop of no stores is not worth a copy; a negative extent is refused elsewhere.
    if 1 <= inside * count <= settings.max_step:
        kind = UNROLLED if settings.is_explicit else UNROLLABLE
        return with_fields(stmt, kind=kind)
    return stmt


def _with_pragma(settings: _Settings, pragma: Pragma) -> _Settings:
    if pragma.key not in (AUTO_UNROLL_MAX_STEP, UNROLL_EXPLICIT):
        return settings
    value = as_int(pragma.value)
    if value is None:
        raise UserError(
            f"the pragma {pragma.key} has the value {pragma.value}, which is not a constant",
            where=place_of(pragma.origin),
            at=line_of(pragma.origin),
            remedy=f"give it a number: pragma(axis, {pragma.key!r}, 16)",
        )
    if pragma.key == UNROLL_EXPLICIT:
        return replace(settings, is_explicit=bool(value))
    return replace(settings, max_step=value)


def _steps(stmt: Stmt) -> int | None:
    """Return the number of stores of `stmt`, None if it has a loop that is not unrolled."""
    if isinstance(stmt, _STEPS):
        return 1
    total = 0
    for child in children(stmt):
        if isinstance(child, Stmt):
            steps = _steps(child)
            if steps is None:
                return None
            total += steps
    if not isinstance(stmt, For):
        return total
    count = as_int(stmt.extent)
    if stmt.kind not in (UNROLLED, UNROLLABLE) or count is None:
        return None
    return total * count
