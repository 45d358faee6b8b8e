"""Checks each access that is not proved to be in bounds, and records wrong indices.

Before::

    func gather(A: u8[n], I: i64[m], B: u8[m] out) {
      for i in range(m) {
        B[i] = A[I[i]]
      }
    }

After::

    func gather(A: u8[n], I: i64[m], B: u8[m] out, faults: i64[1, 3] out)
      check "reads\\nA\\n0\\nn\\nI[i]\\nB[i] = A[I[i]]\\n" {
      for i in range(m) {
        let A.at: i64 = I[i] {
          if (0 <= A.at and A.at < n) {
            B[i] = A[A.at]
          } else {
            faults[0, 0] = A.at
            faults[0, 1] = A.at
            faults[0, 2] = n
          }
        }
      }
    }

A store, update or call with a wrong index is skipped. A store or update is also skipped if
the value that it needs in any case is read with a wrong index. The checks of other reads
stand before their statement, under the conditions that choose the read. A wrong read of
this kind gives 0.

Each checked dimension has a row of three words in the last parameter: the least and the
greatest wrong index, and the extent. Threads of a kernel update a row atomically. On the
host, the row holds one of the wrong indices.

Requires: nothing. Ensures: no access leaves its buffer, except in functions outside of the
loop IR that get an address. `analysis.access_ranges` decides which accesses may leave
their buffer. Level: nested, kept. It refuses nothing. A prefetch is not checked, as it has
no effect. The extent of a bound loop is not checked, as it must not be read from memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

from refcomp.arith import Facts
from refcomp.foundation.artifacts import STATUS_WORDS, CheckedAccess
from refcomp.foundation.dtype import I64
from refcomp.foundation.names import UniqueNames
from refcomp.ir.buffer import AddressOf, Buffer, BufferLoad
from refcomp.ir.expr import And, Expr, IfThenElseExpr, IntImm, Let, Not, Or, Select, Var
from refcomp.ir.fresh_names import with_fresh_names
from refcomp.ir.func import PrimFunc
from refcomp.ir.kernels import is_bound, is_collective
from refcomp.ir.node import Node
from refcomp.ir.printer import print_stmt
from refcomp.ir.promotion import const
from refcomp.ir.rewrite import (
    Rewrite,
    map_children,
    replace_buffers,
    rewriter,
    same_items,
    walk,
    with_changes,
    with_fields,
)
from refcomp.ir.stmt import (
    Allocate,
    AtomicOperator,
    AtomicUpdate,
    Block,
    BufferStore,
    CallExtern,
    CallPacked,
    For,
    IfThenElse,
    LetStmt,
    Pragma,
    Prefetch,
    Stmt,
    block,
    with_lets,
)
from refcomp.passes.analysis.access_ranges import (
    OpenIndex,
    is_in_range,
    open_index,
    reads_memory,
)
from refcomp.passes.analysis.scope_facts import facts_of

_MAX_TEXT = 200  # characters of a statement or an index that an error shows
# The operators by which threads update the words of a row.
_OPERATORS = (AtomicOperator.MIN, AtomicOperator.MAX, AtomicOperator.MAX)


def check_accesses(func: PrimFunc) -> PrimFunc:
    """Return `func` with a check of each access that may leave its buffer.

    If there is none, return `func` itself.
    """
    if func.checks:
        return func
    facts = facts_of(func)
    for requirement in func.requires:  # each call checks them at entry
        if not requirement.axes:
            facts = facts.assume(requirement.condition)
    checking = _Checking()
    body = checking.stmt(func.body, facts, in_kernel=False)
    if not checking.checked:
        return func
    names = UniqueNames()
    for item in (*func.params, *func.symbols):
        names.take(item.name)
    rows = (IntImm(len(checking.checked), I64), IntImm(STATUS_WORDS, I64))
    status = Buffer(names.take("faults"), I64, rows)
    return with_fields(
        func,
        params=(*func.params, status),
        body=replace_buffers(body, {checking.status: status}),
        outputs=(*func.outputs, status.name),
        checks=tuple(access.to_text() for access in checking.checked),
    )


@dataclass(frozen=True, slots=True)
class _Place:
    """The place of an expression."""

    # The statement that evaluates it, and what holds there.
    stmt: Stmt
    facts: Facts
    # Threads of a GPU run the statement.
    in_kernel: bool
    # Returns a given statement under the conditions and lets around the expression.
    around: Callable[[Stmt], Stmt] = lambda stmt: stmt
    # Statements to be run before `stmt`.
    checks: list[Stmt] = field(default_factory=list)
    # The reads so far that must be in range for `stmt` to be run. None if `stmt` is run in
    # any case, or if a condition decides whether the expression is evaluated.
    guards: list[_UnprovedAccess] | None = None

    def where(self, condition: Expr) -> _Place:
        """Return the place of an expression that is evaluated only if `condition` holds."""

        def around(stmt: Stmt) -> Stmt:
            branch = IfThenElse(condition, stmt, None, self.stmt.origin)
            return self.around(branch)

        facts = self.facts.assume(condition)
        return replace(self, facts=facts, guards=None, around=around)

    def within(self, let: Let) -> _Place:
        """Return the place of the body of `let`."""

        def around(stmt: Stmt) -> Stmt:
            outer = LetStmt(let.var, let.value, stmt, self.stmt.origin)
            return self.around(outer)

        facts = self.facts.let(let.var, let.value)
        return replace(self, facts=facts, guards=None, around=around)

    def checked(self, stmt: Stmt) -> Stmt:
        """Return `stmt` behind the checks."""
        return block([*self.checks, stmt], self.stmt.origin)


@dataclass(frozen=True, slots=True)
class _UnprovedAccess:
    """An access with the indices that are not proved."""

    # All indices. The names of `lets` replace those that would be read twice.
    indices: tuple[Expr, ...]
    # Names and values of indices.
    lets: tuple[tuple[Var, Expr], ...]
    # The indices that are not proved, each with its row in the status array.
    rows: tuple[tuple[int, OpenIndex], ...]


class _Checking:
    """Visits a function in order of evaluation; `checked` are the accesses that it checks."""

    def __init__(self) -> None:
        # A stand-in: the number of rows is known only when all accesses are visited.
        rows = (IntImm(0, I64), IntImm(STATUS_WORDS, I64))
        self.status = Buffer("faults", I64, rows)
        self.checked: list[CheckedAccess] = []

    # Statements.

    def stmt(self, stmt: Stmt, facts: Facts, in_kernel: bool) -> Stmt:
        """Return `stmt`, which stands where `facts` hold, with its checks."""
        place = _Place(stmt, facts, in_kernel)
        match stmt:
            case Block():
                stmts = tuple(self.stmt(item, facts, in_kernel) for item in stmt.stmts)
                if same_items(stmts, stmt.stmts):
                    return stmt
                return block(stmts, stmt.origin)
            case Allocate() | Pragma():
                body = self.stmt(stmt.body, facts, in_kernel)
                return with_changes(stmt, body=body)
            case For():
                return self._loop(stmt, place)
            case IfThenElse():
                return self._branch(stmt, place)
            case LetStmt():
                value = self.expr(stmt.value, place)
                inside = facts.let(stmt.var, value)
                body = self.stmt(stmt.body, inside, in_kernel)
                return place.checked(with_changes(stmt, value=value, body=body))
            case BufferStore() | AtomicUpdate():
                return place.checked(self._write(stmt, place))
            case Prefetch():
                indices = self._exprs(stmt.indices, place)
                return place.checked(with_changes(stmt, indices=indices))
            case CallPacked() | CallExtern():
                return place.checked(self._call(stmt, place))
        return stmt

    def _loop(self, stmt: For, place: _Place) -> Stmt:
        minimum = stmt.minimum
        extent = stmt.extent
        # Bound loops must stay directly nested: no check may stand between two of them.
        if not is_bound(stmt):
            minimum = self.expr(minimum, place)
            extent = self.expr(extent, place)
        facts = place.facts.bind(stmt.var, minimum, extent)
        in_kernel = place.in_kernel or is_bound(stmt)
        body = self.stmt(stmt.body, facts, in_kernel)
        loop = with_changes(stmt, minimum=minimum, extent=extent, body=body)
        return place.checked(loop)

    def _branch(self, stmt: IfThenElse, place: _Place) -> Stmt:
        condition = self.expr(stmt.condition, place)
        holds = place.facts.assume(condition)
        then_case = self.stmt(stmt.then_case, holds, place.in_kernel)
        else_case = stmt.else_case
        if else_case is not None:
            fails = place.facts.assume(Not(condition))
            else_case = self.stmt(else_case, fails, place.in_kernel)
        branch = with_changes(
            stmt,
            condition=condition,
            then_case=then_case,
            else_case=else_case,
        )
        return place.checked(branch)

    def _write(self, stmt: BufferStore | AtomicUpdate, place: _Place) -> Stmt:
        # All threads of a group must reach collective operations, also those with a wrong
        # index.
        is_alone = not any(map(is_collective, walk(stmt)))
        guards: list[_UnprovedAccess] = []
        inner = replace(place, guards=guards) if is_alone else place
        value = self.expr(stmt.value, inner)
        indices = self._exprs(stmt.indices, inner)
        action = "writes" if isinstance(stmt, BufferStore) else "updates"
        access = self._access(
            action,
            stmt.buffer,
            indices,
            written=stmt.indices,
            place=place,
        )
        if is_alone or not access.rows:
            write = with_changes(stmt, value=value, indices=access.indices)
            return self._guarded(write, [*guards, access], place)
        name = Var(f"{stmt.buffer.name}.value", value.dtype)
        write = with_fields(stmt, value=name, indices=access.indices)
        guarded = self._guarded(write, [access], place)
        return LetStmt(name, value, guarded, stmt.origin)

    def _call(self, stmt: CallPacked | CallExtern, place: _Place) -> Stmt:
        args: list[Expr] = []
        accesses: list[_UnprovedAccess] = []
        for arg in stmt.args:
            if not (isinstance(arg, AddressOf) and arg.indices):
                args.append(self.expr(arg, place))
                continue
            access = self._access(
                "passes",
                arg.buffer,
                indices=self._exprs(arg.indices, place),
                written=arg.indices,
                place=place,
            )
            accesses.append(access)
            args.append(with_changes(arg, indices=access.indices))
        call = with_changes(stmt, args=tuple(args))
        return self._guarded(call, accesses, place)

    def _guarded(
        self, stmt: Stmt, accesses: Sequence[_UnprovedAccess], place: _Place
    ) -> Stmt:
        """Return `stmt` if all indices of `accesses` are in range, else a record of one."""
        origin = place.stmt.origin
        for access in reversed(accesses):
            for row, index in reversed(access.rows):
                note = self._note(row, index, place)
                holds = reduce(And, index.holds)
                stmt = IfThenElse(holds, stmt, note, origin)
            stmt = with_lets(access.lets, stmt, origin)
        return stmt

    def _note(self, row: int, index: OpenIndex, place: _Place) -> Stmt:
        """Return the statements that record the wrong `index` in its row."""
        origin = place.stmt.origin
        words: list[Stmt] = []
        values = (index.position, index.position, index.extent)
        for word, (operator, value) in enumerate(zip(_OPERATORS, values, strict=True)):
            at = (IntImm(row, I64), IntImm(word, I64))
            # Threads may record at once. The host records one access after the other.
            if place.in_kernel:
                words.append(AtomicUpdate(operator, self.status, at, value, origin))
            else:
                words.append(BufferStore(self.status, at, value, origin))
        return block(words, origin)

    # Accesses.

    def _access(
        self,
        action: str,
        buffer: Buffer,
        indices: Sequence[Expr],
        written: Sequence[Expr],
        place: _Place,
    ) -> _UnprovedAccess:
        """Return an access with the indices that are not proved, which get rows.

        Args:
            action: the verb for messages.
            buffer: the buffer that is accessed.
            indices: the indices with their own reads checked.
            written: the indices as the user's program has them.
            place: the place of the access.
        """
        if len(indices) != len(buffer.shape):  # an offset in elements, of later levels
            return _UnprovedAccess(tuple(indices), (), ())
        used: list[Expr] = []
        lets: list[tuple[Var, Expr]] = []
        rows: list[tuple[int, OpenIndex]] = []
        for dimension, index in enumerate(indices):
            extent = buffer.shape[dimension]
            found = open_index(index, extent, place.facts)
            if found is not None and reads_memory(index):
                # Memory may change between the check and the access.
                var = Var(f"{buffer.name}.at", index.dtype)
                lets.append((var, index))
                facts = place.facts.let(var, index)
                found = open_index(var, extent, facts)
                index = var
            used.append(index)
            if found is not None:
                rows.append((len(self.checked), found))
                text = repr(written[dimension])
                access = _described(action, buffer, dimension, text, place.stmt)
                self.checked.append(access)
        return _UnprovedAccess(tuple(used), tuple(lets), tuple(rows))

    # Expressions.

    def _exprs(self, exprs: tuple[Expr, ...], place: _Place) -> tuple[Expr, ...]:
        return tuple(self.expr(expr, place) for expr in exprs)

    def expr(self, expr: Expr, place: _Place) -> Expr:
        """Return `expr` with wrong reads as 0. Their checks are added to those of `place`."""
        if not reads_memory(expr):
            return expr

        def visit(recurse: Rewrite, node: Node) -> Node:
            match node:
                case BufferLoad():
                    return self._load(node, map_children(node, recurse), place)
                case IfThenElseExpr():
                    return self._choice(node, recurse(node.condition), place)
                case Select(condition=condition, true_value=yes, false_value=no):
                    # Both sides of a select may be read, also where it is out of range.
                    facts = place.facts
                    if not (is_in_range(yes, facts) and is_in_range(no, facts)):
                        lazy = IfThenElseExpr(condition, yes, no)
                        return self._choice(lazy, recurse(condition), place)
                case Let():
                    let = with_changes(node, value=recurse(node.value))
                    body = self.expr(node.body, place.within(let))
                    return with_changes(let, body=body)
            return map_children(node, recurse)

        return rewriter(visit)(expr)

    def _choice(self, node: IfThenElseExpr, condition: Expr, place: _Place) -> Expr:
        return with_changes(
            node,
            condition=condition,
            true_value=self.expr(node.true_value, place.where(condition)),
            false_value=self.expr(node.false_value, place.where(Not(condition))),
        )

    def _load(self, original: BufferLoad, load: BufferLoad, place: _Place) -> Expr:
        access = self._access(
            "reads",
            load.buffer,
            load.indices,
            written=original.indices,
            place=place,
        )
        if not access.rows:
            return load
        inside = with_fields(load, indices=access.indices)
        if place.guards is not None:
            place.guards.append(access)
            return inside
        # The check stands before the statement. In the statement, the read is repeated: it
        # is the element if all indices are in range, else 0.
        origin = place.stmt.origin
        check: Stmt | None = None
        for row, index in reversed(access.rows):
            note = self._note(row, index, place)
            fails = reduce(Or, index.fails)
            check = IfThenElse(fails, note, check, origin)
        assert check is not None
        check = place.around(with_lets(access.lets, check, origin))
        # The statement binds the same names once more.
        place.checks.append(with_fresh_names(check, {}))
        conditions = [holds for _, index in access.rows for holds in index.holds]
        all_hold = reduce(And, conditions)
        result: Expr = IfThenElseExpr(all_hold, inside, const(0, load.dtype))
        for var, value in reversed(access.lets):
            result = Let(var, value, result)
        return result


def _described(
    action: str, buffer: Buffer, dimension: int, index: str, stmt: Stmt
) -> CheckedAccess:
    """Return the description of an access for error messages."""
    first_line = print_stmt(stmt).partition("\n")[0]
    return CheckedAccess(
        action,
        _on_one_line(buffer.name),
        dimension,
        _on_one_line(repr(buffer.shape[dimension])),
        _on_one_line(index),
        _on_one_line(first_line),
        "" if stmt.origin is None else _on_one_line(str(stmt.origin)),
    )


def _on_one_line(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= _MAX_TEXT else f"{plain[: _MAX_TEXT - 3]}..."
