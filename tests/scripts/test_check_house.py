"""Each house rule, broken on a small tree, is found; the tree unbroken has no finding."""

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "check_house.py"
SPEC = importlib.util.spec_from_file_location("check_house", SCRIPT)
assert SPEC and SPEC.loader
check_house = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(check_house)

EXCEPTION = "# house: allow-long (a table that reads better whole)\n"


def function(lines: int, name: str = "fold") -> str:
    return f"def {name}():\n" + "    pass\n" * (lines - 1)


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A tree that keeps every rule, each size at its limit."""
    write(tmp_path, "setup.cfg", "[metadata]\n")
    write(tmp_path, ".gitignore", "/build/\n")
    write(tmp_path, "refcomp/__init__.py", '"""A package needs no twin."""\n')
    write(tmp_path, "refcomp/ir/expr.py", "x = 1\n" * 540 + function(60))
    write(tmp_path, "tests/ir/test_expr.py", "y = '" + "y" * 94 + "'\n")
    write(tmp_path, "scripts/demo", "echo\n" * 150)
    write(tmp_path, "scripts/data/weights.onnx", "\n" * 1000)
    return tmp_path


def write(root: Path, place: str, text: str) -> None:
    path = root / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def findings(root: Path) -> list[str]:
    return list(check_house.breaches(root))


def test_kept_rules_give_no_finding(house: Path) -> None:
    assert findings(house) == []


def test_docstrings_do_not_count_as_lines_of_a_function(house: Path) -> None:
    manual = '    """Return x.\n' + "\n" * 100 + '    """\n'
    write(house, "tests/test_a.py", f"def fold():\n{manual}" + "    x = 1\n" * 59)
    assert findings(house) == []
    write(house, "tests/test_a.py", f"def fold():\n{manual}" + "    x = 1\n" * 60)
    assert len(findings(house)) == 1


@pytest.mark.search
@pytest.mark.parametrize(
    ("place", "text", "finding"),
    [
        ("refcomp/ir/stmt.py", "", "refcomp/ir/stmt.py:1: no twin test tests/ir/test_stmt.py"),
        ("docs/index.md", "", "docs:1: no such entry in the house"),
        ("notes.txt", "", "notes.txt:1: no such entry in the house"),
        ("tests/test_a.py", "x = 1\n" * 601, "tests/test_a.py:1: 601 lines; at most 600"),
        ("tests/test_a.py", function(61), "tests/test_a.py:1: fold has 61 lines; at most 60"),
        ("scripts/demo", "echo\n" * 151, "scripts/demo:1: 151 lines; at most 150"),
        ("scripts/tool.py", "x = 1\n" * 151, "scripts/tool.py:1: 151 lines; at most 150"),
        ("scripts/demo", "#" * 101, "scripts/demo:1: 101 columns; at most 100"),
        ("tests/test_a.py", "\n# house: allow-long\n", "tests/test_a.py:2: an exception without"),
        ("tests/utils.py", "", "tests/utils.py:1: file name 'utils.py' holds an empty word"),
        ("templates/misc.j2", "", "templates/misc.j2:1: file name 'misc.j2' holds an empty word"),
        ("tests/test_a.py", "class IRManager: ...\n", "name 'IRManager' holds an empty word"),
        ("tests/test_a.py", "def fold_helper(): ...\n", "name 'fold_helper' holds an empty word"),
        ("tests/test_a.py", "def f(new_expr): ...\n", "name 'new_expr' holds an empty word"),
        ("tests/test_a.py", "def _do_fold(): ...\n", "name '_do_fold' holds an empty word"),
        ("tests/test_a.py", "x.common = 1\n", "name 'common' holds an empty word"),
    ],
)
def test_broken_rule_is_found(house: Path, place: str, text: str, finding: str) -> None:
    write(house, place, text)
    found = findings(house)
    assert len(found) == 1
    assert finding in found[0]


def test_rooms_keep_the_limits_of_density_and_prose(house: Path) -> None:
    dense = "x = (1 + 2 + 3 + 4 + 5 + 6)\n"
    write(house, "refcomp/tune/__init__.py", dense)
    assert findings(house) == ["refcomp/tune: 15.0 tokens a code line; at most 9.5"]
    write(house, "refcomp/tune/__init__.py", f"x = '{'x' * 90}'\n")
    assert findings(house) == ["refcomp/tune: width p90 is 96 columns; at most 88"]
    write(house, "refcomp/tune/__init__.py", '"""What is tuned."""\nx = 1\n')
    assert findings(house) == ["refcomp/tune/__init__.py:1: a docstring begins with 'What'"]


def test_rooms_to_be_revised_are_not_held_to_them(house: Path) -> None:
    for room in check_house.UNREVISED:
        write(house, f"refcomp/{room}/__init__.py", '"""What a room is."""\nx = (1, 2, 3, 4, 5)\n')
    assert findings(house) == []


def test_unrevised_rooms_exist() -> None:
    assert {path.name for path in (SCRIPT.parents[1] / "refcomp").iterdir()} >= {
        *check_house.UNREVISED
    }


def test_class_name_is_defined_once_in_the_package(house: Path) -> None:
    write(house, "refcomp/ir/__init__.py", "class Node: ...\n")
    write(house, "refcomp/te/__init__.py", "\ndef f():\n    class Node: ...\n")
    write(house, "tests/test_a.py", "class Node: ...\n")
    wanted = "refcomp/te/__init__.py:3: class Node is also defined at refcomp/ir/__init__.py:1"
    assert findings(house) == [wanted]


@pytest.mark.parametrize(
    "text",
    [
        EXCEPTION + function(61),
        EXCEPTION + "@cache\n" + function(61),
        EXCEPTION + "\n" + "x = 1\n" * 600,
    ],
    ids=["function", "decorated function", "file"],
)
def test_exception_with_a_reason_allows_length(house: Path, text: str) -> None:
    write(house, "tests/test_a.py", text)
    assert findings(house) == []


def test_exception_of_a_function_is_not_its_files(house: Path) -> None:
    write(house, "tests/test_a.py", EXCEPTION + function(61) + "x = 1\n" * 600)
    assert findings(house) == ["tests/test_a.py:1: 662 lines; at most 600"]


@pytest.mark.parametrize(
    "text",
    [
        "from contextlib import contextmanager\n",
        "class Fold:\n    def __new__(cls): ...\n",
        "def commonpath(new): ...\n",
        "import shutil as utilities\n",
    ],
)
def test_names_of_others_and_longer_words_are_allowed(house: Path, text: str) -> None:
    write(house, "tests/test_a.py", text)
    assert findings(house) == []
