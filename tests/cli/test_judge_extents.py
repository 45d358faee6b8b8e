"""`refcomp judge` on shapes such as `n - 2`: sizes follow from all arrays that are given."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

Cli = Callable[..., Result]


def _saved(path: Path, **arrays: np.ndarray) -> Path:
    np.savez(path, **arrays)
    return path


_COMPOUND = """
import refcomp as rc
n, m = rc.var("n"), rc.var("m")

def stencil():
    a = rc.placeholder((n,), name="A")
    b = rc.compute((n - 2,), lambda i: a[i] + a[i + 1] + a[i + 2], name="B")
    return rc.create_schedule(b), [a, b]

def pairs():
    a = rc.placeholder((2 * n,), name="A")
    b = rc.compute((n,), lambda i: a[2 * i] + a[2 * i + 1], name="B")
    return rc.create_schedule(b), [a, b]

def flat():
    a = rc.placeholder((n, m), name="A")
    b = rc.compute((n * m,), lambda i: a[i // m, i % m], name="B")
    return rc.create_schedule(b), [a, b]

def halves():
    a = rc.placeholder((n // 2,), name="A")
    b = rc.compute((n // 2,), lambda i: a[i] * 2, name="B")
    return rc.create_schedule(b), [a, b]

def counts():
    b = rc.compute((n - 1,), lambda i: i * 2, name="B")
    return rc.create_schedule(b), [b]

def twins():
    p, q = rc.var("n"), rc.var("n")
    a = rc.placeholder((p,), name="A")
    b = rc.compute((p, q), lambda i, j: a[i], name="B")
    return rc.create_schedule(b), [a, b]

def sized():
    a = rc.placeholder((n - 2,), name="A")
    b = rc.compute((n - 2,), lambda i: a[i] + 1, name="B")
    return rc.create_schedule(b), [n, a, b]

def scanned():
    a = rc.placeholder((n, 2), name="A")
    s = rc.placeholder((n, 2), name="S")
    init = rc.compute((1, 2), lambda _, i: a[0, i], name="init")
    update = rc.compute((n, 2), lambda t, i: s[t - 1, i] + a[t, i], name="update")
    return (lambda r: (rc.create_schedule(r), [a, r]))(
        rc.scan(init, update, s, inputs=[a], name="R")
    )
"""
_A = np.arange(1, 11, dtype=np.float32)


@pytest.fixture
def compound(tmp_path: Path) -> Path:
    path = tmp_path / "compound.py"
    path.write_text(_COMPOUND)
    return path


@pytest.mark.search
@pytest.mark.parametrize(
    ("name", "a", "b", "sizes"),
    [
        ("stencil", _A, _A[:-2] + _A[1:-1] + _A[2:], {"n": 10}),
        ("stencil", _A[:1], _A[:0], {"n": 1}),
        ("pairs", _A, _A[::2] + _A[1::2], {"n": 5}),
        ("flat", _A.reshape(2, 5), _A, {"n": 2, "m": 5}),
        ("twins", _A[:2], _A[:2].repeat(3).reshape(2, 3), {"n": 2, "another n": 3}),
    ],
)
@pytest.mark.parametrize("source", ["te", "text"])
def test_sizes_follow_from_compound_extents(
    cli: Cli, compound: Path, tmp_path: Path, name: str, a, b, sizes: dict[str, int], source: str
) -> None:
    given, results = _saved(tmp_path / "in.npz", A=a), _saved(tmp_path / "out.npz", B=b)
    what = f"{compound}:{name}"
    if source == "text":
        path = tmp_path / "lowered.txt"
        path.write_text(cli("lower", what).stdout)
        what = str(path)
    right = cli("judge", "--json", what, "-i", given, "-r", results)
    assert right.exit_code == 0, right.stderr
    report = json.loads(right.stdout)
    assert report["verdict"] == "exact"
    assert list(report["sizes"].values()) == list(sizes.values())
    if b.size:
        _saved(results, B=b + 1)
        assert cli("judge", what, "-i", given, "-r", results).exit_code == 1


def test_a_size_may_be_an_argument(cli: Cli, compound: Path, tmp_path: Path) -> None:
    given, results = _saved(tmp_path / "in.npz", A=_A), _saved(tmp_path / "out.npz", B=_A + 1)
    result = cli("judge", "--json", f"{compound}:sized", "-i", given, "-r", results)
    report = json.loads(result.stdout)
    assert (report["verdict"], report["sizes"]) == ("exact", {"n": 12})


def test_a_size_that_only_an_option_gives(cli: Cli, compound: Path, tmp_path: Path) -> None:
    what = f"{compound}:halves"
    given, results = _saved(tmp_path / "in.npz", A=_A), _saved(tmp_path / "out.npz", B=2 * _A)
    (tmp_path / "text.txt").write_text(cli("lower", what).stdout)
    for reference in (what, tmp_path / "text.txt"):
        asked = cli("judge", reference, "-i", given, "-r", results)
        assert (asked.exit_code, asked.stderr) == (
            4,
            "error: the size of n is not known\n"
            "  where: (n // 2) is 10 in A\n"
            "  why: no array that is given has one extent that determines it\n"
            "  what to do: give it: --symbol n=10\n",
        )
        call = ("judge", "--json", reference, "-i", given, "-r", results)
        assert json.loads(cli(*call, "--symbol", "n=21").stdout)["verdict"] == "exact"
        wrong = cli(*call, "--symbol", "n=18").stderr
        assert "array A has shape (10,), expected (n // 2,) = (9,)" in wrong


def test_results_alone_determine_sizes(cli: Cli, compound: Path, tmp_path: Path) -> None:
    results = _saved(tmp_path / "out.npz", B=np.arange(0, 8, 2, dtype=np.int64))
    report = json.loads(cli("judge", "--json", f"{compound}:counts", "-r", results).stdout)
    assert (report["verdict"], report["sizes"]) == ("exact", {"n": 5})


@pytest.mark.tools
def test_what_a_command_writes_determines_the_sizes_of_results(
    cli: Cli, compound: Path, tmp_path: Path
) -> None:
    backend = tmp_path / "twins.py"
    backend.write_text(
        "import sys, numpy as np\n"
        "a = np.load(sys.argv[1])['A']\n"
        "np.savez(sys.argv[2], B=np.stack([a] * 3, axis=1))\n"
    )
    call = ("--", sys.executable, backend, "{inputs}", "{results}")
    result = cli("judge", "--json", f"{compound}:twins", "--symbol", "n=4", *call)
    report = json.loads(result.stdout)
    assert (report["verdict"], report["sizes"]) == ("exact", {"n": 4, "n_2": 3})
    wrong = cli("judge", f"{compound}:twins", "--symbol", "n=4", "--symbol", "n_2=5", *call)
    assert "array B has shape (4, 3), expected (n, n_2) = (4, 5)" in wrong.stderr
    assert f"in what {sys.executable} wrote\n" in wrong.stderr
    assert "why: n is 4 by --symbol; n_2 is 5 by --symbol" in wrong.stderr
    unknown = cli("judge", f"{compound}:twins", "--symbol", "k=4", *call)
    assert "unknown symbolic dimension 'k'\n  what to do: symbols: n, n_2" in unknown.stderr


def test_the_result_of_a_scan_is_judged(cli: Cli, compound: Path, tmp_path: Path) -> None:
    a = _A.reshape(5, 2)
    given = _saved(tmp_path / "in.npz", A=a)
    results = _saved(tmp_path / "out.npz", R=a.cumsum(axis=0))
    call = ("judge", "--json", f"{compound}:scanned", "-i", given, "-r", results)
    report = json.loads(cli(*call).stdout)
    assert [entry["name"] for entry in report["results"]] == ["R"]
    assert report["verdict"] == "exact"
    _saved(results, R=a)
    assert json.loads(cli(*call).stdout)["verdict"] == "wrong"
