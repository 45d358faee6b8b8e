"""Random programs whose shapes are compound are judged right for numpy's results, te and text.

Drawn: one to three inputs of one or two dimensions, extents such as `n - 2`, `n * m` and `n // 2`,
an output for each by element, by a shift that makes it shorter, or by a sum over its rows. Sizes
from 0 to 6; where the arrays do not determine a size, --symbol gives it.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from refcomp.cli import main

Extent = Callable[[int, int], int]
_EXTENTS: dict[str, Extent] = {
    "n": lambda n, _: n,
    "m": lambda _, m: m,
    "n - 2": lambda n, _: n - 2,
    "m + 3": lambda _, m: m + 3,
    "2 * n": lambda n, _: 2 * n,
    "3 * m - 1": lambda _, m: 3 * m - 1,
    "n * m": lambda n, m: n * m,
    "n + m": lambda n, m: n + m,
    "n // 2": lambda n, _: n // 2,
    "(m + 1) // 2": lambda _, m: (m + 1) // 2,
    "4": lambda *_: 4,
}
_KINDS = {
    "element": ("{dims}", "lambda *i: {a}(*i) * 2"),
    "shift": ("{first} - 1{rest}", "lambda i, *j: {a}(i, *j) + {a}(i + 1, *j)"),
    "sum": ("{first}", "lambda i: rc.sum({a}[i, k{number}], axis=k{number})"),
}
Part = tuple[str, tuple[str, ...]]
_PARTS = st.tuples(
    st.sampled_from(list(_KINDS)),
    st.lists(st.sampled_from(list(_EXTENTS)), min_size=1, max_size=2).map(tuple),
)


def _program(parts: list[Part]) -> str:
    lines = ["import refcomp as rc", "def computation():", "    n, m = rc.var('n'), rc.var('m')"]
    for number, (kind, dims) in enumerate(parts):
        shape, body = _KINDS[kind]
        rest = "".join(f", {dim}" for dim in dims[1:])
        names = {"a": f"a{number}", "number": number, "first": dims[0], "rest": rest}
        lines.append(f"    a{number} = rc.placeholder(({', '.join(dims)},), name='A{number}')")
        if kind == "sum":
            lines.append(f"    k{number} = rc.reduce_axis((0, {dims[1]}), 'k')")
        own = shape.format(dims=", ".join(dims), **names)
        lines.append(f"    b{number} = rc.compute(({own},), {body.format(**names)}, 'B{number}')")
    outputs = ", ".join(f"b{number}" for number in range(len(parts)))
    inputs = ", ".join(f"a{number}" for number in range(len(parts)))
    lines.append(f"    return rc.create_schedule([{outputs}]), [{inputs}, {outputs}]")
    return "\n".join(lines)


def _arrays(parts: list[Part], n: int, m: int) -> tuple[dict, dict]:
    random, inputs, outputs = np.random.default_rng(n + 10 * m), {}, {}
    for number, (kind, dims) in enumerate(parts):
        shape = [max(0, _EXTENTS[dim](n, m)) for dim in dims]
        a = random.integers(-8, 9, shape).astype(np.float32)
        inputs[f"A{number}"] = a
        outputs[f"B{number}"] = {
            "element": lambda a: a * 2,
            "shift": lambda a: a[:-1] + a[1:],
            "sum": lambda a: a.sum(axis=1),
        }[kind](a)
    return inputs, outputs


def _refcomp(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


def _judged(what: Path, folder: Path, n: int, m: int) -> Result:
    call = ("judge", "--json", what, "-i", folder / "in.npz", "-r", folder / "out.npz")
    result = _refcomp(*call)
    known: tuple[str, ...] = ()
    while result.exit_code == 4 and "the size of " in result.stderr:
        name = "n" if "the size of n is" in json.loads(result.stderr)["error"]["what"] else "m"
        assert f"{name}=" not in " ".join(known)
        known += ("--symbol", f"{name}={n if name == 'n' else m}")
        result = _refcomp(*call, *known)
    return result


@settings(max_examples=40, deadline=None)
@given(parts=st.lists(_PARTS, min_size=1, max_size=3), n=st.integers(0, 6), m=st.integers(0, 6))
def test_numpy_is_judged_right(parts: list[Part], n: int, m: int) -> None:
    parts = [
        ("element" if kind == "sum" and len(dims) == 1 else kind, dims) for kind, dims in parts
    ]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "program.py").write_text(_program(parts))
        (folder / "text.txt").write_text(_refcomp("lower", folder / "program.py").stdout)
        inputs, outputs = _arrays(parts, n, m)
        np.savez(folder / "in.npz", **inputs)
        for what in (folder / "program.py", folder / "text.txt"):
            np.savez(folder / "out.npz", **outputs)
            right = _judged(what, folder, n, m)
            assert right.exit_code == 0, right.stderr
            report = json.loads(right.stdout)
            assert report["verdict"] == "exact", report
            wrong = {name: array + 1 for name, array in outputs.items()}
            np.savez(folder / "out.npz", **wrong)
            some = any(array.size for array in outputs.values())
            assert _judged(what, folder, n, m).exit_code == (1 if some else 0)
