#!/usr/bin/env python3
"""Check the tree against the house rules that no other tool checks, and print each breach.

Files have at most 600 lines of 100 columns, scripts 150, and functions 60 besides the docstring. A
file of refcomp/ has its twin test, and a class name is defined once. Names hold no empty words, and
the top level is known.
`# house: allow-long (why)` directly above a function, or before a file's first definition, allows
its length. The rooms of refcomp/ keep the limits of density (the table of `measure_style.py`, which
is printed) and of prose (`check_prose.py`), except for the rooms that `UNREVISED` lists.

Call: `check_house.py [ROOT]`. Exit code: 1 if there are breaches.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from check_prose import in_paths
from measure_style import function_length, rooms, table

FILE_LINES, FUNCTION_LINES, SCRIPT_LINES, COLUMNS = 600, 60, 150, 100
MAX_TOKENS, MAX_WIDTH = 9.5, 88  # a code line; columns that 90 % of the lines keep
# Rooms still to be revised. Delete a room from this list when its prose and density are.
UNREVISED: tuple[str, ...] = ()
EMPTY_WORDS = re.compile(r"(?i)(^|_)(utils?|helpers?|managers?|common|misc)(_|$)|^_?(new|do)_")
CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
EXCEPTION = re.compile(r"\s*# house: allow-long(?P<why> \([^)]+\))?")
FOLDERS = ("refcomp", "templates", "toolchains", "tests", "benchmarks", "scripts")
BUILT = r"build|dist|.*\.egg-info|__pycache__"  # git-ignored
PAGES = r"setup\.cfg|pyproject\.toml|LICENSE|README\.md|CONTRIBUTING\.md"
TOP_LEVEL = re.compile(rf"\..*|{'|'.join(FOLDERS)}|{PAGES}|{BUILT}")


def breaches(root: Path) -> Iterator[str]:
    """Yield `path:line: what`, in the order of the paths."""
    for path in sorted(root.iterdir()):
        if not TOP_LEVEL.fullmatch(path.name):
            yield f"{path.name}:1: no such entry in the house; it belongs in one of {FOLDERS}"
    for path in (path for folder in FOLDERS for path in sorted((root / folder).rglob("*"))):
        place = path.relative_to(root)
        if path.is_file() and "__pycache__" not in place.parts:
            yield from (f"{place}:{line}: {what}" for line, what in _of_file(root, place))
    yield from _repeated_classes(root)
    yield from _unreadable_rooms(root / "refcomp")


def _repeated_classes(root: Path) -> Iterator[str]:
    first: dict[str, str] = {}
    for path in sorted((root / "refcomp").rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
            place = f"{path.relative_to(root)}:{node.lineno}"
            if first.setdefault(node.name, place) != place:
                yield f"{place}: class {node.name} is also defined at {first[node.name]}"


def _unreadable_rooms(package: Path) -> Iterator[str]:
    for name, shape in rooms(package).items():
        if name in UNREVISED:
            continue
        if shape.density > MAX_TOKENS:
            yield f"refcomp/{name}: {shape.density:.1f} tokens a code line; at most {MAX_TOKENS}"
        if shape.width > MAX_WIDTH:
            yield f"refcomp/{name}: width p90 is {shape.width} columns; at most {MAX_WIDTH}"
        paths = [package / name] if name != "." else list(package.glob("*.py"))
        yield from in_paths(paths, relative_to=package.parent)


def _of_file(root: Path, place: Path) -> Iterator[tuple[int, str]]:
    if EMPTY_WORDS.search(place.stem):
        yield 1, f"file name {place.name!r} holds an empty word"
    if place.suffix not in (".py", ".sh", ""):
        return
    lines = (root / place).read_text(encoding="utf-8").splitlines()
    yield from _of_lines(lines, SCRIPT_LINES if place.parts[0] == "scripts" else FILE_LINES)
    if place.suffix == ".py":
        yield from _of_code(lines)
    if place.parts[0] == "refcomp" and place.suffix == ".py" and place.name != "__init__.py":
        twin = Path("tests", *place.parent.parts[1:], f"test_{place.name}")
        if not (root / twin).exists():
            yield 1, f"no twin test {twin}"


def _of_lines(lines: list[str], most: int) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(lines, 1):
        if len(line) > COLUMNS:
            yield number, f"{len(line)} columns; at most {COLUMNS}"
        if (exception := EXCEPTION.match(line)) and not exception["why"]:
            yield number, "an exception without its (reason)"
    # What stands directly above the first definition is that definition's own exception.
    starts = (i for i, line in enumerate(lines) if re.match(r"(@|def |class |async )", line))
    head = lines[: next(starts, len(lines) + 1) - 1]
    if len(lines) > most and not any(map(EXCEPTION.match, head)):
        yield 1, f"{len(lines)} lines; at most {most}"


def _of_code(lines: list[str]) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse("\n".join(lines))):
        name = _defined_name(node)
        if EMPTY_WORDS.search(CAPITAL.sub("_", name)):
            yield node.lineno, f"name {name!r} holds an empty word"
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = function_length(node)
            above = min([node, *node.decorator_list], key=lambda part: part.lineno).lineno - 2
            if length > FUNCTION_LINES and not (above >= 0 and EXCEPTION.match(lines[above])):
                yield node.lineno, f"{name} has {length} lines; at most {FUNCTION_LINES}"


def _defined_name(node: ast.AST) -> str:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return name
        case ast.arg(arg=name) | ast.Name(name, ast.Store()) | ast.Attribute(_, name, ast.Store()):
            return name
    return ""


if __name__ == "__main__":
    root = Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    found = list(breaches(root))
    print(table(root / "refcomp"))
    print("\n".join([*found, f"house: {len(found)} breaches"]))
    sys.exit(bool(found))
