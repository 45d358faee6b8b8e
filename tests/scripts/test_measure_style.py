"""The measures of density, on texts short enough to count by hand."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from measure_style import Shape, measure, quantile, rooms, table

TEXT = '''"""A docstring

of three lines."""

from typing import Any


def f(x: Any) -> int:
    """Return one."""
    # why
    a, b = g(x), 1  # two values
    a, b = b, a
    return (
        a
    )


def _once() -> Any: ...


def _twice() -> None:
    _once()
    _twice()
    _twice()
'''


def test_counts_agree_with_counts_by_hand() -> None:
    shape = measure(TEXT)
    assert shape.code_lines == 1 + 6 + 1 + 4
    assert shape.tokens == 4 + 10 + (10 + 7 + 4) + 8 + 7 + 3 * 3
    assert (shape.comments, shape.called_once, shape.any_types, shape.parallel) == (2, 1, 2, 1)
    assert shape.functions == [7, 1, 4]  # without the docstring
    assert len(shape.widths) == 16 and max(shape.widths) == 32


def test_shapes_add_up() -> None:
    both = measure(TEXT) + measure("x = 1\n")
    assert both.code_lines == 13 and both.functions == [7, 1, 4]
    assert both.density == both.tokens / 13 and Shape().density == 0


def test_quantiles_of_few_values() -> None:
    assert quantile([], 0.9) == 0 and quantile([3, 1, 2], 0.5) == 2 and quantile([3, 1, 2], 1) == 3


def test_table_has_a_row_for_each_room_and_the_sum(tmp_path: Path) -> None:
    for place in ("ir/expr.py", "ir/stmt.py", "te/tensor.py"):
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / place).write_text(TEXT)
    (tmp_path / "build.py").write_text(TEXT)
    (tmp_path / "te" / "empty.py").write_text("")
    assert list(rooms(tmp_path)) == [".", "ir", "te"]
    lines = table(tmp_path).splitlines()
    assert [line.split(" | ")[0] for line in lines[2:]] == ["| .", "| ir", "| te", "| all"]
    assert lines[-1].split(" | ")[1] == str(4 * measure(TEXT).code_lines)
    assert len({line.count("|") for line in lines}) == 1
