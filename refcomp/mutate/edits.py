"""Small wrong edits of the compiler's own functions, one place each, made on their syntax trees.

Operators and comparisons are flipped, constants and edges shifted, conditions negated or dropped,
statements dropped, operands, arguments and items exchanged, orders no longer reversed, nodes of the
loop IR taken for others. An edit gives a function that stands already other code: whoever knows the
function has the edited one. Nothing is written to a file, and nothing is run here.

Left alone: annotations, defaults, docstrings, and what raises or asserts.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType, FunctionType, ModuleType
from typing import Any

_Change = tuple[
    str, dict[str, Any]
]  # the kind, and what is put into which fields of the node


@dataclass(frozen=True, slots=True)
class Edit:
    """One place in `function`, the outermost one around it, of a module with the syntax `tree`:
    the fields of `node`, and what is put there instead."""

    kind: str
    function: FunctionType
    file: str
    tree: ast.Module
    node: ast.AST
    fields: dict[str, Any]
    line: int
    change: str

    def __str__(self) -> str:
        return f"{self.function.__qualname__}, line {self.line}: {self.change}"

    def code(self) -> CodeType:
        """The function's code with the edit."""
        with _Fields(self.node, self.fields):
            ast.fix_missing_locations(self.tree)
            module = compile(self.tree, self.file, "exec", dont_inherit=True)
        return _find_code(module, self.function.__qualname__)


def edits_of(module: ModuleType) -> Iterator[Edit]:
    """All edits of the functions and methods of `module`, in the order of the text."""
    file, tree = str(module.__file__), ast.parse(inspect.getsource(module))
    for scope, definition in _definitions(tree, module):
        function = _plain_function(scope, definition.name)
        if function is None:
            continue
        for node, line in _walk([definition], definition.lineno):
            for kind, fields in _changes(node):
                gone = _dropped(node, fields)
                at = line if gone is None else gone.lineno
                change = _described(node, fields)
                yield Edit(kind, function, file, tree, node, fields, at, change)


def _definitions(
    tree: ast.Module, module: ModuleType
) -> Iterator[tuple[Any, ast.FunctionDef]]:
    """The functions of the module and of its classes, each with what it is an attribute of."""
    for stmt in tree.body:
        if isinstance(stmt, ast.FunctionDef):
            yield module, stmt
        if isinstance(stmt, ast.ClassDef):
            for method in stmt.body:
                if isinstance(method, ast.FunctionDef):
                    yield getattr(module, stmt.name), method


def _plain_function(scope: Any, name: str) -> FunctionType | None:
    """The function behind its decorators; None where one of them hides it."""
    found = vars(scope).get(name)
    for way in ("fget", "__func__", "func", "__wrapped__"):
        found = getattr(found, way, None) or found
    is_it = isinstance(found, FunctionType) and found.__code__.co_name == name
    return found if is_it else None


def _find_code(code: CodeType, name: str) -> CodeType:
    """The code of that qualified name within `code`."""
    inner = [const for const in code.co_consts if isinstance(const, CodeType)]
    for one in inner:
        if one.co_qualname == name:
            return one
    (around,) = [one for one in inner if name.startswith(one.co_qualname + ".")]
    return _find_code(around, name)


class _Fields:
    """The node with other fields, for as long as this is entered."""

    def __init__(self, node: ast.AST, fields: dict[str, Any]) -> None:
        self._node, self._fields = node, fields
        self._before = {name: getattr(node, name) for name in fields}

    def __enter__(self) -> None:
        self._put(self._fields)

    def __exit__(self, *_: object) -> None:
        self._put(self._before)

    def _put(self, fields: dict[str, Any]) -> None:
        for name, value in fields.items():
            setattr(self._node, name, value)


_PASSED_OVER = ("annotation", "returns", "decorator_list", "args", "type_comment")


def _walk(nodes: list[Any], line: int) -> Iterator[tuple[ast.AST, int]]:
    """All nodes that may be edited, each with the line that Python says is running there."""
    for node in nodes:
        if isinstance(
            node, ast.Raise | ast.Assert | ast.Import | ast.ImportFrom | ast.JoinedStr
        ):
            continue
        here = getattr(node, "lineno", line)
        yield node, here
        for name, value in ast.iter_fields(node):
            if name in _PASSED_OVER and not isinstance(node, ast.Call):
                continue
            inner = value if isinstance(value, list) else [value]
            yield from _walk([v for v in inner if isinstance(v, ast.AST)], here)


def _dropped(node: ast.AST, fields: dict[str, Any]) -> ast.stmt | None:
    """The statement that `fields` leave out."""
    for name, after in fields.items():
        before = getattr(node, name)
        if isinstance(node, ast.stmt) and isinstance(before, list):
            gone: list[ast.stmt] = [stmt for stmt in before if stmt not in after]
            return gone[0]
    return None


def _described(node: ast.AST, fields: dict[str, Any]) -> str:
    gone = _dropped(node, fields)
    if gone is not None:
        return f"{_short(gone)}  ->  nothing"
    (before, after), *_ = (
        (getattr(node, name), value) for name, value in fields.items()
    )
    if isinstance(node, ast.stmt):
        return f"{_short(before)}  ->  {_short(after)}"
    old = _short(node)
    with _Fields(node, fields):
        return f"{old}  ->  {_short(node)}"


