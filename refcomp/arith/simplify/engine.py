"""The engine: visits an expression bottom-up, each shared part once, and applies the rules.

Before:  (i * 4 + j) // 4 < n      with j in [0, 4), i in [0, n)
After:   True

One loop visits all nodes on a stack of its own, so that deep expressions do not exhaust Python's.
Most nodes are visited when their parts are simplified. A visit of a choice, a chain or a let is a
generator. It requests its parts one by one, and may add facts for a part. Results are stored for
each set of facts, by the identity of the expression. A result is the representative of all equal
expressions, except for float arithmetic. Facts are about integers, so most floats stay as they are
(`_OPAQUE`).
"""

from __future__ import annotations

from collections.abc import Generator
from functools import partial, reduce
from typing import Any, Protocol

from refcomp.arith.bounds import range_of_dtype
from refcomp.arith.constants import fold_cast, fold_floats, fold_integers, is_copied
from refcomp.arith.intern import free_of
from refcomp.arith.linear import (
    Additive,
    Sum,
    collect,
    is_additive,
    is_summable,
)
from refcomp.arith.linear import multiply as multiply_sums
from refcomp.arith.sign import Known, SignSearch
from refcomp.arith.simplify.comparisons import decide_vectors, normal_form
from refcomp.arith.simplify.matching import Application
from refcomp.arith.simplify.pattern import rules_for
from refcomp.arith.simplify.products import (
    Multiplicand,
    factors_of,
    recombined,
    without_nested_sums,
)
from refcomp.arith.simplify.rules import FLOAT, INTEGER, ORDER, WRAPPING, Theory
from refcomp.foundation.dtype import BOOL, DType
from refcomp.ir.buffer import Buffer, BufferLoad, Load
from refcomp.ir.constants import as_constant
from refcomp.ir.expr import (
    Add,
    And,
    BinaryExpr,
    Broadcast,
    Call,
    Cast,
    Comparison,
    Div,
    Expr,
    FloatImm,
    FloorMod,
    IfThenElseExpr,
    IntImm,
    Let,
    Max,
    Min,
    Mul,
    Not,
    Or,
    PureExtern,
    Ramp,
    Sub,
    TextImm,
    Var,
)
from refcomp.ir.rewrite import map_children

# Yields a simplifier and the expression that it shall simplify, and goes on when that is done.
# Returns the simplified form of the expression that is visited.
_Visit = Generator[tuple["Simplifier", Expr], None, Expr]
# Classes of nodes whose parts are simplified under more facts.
_UNDER_MORE_FACTS = {IfThenElseExpr, And, Or, Let}
_LEAVES = {IntImm, FloatImm, TextImm, Var}
# Classes of integer nodes of which no rule makes new terms of sums.
_SUMS = {IntImm, Var, Add, Sub, Mul, Broadcast, Ramp}
# Classes of nodes that are opaque if they are floats: a rule on them looks at constants only. So a
# float of these classes needs no representative until a node of another class compares it.
_OPAQUE = {FloatImm, BufferLoad, Load, Add, Sub, Mul, Div, Call, PureExtern}
# Operands by which a rule or folding may apply to an opaque vector.
_LANES = {Broadcast, Ramp}
# Steps of a proof, by the number of proofs around it. Proofs build nodes, which are simplified by
# proofs in turn. Without decreasing effort, time would be exponential in that nesting.
_BUDGETS = (24, 6, 0, 0)
# Choices with more choices inside are simplified without their conditions. Each condition would
# make another set of facts, under which everything inside is simplified again.
_MAX_CHOICES = 32
# Operands of a chain of `and` or `or` that are simplified under the others.
_MAX_CONJUNCTS = 8


class Context(Known, Protocol):
    """The attributes of `Facts` that the engine reads, and the methods that extend facts."""

    @property
    def truths(self) -> dict[int, bool]: ...
    @property
    def values(self) -> dict[int, Expr]: ...
    @property
    def simplifier(self) -> Simplifier: ...
    def assume(self, condition: Expr) -> Context: ...
    def define(self, var: Var, value: Expr) -> Context: ...
    def let(self, var: Var, value: Expr) -> Context: ...


