"""Holds the grammar in a module's docstring against the node classes that the module defines."""

import re
from dataclasses import fields
from types import ModuleType

from refcomp.ir.node import Node

_SORTS = {
    "Expr": "expr",
    "Stmt": "stmt",
    "Var": "var",
    "Buffer": "buffer",
    "DType": "dtype",
    "Requirement": "requirement",
    "AtomicOperator": "atomic_operator",
    "StorageScope": "scope",
    "BufferAccess": "access",
    "LoopKind": "loop_kind",
    "Callee": "callee",
}


def classes_in_grammar(module: ModuleType) -> dict[str, list[str]]:
    """Each constructor of the grammar with its fields, as `sort name`."""
    grammar = re.split(r"\n\n(?=\S)", (module.__doc__ or "").split("Grammar", 1)[1])[0]
    found = {}
    for name, inside in re.findall(r"\b([A-Z]\w*)\(([^)]*)\)", grammar):
        assert name not in found, f"{name} stands twice in the grammar"
        found[name] = [field.strip() for field in inside.split(",") if field.strip()]
    return found


def classes_in_code(module: ModuleType) -> dict[str, list[str]]:
    """Each node class of the module with its fields, as the grammar should write them."""
    classes = [
        cls
        for cls in vars(module).values()
        if isinstance(cls, type) and issubclass(cls, Node) and cls.__module__ == module.__name__
    ]
    return {
        cls.__name__: [f"{_sort(f.type)} {f.name}" for f in fields(cls) if f.name != "origin"]
        for cls in classes
        if "__dataclass_fields__" in vars(cls)
    }


def _sort(annotation: str) -> str:
    if inside := re.fullmatch(r"tuple\[(.*), \.\.\.\]", annotation):
        return f"{_sort(inside[1])}*"
    if inside := re.fullmatch(r"(.*) \| None", annotation):
        return f"{_sort(inside[1])}?"
    return "name" if annotation == "Var | Buffer" else _SORTS.get(annotation, annotation)


def assert_grammar_holds(module: ModuleType) -> None:
    """The grammar names each class of the module, with its fields, and no other."""
    written = {
        name: [re.sub("^(capture|param)", "name", field) for field in fields]
        for name, fields in classes_in_grammar(module).items()
    }
    assert written == classes_in_code(module)
