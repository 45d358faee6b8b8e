"""Parser of the loop IR's text form (the inverse of `refcomp.ir.printer`).

Requires text as the printer writes it. Names, indentation, comments (`# ...`) and line breaks are
free, with one exception. The `if` of a store's predicate is on the line where the value ends.

Ensures that the operands of each node have the right dtypes (`refcomp.ir.type_rules`), and that
each name is bound where it is used. `refcomp.ir.verify` checks levels.

Refuses everything else with a `UserError` that shows file, line and column.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from refcomp.foundation.dtype import I64
from refcomp.foundation.errors import UserError
from refcomp.foundation.near_misses import did_you_mean
from refcomp.ir.buffer import GLOBAL, Buffer, StorageScope
from refcomp.ir.expr import Expr, IntImm, Var
from refcomp.ir.expr_parser import ExprParser
from refcomp.ir.func import PrimFunc, Program, Requirement
from refcomp.ir.stmt import (
    SERIAL,
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
    Stmt,
    Store,
)
from refcomp.ir.syntax import word_to_dtype
from refcomp.ir.tokens import Token, TokenStream

# Open statements; the parser needs no stack for them, but later passes do.
MAX_BLOCKS = 1000


def parse_func(text: str, filename: str = "<stdin>") -> PrimFunc:
    r"""Return the function of the loop IR that a text describes.

    The function is not verified: `build` does that. The grammar stands in the docstrings of
    `refcomp.ir.expr` and `refcomp.ir.stmt`.

    Args:
        text: the text of one function, as `print_func` prints it.
        filename: the name of the file in messages.

    Raises:
        UserError: the text is malformed or holds more than one function. `where` has line and
            column.

    Example::

        >>> text = "func clear(B: f32[4] out) {\n  for i in range(4) {\n    B[i] = 0.0f32\n  }\n}\n"
        >>> func = rc.parse_func(text)
        >>> func.name, rc.print_func(func) == text
        ('clear', True)
    """
    parser = _Parser(text, filename)
    func = parser.func()
    parser.expect_end()
    return func


def parse_funcs(text: str, filename: str = "<stdin>") -> list[PrimFunc]:
    """Return the functions in `text` in order, if any. Raises UserError if one is malformed."""
    return parse_funcs_with_lines(text, filename)[0]


def parse_funcs_with_lines(
    text: str, filename: str = "<stdin>"
) -> tuple[list[PrimFunc], dict[Stmt, str]]:
    """Return the functions in `text`, and for each statement its first line, as file:line."""
    parser = _Parser(text, filename)
    funcs = []
    while not parser.is_at_end():
        funcs.append(parser.func())
    line_of = parser.stream.line_of
    return funcs, {stmt: line_of(token) for stmt, token in parser.begins.items()}


def parse_program(text: str, filename: str = "<stdin>") -> Program:
    """Return the program in `text`: the host's function, then the kernels.

    Raises UserError if `text` has no function, or a malformed one.
    """
    funcs = parse_funcs(text, filename)
    if not funcs:
        raise UserError(
            "a program without functions", where=filename, remedy="begin with `func`"
        )
    return Program(funcs[0], tuple(funcs[1:]))


def parse_expr(
    text: str, names: Mapping[str, Var | Buffer], filename: str = "<expression>"
) -> Expr:
    """Return the expression in `text`; `names` maps names in it to variables and buffers."""
    parser = _Parser(text, filename)
    parser.exprs.names.update(names)
    expr = parser.exprs.expression()
    parser.expect_end()
    return expr


@dataclass
class _Open:
    """A statement whose body is being parsed."""

    build: Callable[[Stmt], Stmt]  # makes the statement from its body
    names: int  # bound names before it (`ExprParser.bound_count`)
    token: Token | None = None  # its first token
    is_block: bool = False
    # Of `if`: the condition of the branch being parsed, and the earlier branches.
    condition: Expr | None = None
    branches: list[tuple[Expr, Stmt]] = field(default_factory=list)
    stmts: list[Stmt] = field(default_factory=list)

    def body(self) -> Stmt:
        if len(self.stmts) == 1 and not self.is_block:
            return self.stmts[0]
        return Block(tuple(self.stmts))

    def close(self) -> Stmt:
        stmt = self.build(self.body())
        for condition, then_case in reversed(self.branches):
            stmt = IfThenElse(condition, then_case, stmt)
        return stmt


class _Parser:
    """A parser of functions and statements, with a stack of open statements, no recursion."""

    def __init__(self, text: str, filename: str) -> None:
        self.stream = TokenStream(text, filename)
        self.exprs = ExprParser(self.stream)
        self.begins: dict[Stmt, Token] = {}  # the first token of each statement
        # By first word: statements with a body, then those without.
        self._openers: dict[str, Callable[[Token], _Open]] = {
            "for": self._for,
            "if": self._if,
            "let": self._let,
            "alloc": self._alloc,
            "region": self._region,
            "block": lambda _token: self._open_block(is_block=True),
            "pragma": self._pragma,
        }
        self._simple: dict[str, Callable[[Token], Stmt]] = {
            "barrier": lambda _token: Barrier(),
            "atomic": self._atomic,
            "prefetch": self._prefetch,
            "launch": self._launch,
            "packed": self._packed,
            "extern": self._extern,
        }

    def is_at_end(self) -> bool:
        return self.stream.peek().kind == "end"

    def expect_end(self) -> None:
        if not self.is_at_end():
            token = self.stream.peek()
            self.stream.fail(token, f"expected the end of the text, found {token}")

    # Functions.

    def func(self) -> PrimFunc:
        mark = self.exprs.bound_count()
        begin = self.stream.expect("func", "where a function begins")
        name = self.stream.expect_name("the name of a function")
        self.stream.expect("(", "before the parameters")
        self._declare_scalars()
        self.exprs.declares_symbols = True
        params, outputs = self._params()
        self.exprs.declares_symbols = False
        func = PrimFunc(
            name=name.text,
            params=params,
            body=Block(()),
            outputs=outputs,
            imports=self._texts("import"),
            requires=self._requires(),
            checks=self._texts("check"),
        )
        self.exprs.check(begin, func)
        root = self._open_block()
        root.names = mark  # the parameters are bound in the function only
        return func.with_body(self._braces(root))

    def _texts(self, word: str) -> tuple[str, ...]:
        """Parse texts in quotes, each after `word`."""
        texts: list[str] = []
        while self.stream.take_if(word):
            token = self.stream.take()
            quoted = token.text if token.kind == "text" else ""
            try:
                texts.append(str(json.loads(quoted)))
            except ValueError:
                self.stream.fail(token, f"expected a text in quotes, found {token}")
        return tuple(texts)

    def _requires(self) -> tuple[Requirement, ...]:
        """Parse `requires` and its conditions in parentheses, if they are next."""
        if not self.stream.take_if("requires"):
            return ()
        self.stream.expect("(", "before the conditions")
        found: list[Requirement] = []
        while not self.stream.take_if(")"):
            if found:
                self.stream.expect(",", "or `)` after a condition")
            found.append(self._requirement())
        return tuple(found)

    def _requirement(self) -> Requirement:
        """Parse a condition, after its axes: `for i in range(m) CONDITION`."""
        mark = self.exprs.bound_count()
        begin = self.stream.peek()
        axes: list[tuple[Var, Expr, Expr]] = []
        while self.stream.take_if("for"):
            var, name = self._loop_variable()
            axes.append((var, *self._range(var)))
            self.exprs.bind(name, var)
        condition = self.exprs.expression()
        self.exprs.unbind_to(mark)
        names, minima, extents = zip(*axes, strict=True) if axes else ((), (), ())
        found = Requirement(condition, None, names, minima, extents)
        return self.exprs.check(begin, found)

    def _declare_scalars(self) -> None:
        """Bind the scalar parameters, before any is parsed.

        The shape of a buffer may name a scalar parameter that comes after the buffer.
        """
        ahead = 0
        depth = 0  # of brackets
        while depth >= 0 and self.stream.peek(ahead).kind != "end":
            name, colon, word, after = (self.stream.peek(ahead + k) for k in range(4))
            if name.text in ("(", "["):
                depth += 1
            elif name.text in (")", "]"):
                depth -= 1
            if depth == 0 and colon.text == ":" and after.text in (",", ")"):
                dtype = word_to_dtype(word.text)
                if dtype is not None and name.text not in self.exprs.names:
                    self.exprs.bind(name, Var(name.text, dtype))
            ahead += 1

    def _params(self) -> tuple[tuple[Var | Buffer, ...], tuple[str, ...]]:
        params: dict[str, Var | Buffer] = {}
        outputs: list[str] = []
        while not self.stream.take_if(")"):
            if params:
                self.stream.expect(",", "or `)` after a parameter")
            name = self.exprs.fresh_name("the name of a parameter")
            self.stream.expect(":", "and a dtype after the name of a parameter")
            if name.text in params:
                first = self.stream.earlier(name, "declared here")
                self.stream.fail(
                    name, f"two parameters are named {name}", earlier=first
                )
            param = self._param(name)
            params[name.text] = param
            if isinstance(param, Buffer) and self.stream.take_if("out"):
                outputs.append(name.text)
        return tuple(params.values()), tuple(outputs)

    def _param(self, name: Token) -> Var | Buffer:
        if self.stream.peek(1).text == "[":
            if name.text in self.exprs.names:
                self.stream.fail(
                    name,
                    f"{name} is a variable already, used in a shape",
                    earlier=self.stream.earlier(name, "used here"),
                )
            buffer = self._buffer(name)
            self.exprs.bind(name, buffer)
            return buffer
        dtype = self.exprs.dtype()
        var = self.exprs.names.get(name.text)
        after = self.stream.peek()
        if not isinstance(var, Var) or after.text not in (",", ")"):
            self.stream.fail(
                after, f"expected `,`, `)` or `[` after `{dtype}`, found {after}"
            )
        return var

    def _buffer(self, name: Token) -> Buffer:
        """Parse `dtype[shape] scope align N`; scope and alignment are optional."""
        dtype = self.exprs.dtype()
        shape = self.exprs.indices("[", "]")
        scope = GLOBAL
        token = self.stream.peek()
        if token.kind == "name" and token.text not in ("align", "out"):
            try:
                scope = StorageScope.parse(self.stream.take().text, "scope")
            except UserError as error:
                self.stream.fail(token, error.what, error.remedy)
        alignment = 0
        if self.stream.take_if("align"):
            alignment = self.exprs.natural("an alignment in bytes")
        return self.exprs.check(name, Buffer(name.text, dtype, shape, scope, alignment))

    # Statements.

    def _braces(self, root: _Open) -> Stmt:
        """Parse `{ ... }`, the body of `root`, and return the statement of `root`."""
        self.stream.expect("{", "before the body")
        opened = [root]
        while True:
            if not self.stream.take_if("}"):
                self._statement(opened)
                continue
            done = opened.pop()
            self.exprs.unbind_to(done.names)
            if done.condition is not None and self.stream.take_if("else"):
                opened.append(self._else(done, done.condition))
            elif opened:
                self._add(opened[-1], done.close(), done.token)
            else:
                return done.close()

    def _statement(self, opened: list[_Open]) -> None:
        token = self.stream.peek()
        simple = self._simple.get(token.text)
        opener = self._openers.get(token.text)
        if simple is not None:
            self._add(opened[-1], simple(self.stream.take()), token)
            return
        if opener is None:
            self._add(opened[-1], self._store(), token)
            return
        if len(opened) > MAX_BLOCKS:
            self.stream.fail(
                token, f"statements are nested deeper than {MAX_BLOCKS} levels"
            )
        opened.append(opener(self.stream.take()))
        opened[-1].token = token
        self.stream.expect("{", f"before the body of {token}")

    def _add(self, around: _Open, stmt: Stmt, token: Token | None) -> None:
        around.stmts.append(stmt)
        if token is not None:
            self.begins[stmt] = token

    def _open(self, token: Token, build: Callable[[Stmt], Stmt], names: int) -> _Open:
        # With an empty body the header is checked now, so that an error shows `token`.
        self.exprs.check(token, build(Block(())))
        return _Open(build, names)

    def _open_block(self, *, is_block: bool = False) -> _Open:
        """Open braces, which make a Block if `is_block` is true, and group statements otherwise."""
        return _Open(lambda body: body, self.exprs.bound_count(), is_block=is_block)

    def _for(self, begin: Token) -> _Open:
        var, name = self._loop_variable()
        minimum, extent = self._range(var)
        kind = SERIAL
        token = self.stream.peek()
        if token.kind == "name":
            kinds = {each.value: each for each in LoopKind}
            if token.text not in kinds:
                remedy = did_you_mean(token.text, kinds)
                listed = ", ".join(kinds)
                self.stream.fail(token, f"expected `{{` or one of {listed}", remedy)
            kind = kinds[self.stream.take().text]
        mark = self.exprs.bound_count()
        self.exprs.bind(name, var)
        return self._open(
            begin, lambda body: For(var, minimum, extent, kind, body), mark
        )

    def _loop_variable(self) -> tuple[Var, Token]:
        """Parse `i in range` after `for`. Return the variable, and its name."""
        name = self.exprs.fresh_name("the name of a loop variable")
        dtype = self.exprs.dtype() if self.stream.take_if(":") else I64
        var = self.exprs.check(name, Var(name.text, dtype))
        self.stream.expect("in", "after the loop variable")
        self.stream.expect("range", "after `in`")
        return var, name

    def _range(self, var: Var) -> tuple[Expr, Expr]:
        """Parse `(extent)` or `(minimum, extent=extent)`. Return minimum and extent."""
        self.stream.expect("(", "after `range`")
        minimum: Expr = IntImm(0, var.dtype)
        extent = self.exprs.expression()
        if self.stream.take_if(","):
            minimum = extent
            self.stream.expect(
                "extent", "after the minimum: range(minimum, extent=...)"
            )
            self.stream.expect("=", "after `extent`")
            extent = self.exprs.expression()
        self.stream.expect(")", "after the range")
        return minimum, extent

    def _if(self, token: Token) -> _Open:
        self.stream.expect("(", "before the condition")
        condition = self.exprs.expression()
        self.stream.expect(")", "after the condition")
        mark = self.exprs.bound_count()
        opened = self._open(token, lambda body: IfThenElse(condition, body), mark)
        opened.condition = condition
        return opened

    def _else(self, done: _Open, condition: Expr) -> _Open:
        """Open the branch after `else`: another `if`, or the last branch."""
        is_last = not self.stream.is_next("if")
        opened = self._open_block() if is_last else self._if(self.stream.take())
        opened.branches = done.branches
        opened.branches.append((condition, done.body()))
        self.stream.expect("{", "after `else`")
        return opened

    def _let(self, token: Token) -> _Open:
        name, var = self.exprs.declared_var("the name of a variable")
        self.stream.expect("=", "before the value of the variable")
        value = self.exprs.expression()
        mark = self.exprs.bound_count()
        self.exprs.bind(name, var)
        return self._open(token, lambda body: LetStmt(var, value, body), mark)

    def _alloc(self, token: Token) -> _Open:
        name = self.exprs.fresh_name("the name of a buffer")
        self.stream.expect(":", "and a dtype after the name of a buffer")
        buffer = self._buffer(name)
        mark = self.exprs.bound_count()
        self.exprs.bind(name, buffer)
        return self._open(token, lambda body: Allocate(buffer, body), mark)

    def _region(self, token: Token) -> _Open:
        name = self.stream.expect_name("the name of a region").text
        captures = self._captures()
        self.stream.expect("task", "after the captured names")
        task = self.exprs.fresh_name("the name of the task")
        self.stream.expect("of", "after the name of the task")
        count = self.exprs.fresh_name("the name of the number of tasks")
        mark = self.exprs.bound_count()
        task_var = Var(task.text, I64)
        count_var = Var(count.text, I64)
        self.exprs.bind(task, task_var)
        self.exprs.bind(count, count_var)

        def build(body: Stmt) -> Stmt:
            return ParallelRegion(name, captures, task_var, count_var, body)

        return self._open(token, build, mark)

    def _atomic(self, token: Token) -> Stmt:
        word = self.stream.take()
        operators = {each.value: each for each in AtomicOperator}
        operator = operators.get(word.text)
        if operator is None:
            remedy = did_you_mean(word.text, operators)
            self.stream.fail(word, f"expected one of {', '.join(operators)}", remedy)
        buffer = self.exprs.buffer(
            self.stream.expect_name("the buffer that is updated")
        )
        indices = self.exprs.indices("[", "]")
        self.stream.expect("with", "before the value")
        value = self.exprs.expression()
        return self.exprs.check(token, AtomicUpdate(operator, buffer, indices, value))

    def _prefetch(self, token: Token) -> Stmt:
        buffer = self.exprs.buffer(
            self.stream.expect_name("the buffer that will be read")
        )
        return self.exprs.check(token, Prefetch(buffer, self.exprs.indices("[", "]")))

    def _pragma(self, token: Token) -> _Open:
        key = self.stream.expect_name("the key of a pragma").text
        value = self.exprs.expression()
        mark = self.exprs.bound_count()
        return self._open(token, lambda body: Pragma(key, value, body), mark)

    def _launch(self, token: Token) -> Stmt:
        name = self.stream.expect_name("the name of a kernel").text
        arguments = self._captures()
        self.stream.expect("grid", "and its extents in x, y and z")
        grid = self.exprs.indices("(", ")")
        self.stream.expect("block", "and its extents in x, y and z")
        block = self.exprs.indices("(", ")")
        has_shared = self.stream.take_if("shared_bytes")
        shared = self.exprs.indices("(", ")") if has_shared else ()
        return self.exprs.check(
            token, LaunchKernel(name, arguments, grid, block, shared)
        )

    def _packed(self, token: Token) -> Stmt:
        return self.exprs.check(token, CallPacked(*self.exprs.callee()))

    def _extern(self, token: Token) -> Stmt:
        name, args, result = self.exprs.extern_call()
        return self.exprs.check(token, CallExtern(name, result, args))

    def _captures(self) -> tuple[Var | Buffer, ...]:
        self.stream.expect("(", "before the captured names")
        captures: list[Var | Buffer] = []
        while not self.stream.take_if(")"):
            if captures:
                self.stream.expect(",", "or `)` in the list of captured names")
            token = self.stream.expect_name("a variable or a buffer")
            captures.append(self.exprs.named(token))
        return tuple(captures)

    def _store(self) -> Stmt:
        token = self.stream.expect_name("a statement or `}`")
        if not self.stream.is_next("[", "@"):
            self.stream.fail(token, f"expected a statement or `}}`, found {token}")
        buffer = self.exprs.buffer(token)
        if not self.stream.take_if("@"):
            indices = self.exprs.indices("[", "]")
            self.stream.expect("=", "after what is written to")
            return self.exprs.check(
                token, BufferStore(buffer, indices, self.exprs.expression())
            )
        self.stream.expect("[", "after `@`")
        index = self.exprs.expression()
        self.stream.expect("]", "after the index")
        self.stream.expect("=", "after what is written to")
        value = self.exprs.expression()
        predicate = None
        # On a line of its own, `if` begins the next statement.
        if self.stream.is_next("if") and self.stream.is_on_same_line():
            self.stream.take()
            predicate = self.exprs.expression()
        return self.exprs.check(token, Store(buffer, index, value, predicate))