class Simplifier:
    """A simplifier of expressions under one set of facts."""

    def __init__(self, facts: Context) -> None:
        self._facts = facts
        # The representatives that the facts are about, and what is known of their values.
        self.table = facts.table
        self.bounds = facts.bounds
        self._nesting = 0  # number of proofs in progress
        # id of an expression -> its simplified form, which is a representative or opaque
        self._done: dict[int, Expr] = {}
        # The nesting is part of the keys below, since results depend on the budget of proofs.
        self._made: dict[tuple[int, type[Expr], int, int], Expr] = {}
        self._signs: dict[tuple[int, object, int], bool] = {}

    def simplify(self, expr: Expr) -> Expr:
        """Return a simpler expression of the same value; the same object if there is none."""
        if isinstance(expr, IntImm):
            return expr
        result = self._result(expr)
        if result is expr:
            return expr
        result = self.table.intern(result)
        return expr if self.table.is_same(expr, result) else result

    def representative(self, expr: Expr) -> Expr:
        """Return the representative of the simplified form of `expr`."""
        return self.table.intern(
            expr if isinstance(expr, IntImm) else self._result(expr)
        )

    def _result(self, expr: Expr) -> Expr:
        found = self._done.get(id(expr))
        if found is None:
            if isinstance(expr, Var):
                found = self._done[id(expr)] = self._visit(expr)
            else:
                self.table.keep(expr)
                found = self._simplified(expr)
        return found

    def is_nonnegative(self, total: Sum) -> bool:
        """Return True if `total`, over the unbounded integers, is proved to be >= 0."""
        sign = self.bounds.interval_of_sum(total)
        if sign.is_at_least(0) or sign.is_at_most(-1):
            return sign.is_at_least(0)
        key = (self._nesting, tuple(total.terms.items()), total.const)
        if key not in self._signs:
            search = SignSearch(self._facts, self.make, _BUDGETS[self._nesting])
            self._nesting += 1
            try:
                self._signs[key] = search.is_derived(total)
            finally:
                self._nesting -= 1
        return self._signs[key]

    # Visiting

    def _simplified(self, root: Expr) -> Expr:
        """Return the simplified form of an expression.

        Terms of a sum are written in the order of their serial numbers. Those in `root` shall come
        before those that rules make. So if rules may make any, `root` is interned first.
        """
        # The simplifier of a node, the node, and its visit if that has begun.
        stack: list[tuple[Simplifier, Expr, _Visit | None]] = [(self, root, None)]
        are_terms_known = False
        while stack:
            owner, expr, visit = stack[-1]
            done = owner._done
            if visit is None:
                if (
                    id(expr) in done
                ):  # a shared part, which another node has pushed, too
                    stack.pop()
                    continue
                cls = type(expr)
                if not are_terms_known and cls not in _SUMS and _may_become_term(expr):
                    are_terms_known = True
                    own = self.table.intern(root)
                    if own is not root:
                        self._done[id(root)] = self._simplified(own)
                        break
                visit = owner._begun(expr) if cls in _UNDER_MORE_FACTS else None
            if visit is None:
                missing: list[tuple[Simplifier, Expr, None]] = []
                for part in self.table.parts(expr):
                    if id(part) in done:
                        continue
                    # In order, since variables are numbered when they are visited.
                    if type(part) in _LEAVES and not missing:
                        done[id(part)] = owner._visit(part)
                    else:
                        missing.append((owner, part, None))
                if missing:
                    missing.reverse()
                    stack += missing
                    continue
                done[id(expr)] = owner._visit(expr)
                stack.pop()
                continue
            try:
                known, part = next(visit)
            except StopIteration as finished:
                done[id(expr)] = finished.value
                stack.pop()
            else:
                stack[-1] = (owner, expr, visit)
                stack.append((known, part, None))
        return self._done[id(root)]

    def _begun(self, expr: Expr) -> _Visit | None:
        """Return the visit of a node that requests its parts itself, None for other nodes."""
        if isinstance(expr, IfThenElseExpr):
            return self._visit_lazy_choice(expr)
        if isinstance(expr, Let):
            return self._visit_let(expr)
        if isinstance(expr, And | Or) and expr.dtype.lanes == 1:
            return self._visit_chain(expr)
        return None

    def _visit(self, expr: Expr) -> Expr:
        """Return the simplified form of a node whose parts are simplified."""
        if isinstance(expr, FloatImm):
            return expr
        if isinstance(expr, IntImm):
            return self.table.intern(expr)
        if isinstance(expr, Var):
            value = self._facts.values.get(id(expr))
            return self._decided(self.table.intern(expr)) if value is None else value
        if _is_opaque(expr):
            return self._visit_opaque(expr)
        if is_additive(expr):
            return self._visit_sum(expr)
        if isinstance(expr, BinaryExpr):
            return self.make(type(expr), self._part(expr.a), self._part(expr.b))
        return self._visit_other(expr)

    def _part(self, part: Expr) -> Expr:
        """Return the representative of a part that is simplified."""
        return self.table.intern(self._done[id(part)])

    def _visit_opaque(self, expr: Expr) -> Expr:
        """Return an opaque float with simplified parts: the same object if they are unchanged."""
        if isinstance(expr, Load) and expr.predicate is not None:
            return self._visit_other(expr)
        made = map_children(expr, self._same_or_simplified, only=Expr)
        if not isinstance(made, BinaryExpr):
            return made
        cls = type(made)
        if made.dtype.lanes > 1:
            if _LANES.isdisjoint((type(made.a), type(made.b))):
                return made
            return self.make(cls, self.table.intern(made.a), self.table.intern(made.b))
        simpler = self._fold(cls, made.a, made.b)
        if simpler is None:
            simpler = self._by_rules(cls, made.a, made.b)
        return made if simpler is None else simpler

    def _same_or_simplified(self, part: Expr) -> Expr:
        """Return the simplified form of a part; the part itself if it is unchanged."""
        found = self._done[id(part)]
        if found is part or _is_opaque(part):
            return found
        return part if self.table.is_same(part, found) else found

    def _visit_sum(self, expr: Additive) -> Expr:
        done = self._done
        sum_of = self.table.sum_of
        total = collect(
            expr, lambda leaf: sum_of(done[id(leaf)]), self.table.addends(expr)
        )
        return self.finish_sum(total, expr.dtype)

    def _visit_lazy_choice(self, expr: IfThenElseExpr) -> _Visit:
        yield self, expr.condition
        condition = self._done[id(expr.condition)]
        if isinstance(condition, IntImm):
            chosen = expr.true_value if condition.value else expr.false_value
            yield self, chosen
            return self._done[id(chosen)]
        holds, fails = self, self
        if self.table.choices(expr) <= _MAX_CHOICES:
            holds = self._facts.assume(condition).simplifier
            fails = self._facts.assume(self.make(Not, condition)).simplifier
        yield holds, expr.true_value
        yield fails, expr.false_value
        true_value = holds._part(expr.true_value)
        false_value = fails._part(expr.false_value)
        return self.make(IfThenElseExpr, condition, true_value, false_value)

    def _visit_chain(self, expr: And | Or) -> _Visit:
        """Simplify each operand of `and` under the truth of the others; of `or`, their falsehood.

        First each operand is simplified under the operands before it, then under those behind it.
        All operands are always evaluated. So the index of a load must not be simplified under the
        other operands. It could leave the buffer where one of them is false.
        """
        parts = _operands(expr)
        plain = [part for part in parts if not self.table.reads_memory(part)]
        plain = plain[:_MAX_CONJUNCTS]
        used = {id(part) for part in plain}
        simple: dict[int, Expr] = {}
        known = self
        for part in parts:
            if id(part) in used:
                yield known, part
                simple[id(part)] = known._done[id(part)]
                known = known._given(expr, simple[id(part)])
            else:
                yield self, part
                simple[id(part)] = self._done[id(part)]
        known = self
        for part in reversed(plain):
            operand = simple[id(part)]
            if known is not self:
                yield known, operand
                operand = simple[id(part)] = known._done[id(operand)]
            known = known._given(expr, operand)
        operands = [simple[id(part)] for part in parts]
        return reduce(partial(self.make, type(expr)), operands)

    def _given(self, expr: And | Or, operand: Expr) -> Simplifier:
        """Return the simplifier of places where `operand` does not decide the chain `expr`."""
        if isinstance(operand, IntImm):
            return self
        condition = operand if isinstance(expr, And) else self.make(Not, operand)
        return self._facts.assume(condition).simplifier

    def _visit_let(self, expr: Let) -> _Visit:
        yield self, expr.value
        value = self._part(expr.value)
        if is_copied(value):
            replaced = self._facts.define(expr.var, value).simplifier
            yield replaced, expr.body
            return replaced._done[id(expr.body)]
        known = self._facts.let(expr.var, value).simplifier
        yield known, expr.body
        body = known._part(expr.body)
        if free_of(body, expr.var):
            return body
        return self.table.make(Let, expr.var, value, body)

    def _visit_other(self, expr: Expr) -> Expr:
        cls = type(expr)
        fields: list[object] = []
        for name in cls.__match_args__:
            field = getattr(expr, name)
            if isinstance(field, tuple):
                fields.append(tuple([self._field(item) for item in field]))
            else:
                fields.append(self._field(field))
        return self.make(cls, *fields)

    def _field(self, value: object) -> object:
        """Return the simplified form of a child; another value of a field as it is."""
        simple = self._done.get(id(value))
        return value if simple is None else self.table.intern(simple)

    # Building

    def make(self, cls: type[Expr], *args: Any) -> Expr:
        """Return the simplified node of class `cls` with simplified operands."""
        if issubclass(cls, BinaryExpr):
            a, b = args
            key = (self._nesting, cls, id(a), id(b))
            if key not in self._made:
                self._made[key] = self._decided(self._binary(cls, a, b))
            return self._made[key]
        if cls is Not:
            return self._decided(self._negation(*args))
        if cls is Cast:
            return self._decided(self._cast(*args))
        if cls is Load:
            return self._decided(self._load(*args))
        return self._decided(self._ruled(cls, *args))

    def finish_sum(self, total: Sum, dtype: DType) -> Expr:
        """Return the expression of a Sum, with quotients and remainders recombined."""
        if total.is_const:
            return self.table.constant(total.const, dtype)
        total = recombined(self, total, dtype)
        return self._decided(self.table.build(total, dtype))

    def _decided(self, expr: Expr) -> Expr:
        """Return a constant if the facts leave one value only, else the expression."""
        dtype = expr.dtype
        if dtype.is_float or isinstance(expr, IntImm):
            return expr
        if not is_summable(dtype):
            truth = self._facts.truths.get(id(expr))
            return expr if truth is None else self.table.constant(truth, BOOL)
        interval = self.bounds.interval(expr)
        if interval.low is not None and interval.low == interval.high:
            return self.table.constant(interval.low, expr.dtype)
        return expr

    def _binary(self, cls: type[BinaryExpr], a: Expr, b: Expr) -> Expr:
        folded = self._fold(cls, a, b)
        if folded is not None:
            return folded
        if a.dtype.lanes > 1:
            return self._vector(cls, a, b)
        if a.dtype.is_int:
            return self._integer(cls, a, b)
        return self._ruled(cls, a, b)

    def _fold(self, cls: type[BinaryExpr], a: Expr, b: Expr) -> Expr | None:
        """Return the value of `cls(a, b)` for two constants of one kind, None for others."""
        if not isinstance(a, IntImm | FloatImm) or type(a) is not type(b):
            return None
        result = BOOL if issubclass(cls, Comparison) else a.dtype
        if isinstance(a, IntImm) and isinstance(b, IntImm):
            value = fold_integers(cls, a.value, b.value, a.dtype)
            return None if value is None else self.table.constant(value, result)
        assert isinstance(a, FloatImm) and isinstance(b, FloatImm)
        number = fold_floats(cls, a.value, b.value, a.dtype)
        return None if number is None else self._constant(number, result)

    def _constant(self, value: int | float, dtype: DType) -> Expr:
        if dtype.is_float:
            return self.table.intern(FloatImm(value, dtype))
        return self.table.constant(int(value), dtype)

    def _integer(self, cls: type[BinaryExpr], a: Expr, b: Expr) -> Expr:
        x = self.table.sum_of(a)
        y = self.table.sum_of(b)
        if cls is Add:
            return self.finish_sum(x.plus(y), a.dtype)
        if cls is Sub:
            return self.finish_sum(x.plus(y, -1), a.dtype)
        if cls is Mul:
            x, y = factors_of(self, Multiplicand(a, x), Multiplicand(b, y))
            product = multiply_sums(x, y)
            if product is None:
                return self.table.make(Mul, a, b)
            return self.finish_sum(without_nested_sums(self, product), a.dtype)
        if issubclass(cls, Comparison):
            sides = normal_form(self, cls, a, b)
            if isinstance(sides, bool):
                return self.table.constant(sides, BOOL)
            return self._ruled(*sides)
        if cls is Min or cls is Max:
            difference = x.plus(y, -1)
            chosen = self._extreme(cls, a, b, difference)
            if chosen is not None:
                return chosen
        ruled = self._by_rules(cls, a, b)
        if ruled is not None:
            return ruled
        if cls is FloorMod and isinstance(b, IntImm):
            residue = self.bounds.modular(a).floormod(b.value)
            if residue.coefficient == 0:
                return self.table.constant(residue.base, a.dtype)
        return self.table.make(cls, a, b)

    def _extreme(
        self, cls: type[BinaryExpr], a: Expr, b: Expr, difference: Sum
    ) -> Expr | None:
        """Return the operand of min or max that is proved to be the result."""
        exact_sum = self.bounds.exact_sum
        if exact_sum(a) is None or exact_sum(b) is None:
            return None
        if self.is_nonnegative(difference):
            return b if cls is Min else a
        if self.is_nonnegative(difference.scale(-1)):
            return a if cls is Min else b
        return None

    def _vector(self, cls: type[BinaryExpr], a: Expr, b: Expr) -> Expr:
        if isinstance(a, Broadcast) and isinstance(b, Broadcast):
            scalar = self.make(cls, a.value, b.value)
            return self.table.make(Broadcast, scalar, a.lanes)
        ruled = self._by_rules(cls, a, b)
        if ruled is not None:
            return ruled
        if issubclass(cls, Comparison) and a.dtype.is_int:
            answer = decide_vectors(self, cls, a, b)
            if answer is not None:
                return self.table.constant(answer, BOOL.with_lanes(a.dtype.lanes))
        return self.table.make(cls, a, b)

    def _negation(self, a: Expr) -> Expr:
        if isinstance(a, IntImm):
            return self.table.constant(not a.value, BOOL)
        if isinstance(a, Broadcast):
            scalar = self.make(Not, a.value)
            return self.table.make(Broadcast, scalar, a.lanes)
        return self._ruled(Not, a)

    def _cast(self, dtype: DType, value: Expr) -> Expr:
        if value.dtype == dtype:
            return value
        if isinstance(value, Broadcast):
            inner = self.make(Cast, dtype.element, value.value)
            return self.table.make(Broadcast, inner, value.lanes)
        if isinstance(value, IntImm | FloatImm):
            number = fold_cast(value.value, value.dtype, dtype)
            if number is not None:
                return self._constant(number, dtype)
        if isinstance(value, Cast) and value.dtype.is_int and value.value.dtype.is_int:
            # The inner one of two conversions can go if it changes no value.
            full = range_of_dtype(value.dtype)
            if self.bounds.interval(value.value).lies_in(full):
                return self.make(Cast, dtype, value.value)
        return self.table.make(Cast, dtype, value)

    def _load(self, buffer: Buffer, index: Expr, predicate: Expr | None) -> Expr:
        holds = None if predicate is None else as_constant(predicate)
        if holds is None:
            return self.table.make(Load, buffer, index, predicate)
        if holds:
            return self.table.make(Load, buffer, index, None)
        # A lane whose predicate is false reads as 0.
        zero = self._constant(0, buffer.dtype)
        if index.dtype.lanes == 1:
            return zero
        return self.table.make(Broadcast, zero, index.dtype.lanes)

    def _ruled(self, cls: type[Expr], *args: Any) -> Expr:
        """Return the result of the first rule that applies, or else the node itself."""
        result = self._by_rules(cls, *args)
        return self.table.make(cls, *args) if result is None else result

    def _by_rules(self, cls: type[Expr], *args: Any) -> Expr | None:
        for compiled in rules_for((cls, *map(type, args))):
            if _applies(compiled.rule.theory, args[0]):
                result = Application(self, compiled, args[0].dtype).rewrite(args)
                if result is not None:
                    return result
        return None


def _is_opaque(expr: Expr) -> bool:
    """Return True if `expr` is simplified without a representative (see `_OPAQUE`)."""
    return type(expr) in _OPAQUE and expr.dtype.is_float


def _may_become_term(expr: Expr) -> bool:
    """Return True if rules may make a new term of sums of `expr`, which is not of `_SUMS`."""
    return expr.dtype.is_int or isinstance(expr, Let)


def _operands(chain: And | Or) -> list[Expr]:
    """Return the operands of `a and b and c`, in order, without repetitions."""
    parts: list[Expr] = []
    part: Expr = chain
    while isinstance(part, type(chain)):
        parts.append(part.b)
        part = part.a
    parts.append(part)
    distinct = {id(item): item for item in reversed(parts)}
    return list(distinct.values())


def _applies(theory: Theory, operand: Expr) -> bool:
    """Return True if rules of `theory` are about nodes with this first operand."""
    if theory == INTEGER:
        return is_summable(operand.dtype)
    if theory == FLOAT:
        return operand.dtype.is_float
    if theory in (WRAPPING, ORDER):
        compared = operand.a if isinstance(operand, Comparison) else operand
        return compared.dtype.is_int
    return True