def _short(node: Any) -> str:
    if isinstance(node, ast.comprehension):
        return " ".join(["for ...", *(f"if {ast.unparse(test)}" for test in node.ifs)])
    text = " ".join(ast.unparse(ast.fix_missing_locations(node)).split())
    return text if len(text) <= 60 else text[:57] + "..."


# What is put where.

_OPERATORS: dict[type[Any], type[Any]] = {
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
_EDGES: dict[type[Any], type[Any]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}
_NAMES = {
    **{"LT": "LE", "LE": "LT", "GT": "GE", "GE": "GT", "EQ": "NE", "NE": "EQ"},
    **{
        "FloorDiv": "FloorMod",
        "FloorMod": "FloorDiv",
        "Add": "Sub",
        "Sub": "Add",
        "Mul": "Add",
    },
    **{"And": "Or", "Or": "And", "Min": "Max", "Max": "Min"},
    **{"min": "max", "max": "min", "any": "all", "all": "any", "reversed": "tuple"},
}


def _changes(node: Any) -> Iterator[_Change]:
    for types, rule in _RULES:
        if isinstance(node, types):
            yield from rule(node)


def _of_operation(node: ast.BinOp | ast.BoolOp) -> Iterator[_Change]:
    other = _OPERATORS.get(type(node.op))
    if other is not None:
        yield "operator flipped", {"op": other()}
    if isinstance(node, ast.BinOp) and not isinstance(
        node.op, ast.Mult | ast.BitOr | ast.BitAnd
    ):
        yield "operands exchanged", {"left": node.right, "right": node.left}
    if isinstance(node, ast.BoolOp) and len(node.values) > 2:
        yield "condition dropped", {"values": node.values[:-1]}


def _of_comparison(node: ast.Compare) -> Iterator[_Change]:
    first, *rest = node.ops
    yield "operator flipped", {"ops": [_OPERATORS[type(first)](), *rest]}
    if type(first) in _EDGES:
        yield "comparison off by one", {"ops": [_EDGES[type(first)](), *rest]}


def _of_constant(node: ast.Constant) -> Iterator[_Change]:
    if isinstance(node.value, bool):
        yield "constant shifted", {"value": not node.value}
    elif isinstance(node.value, int):
        yield "constant shifted", {"value": node.value + 1}


def _of_condition(node: ast.If | ast.While | ast.IfExp) -> Iterator[_Change]:
    yield "condition negated", {"test": ast.UnaryOp(ast.Not(), node.test)}
    if not isinstance(node, ast.While):
        yield "condition dropped", {"test": ast.Constant(True)}


def _of_comprehension(node: ast.comprehension) -> Iterator[_Change]:
    if node.ifs:
        yield "condition dropped", {"ifs": node.ifs[:-1]}


def _of_call(node: ast.Call) -> Iterator[_Change]:
    if len(node.args) >= 2 and not any(
        isinstance(arg, ast.Starred) for arg in node.args
    ):
        first, second, *rest = node.args
        yield "arguments exchanged", {"args": [second, first, *rest]}


def _of_tuple(node: ast.Tuple) -> Iterator[_Change]:
    if len(node.elts) >= 2 and isinstance(node.ctx, ast.Load):
        *rest, a, b = node.elts
        yield "items exchanged", {"elts": [*rest, b, a]}


def _of_name(node: ast.Name | ast.Attribute) -> Iterator[_Change]:
    field = "id" if isinstance(node, ast.Name) else "attr"
    other = _NAMES.get(getattr(node, field))
    if other is not None and isinstance(node.ctx, ast.Load):
        yield "name exchanged", {field: other}


def _of_block(node: Any) -> Iterator[_Change]:
    for field in ("body", "orelse"):
        stmts = getattr(node, field, [])
        for k, stmt in enumerate(stmts if isinstance(stmts, list) else []):
            if _has_effect_alone(stmt):
                yield (
                    "statement dropped",
                    {field: [*stmts[:k], *stmts[k + 1 :]] or [ast.Pass()]},
                )


def _has_effect_alone(stmt: ast.stmt) -> bool:
    """Whether what follows would still find all names that it reads."""
    if isinstance(stmt, ast.Assign):
        return all(
            isinstance(target, ast.Subscript | ast.Attribute) for target in stmt.targets
        )
    if isinstance(stmt, ast.Expr):
        return not isinstance(stmt.value, ast.Constant)
    return isinstance(stmt, ast.AugAssign | ast.Continue | ast.Break)


_RULES: tuple[tuple[Any, Any], ...] = (
    (ast.BinOp | ast.BoolOp, _of_operation),
    (ast.Compare, _of_comparison),
    (ast.Constant, _of_constant),
    (ast.If | ast.While | ast.IfExp, _of_condition),
    (ast.comprehension, _of_comprehension),
    (ast.Call, _of_call),
    (ast.Tuple, _of_tuple),
    (ast.Name | ast.Attribute, _of_name),
    (ast.stmt, _of_block),
)
