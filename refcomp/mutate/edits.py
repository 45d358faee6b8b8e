"""Mutation operators on the compiler's own Python functions, one place each.

An edit gives an existing function object other code, so every caller that holds the function runs
the mutant. Nothing is written to a file, and nothing is executed here.

Annotations, defaults, docstrings, and statements that raise or assert are never edited.
"""

from __future__ import annotations

import ast
import inspect
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import CodeType, FunctionType, ModuleType

_Change = tuple[str, Mapping[str, object]]  # mutation operator, other values of fields


@dataclass(frozen=True, slots=True)
class Edit:
    """A mutation operator at one node of a function's syntax tree."""

    operator: str
    function: FunctionType  # the outermost one around the node
    file: str
    tree: ast.Module  # of the whole file
    node: ast.AST
    fields: Mapping[str, object]  # other values of the node's fields
    line: int
    change: str  # the text before and after

    def __str__(self) -> str:
        return f"{self.function.__qualname__}, line {self.line}: {self.change}"

    def code(self) -> CodeType:
        """Return the function's code with the edit."""
        with _changed(self.node, self.fields):
            ast.fix_missing_locations(self.tree)
            module = compile(self.tree, self.file, "exec", dont_inherit=True)
        return _find_code(module, self.function.__qualname__)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Give the function the code with the edit while the `with` statement runs."""
        before = self.function.__code__
        self.function.__code__ = self.code()
        try:
            yield
        finally:
            self.function.__code__ = before


def edits_of(module: ModuleType) -> Iterator[Edit]:
    """Yield all edits of the functions and methods of `module`, in the order of the text."""
    file = str(module.__file__)
    tree = ast.parse(inspect.getsource(module))
    for function, definition in _functions(tree, module):
        for node, line in _walk([definition], definition.lineno):
            for operator, fields in _changes(node):
                dropped = _dropped(node, fields)
                yield Edit(
                    operator=operator,
                    function=function,
                    file=file,
                    tree=tree,
                    node=node,
                    fields=fields,
                    line=dropped.lineno if dropped else line,
                    change=_described(node, fields, dropped),
                )


def _functions(
    tree: ast.Module, module: ModuleType
) -> Iterator[tuple[FunctionType, ast.FunctionDef]]:
    """Yield the functions of the module and the methods of its classes.

    Decorated functions are those behind the decorators; a decorator may hide them.
    """
    definitions: list[tuple[object, ast.stmt]] = []
    for stmt in tree.body:
        if isinstance(stmt, ast.ClassDef):
            scope = getattr(module, stmt.name)
            definitions += [(scope, inner) for inner in stmt.body]
        else:
            definitions.append((module, stmt))
    for scope, stmt in definitions:
        if not isinstance(stmt, ast.FunctionDef):
            continue
        found = vars(scope).get(stmt.name)
        for attribute in ("fget", "__func__", "func", "__wrapped__"):
            found = getattr(found, attribute, None) or found
        if isinstance(found, FunctionType) and found.__code__.co_name == stmt.name:
            yield found, stmt


def _find_code(code: CodeType, name: str) -> CodeType:
    """Return the code with the qualified name `name` within `code`.

    The code of an inner function is a constant of the code around it.
    """
    inner = [const for const in code.co_consts if isinstance(const, CodeType)]
    for candidate in inner:
        if candidate.co_qualname == name:
            return candidate
    (outer,) = [c for c in inner if name.startswith(c.co_qualname + ".")]
    return _find_code(outer, name)


@contextmanager
def _changed(node: ast.AST, fields: Mapping[str, object]) -> Iterator[None]:
    """Give the node other values of fields while the `with` statement runs."""
    before = {name: getattr(node, name) for name in fields}
    try:
        for name, value in fields.items():
            setattr(node, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(node, name, value)


_NEVER_EDITED = (ast.Raise, ast.Assert, ast.Import, ast.ImportFrom, ast.JoinedStr)
_FIELDS_NEVER_EDITED = (
    "annotation",
    "returns",
    "decorator_list",
    "args",
    "type_comment",
)


def _walk(nodes: Iterable[object], line: int) -> Iterator[tuple[ast.AST, int]]:
    """Yield all nodes that may be edited, with the line that a trace function sees there."""
    for node in nodes:
        if not isinstance(node, ast.AST) or isinstance(node, _NEVER_EDITED):
            continue
        here = getattr(node, "lineno", line)
        yield node, here
        for name, value in ast.iter_fields(node):
            if name in _FIELDS_NEVER_EDITED and not isinstance(node, ast.Call):
                continue
            yield from _walk(value if isinstance(value, list) else [value], here)


def _dropped(node: ast.AST, fields: Mapping[str, object]) -> ast.stmt | None:
    """Return the statement that `fields` leave out, if they do so."""
    for name, after in fields.items():
        before = getattr(node, name)
        if isinstance(node, ast.stmt) and isinstance(before, list):
            assert isinstance(after, list)
            for stmt in before:
                if stmt not in after:
                    assert isinstance(stmt, ast.stmt)
                    return stmt
    return None


def _described(
    node: ast.AST, fields: Mapping[str, object], dropped: ast.stmt | None
) -> str:
    if dropped is not None:
        return f"{_short(dropped)}  ->  nothing"
    # Only the changed expression: the text is for one line.
    if isinstance(node, ast.stmt):
        ((name, after),) = fields.items()
        assert isinstance(after, ast.AST)
        return f"{_short(getattr(node, name))}  ->  {_short(after)}"
    before = _short(node)
    with _changed(node, fields):
        return f"{before}  ->  {_short(node)}"


def _short(node: ast.AST) -> str:
    if isinstance(node, ast.comprehension):
        return " ".join(["for ...", *(f"if {ast.unparse(test)}" for test in node.ifs)])
    text = " ".join(ast.unparse(ast.fix_missing_locations(node)).split())
    return text if len(text) <= 60 else text[:57] + "..."


_FLIPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mod,
    ast.Mod: ast.FloorDiv,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
    ast.Lt: ast.GtE,
    ast.LtE: ast.Gt,
    ast.Gt: ast.LtE,
    ast.GtE: ast.Lt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
_OFF_BY_ONE: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}
_EXCHANGED_NAMES = {
    "LT": "LE",
    "LE": "LT",
    "GT": "GE",
    "GE": "GT",
    "EQ": "NE",
    "NE": "EQ",
    "FloorDiv": "FloorMod",
    "FloorMod": "FloorDiv",
    "Add": "Sub",
    "Sub": "Add",
    "Mul": "Add",
    "And": "Or",
    "Or": "And",
    "Min": "Max",
    "Max": "Min",
    "min": "max",
    "max": "min",
    "any": "all",
    "all": "any",
    "reversed": "tuple",
    # Functions of elements.
    "maximum": "minimum",
    "minimum": "maximum",
    "floor": "ceil",
    "ceil": "floor",
    "floordiv": "truncdiv",
    "floormod": "truncmod",
    "sin": "cos",
    "cos": "sin",
    "exp": "expm1",
    "log": "log1p",
    "sqrt": "rsqrt",
}
# A constant is changed by so little, relatively, that only tight comparisons notice.
_SLIGHTLY = 1e-4


def _changes(node: ast.AST) -> Iterator[_Change]:
    """Yield what each mutation operator makes of `node`."""
    match node:
        case ast.BinOp(left, op, right):
            if type(op) in _FLIPPED:
                yield "operator flipped", {"op": _FLIPPED[type(op)]()}
            if not isinstance(op, ast.Mult | ast.BitOr | ast.BitAnd):
                yield "operands exchanged", {"left": right, "right": left}
        case ast.BoolOp(op, values):
            yield "operator flipped", {"op": _FLIPPED[type(op)]()}
            if len(values) > 2:
                yield "condition dropped", {"values": values[:-1]}
        case ast.Compare(ops=[op, *rest]):
            yield "operator flipped", {"ops": [_FLIPPED[type(op)](), *rest]}
            if type(op) in _OFF_BY_ONE:
                yield "comparison off by one", {"ops": [_OFF_BY_ONE[type(op)](), *rest]}
        case ast.Constant(bool() as value):
            yield "constant shifted", {"value": not value}
        case ast.Constant(int() as value):
            yield "constant shifted", {"value": value + 1}
        case ast.Constant(float() as value) if value and math.isfinite(value):
            yield "constant slightly wrong", {"value": value * (1 + _SLIGHTLY)}
        case ast.UnaryOp(ast.USub(), ast.Name() | ast.Call() | ast.Subscript()):
            yield "operator flipped", {"op": ast.UAdd()}
        case ast.If() | ast.While() | ast.IfExp():
            yield "condition negated", {"test": ast.UnaryOp(ast.Not(), node.test)}
            if not isinstance(node, ast.While):
                yield "condition dropped", {"test": ast.Constant(True)}
        case ast.comprehension(ifs=[*conditions, _]):
            yield "condition dropped", {"ifs": conditions}
        case ast.Call(args=[first, second, *rest]):
            if not any(isinstance(arg, ast.Starred) for arg in node.args):
                yield "arguments exchanged", {"args": [second, first, *rest]}
        case ast.Tuple([*rest, a, b], ast.Load()):
            yield "items exchanged", {"elts": [*rest, b, a]}
        case ast.Name(name, ast.Load()) if name in _EXCHANGED_NAMES:
            yield "name exchanged", {"id": _EXCHANGED_NAMES[name]}
        case ast.Attribute(_, name, ast.Load()) if name in _EXCHANGED_NAMES:
            yield "name exchanged", {"attr": _EXCHANGED_NAMES[name]}
    if isinstance(node, ast.stmt):
        yield from _dropped_statements(node)


def _dropped_statements(node: ast.stmt) -> Iterator[_Change]:
    for field in ("body", "orelse"):
        stmts = getattr(node, field, [])
        for k, stmt in enumerate(stmts):
            if _binds_no_name(stmt):
                rest = [*stmts[:k], *stmts[k + 1 :]]
                yield "statement dropped", {field: rest or [ast.Pass()]}


def _binds_no_name(stmt: ast.stmt) -> bool:
    """Return True if `stmt` has an effect, and later statements need no name that it binds."""
    match stmt:
        case ast.Assign(targets):
            return all(isinstance(t, ast.Subscript | ast.Attribute) for t in targets)
        case ast.Expr(value):
            return not isinstance(value, ast.Constant)
    return isinstance(stmt, ast.AugAssign | ast.Continue | ast.Break)
