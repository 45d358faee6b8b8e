"""Constant masks leave shorter vectors; all other masks stay."""

import pytest
from hypothesis import given

from refcomp.driver.pipeline import run_passes
from refcomp.ir.buffer import Load
from refcomp.ir.parser import parse_func
from refcomp.ir.printer import print_func
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import Store
from refcomp.passes import shorten_vectors as module
from refcomp.passes.shorten_vectors import shorten_vectors
from tests.passes.docstring_examples import assert_docstring_holds
from tests.passes.kept_meaning import assert_meaning_is_kept
from tests.strategies.funcs import runnable_funcs


def test_docstring():
    assert_docstring_holds(module, shorten_vectors)


def _func(value, mask="ramp(16, 1, 8) < broadcast(LIMIT, 8)", limit=20):
    """Return a store of `value`, in which AT is the index, under a mask."""
    text = f"""
        func f(A: f32[32], H: f16[32], B: f32[32] out, n: i64) {{
          let mask: boolx8 = {mask} {{
            B@[AT] = {value} if mask
          }}
        }}
    """
    text = text.replace("AT", "ramp(16, 1, 8)").replace("LIMIT", str(limit))
    return parse_func(text)


def _body(func):
    return [line.strip() for line in print_func(func).splitlines()[1:-1]]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("A@[AT if mask]", "A@[ramp(16, 1, 4)]"),
        ("A@[ramp(0, 3, 8) if mask]", "A@[ramp(0, 3, 4)]"),
        ("A@[AT]", "A@[ramp(16, 1, 4)]"),
        ("broadcast(A@[3], 8)", "broadcast(A@[3], 4)"),
        ("f32x8(H@[AT if mask])", "f32x4(H@[ramp(16, 1, 4)])"),
        ("exp(A@[AT if mask])", "exp(A@[ramp(16, 1, 4)])"),
        (
            "select(mask, A@[AT if mask], broadcast(1f32, 8))",
            "select(broadcast(true, 4), A@[ramp(16, 1, 4)], broadcast(1.0f32, 4))",
        ),
    ],
)
def test_vectors_of_a_store_are_cut(value, expected):
    assert _body(shorten_vectors(_func(value))) == [f"B@[ramp(16, 1, 4)] = {expected}"]


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (40, ["B@[ramp(16, 1, 8)] = A@[ramp(16, 1, 8)]"]),
        (24, ["B@[ramp(16, 1, 8)] = A@[ramp(16, 1, 8)]"]),
        (23, ["B@[ramp(16, 1, 7)] = A@[ramp(16, 1, 7)]"]),
        (17, ["B@[16] = A@[16]"]),
        (16, []),
        (3, []),
    ],
)
def test_any_number_of_lanes_may_be_left(limit, expected):
    assert _body(shorten_vectors(_func("A@[AT if mask]", limit=limit))) == expected


@pytest.mark.parametrize(
    "mask",
    [
        "ramp(16, 1, 8) < broadcast(n, 8)",
        "ramp(n, 1, 8) < broadcast(20, 8)",
        "ramp(16, 2, 8) < broadcast(20, 8)",
        "ramp(16, 1, 8) > broadcast(20, 8)",
        "ramp(16, 1, 8) < ramp(20, 1, 8)",
        "broadcast(16, 8) < broadcast(20, 8)",
    ],
)
def test_other_masks_stay(mask):
    func = _func("A@[AT if mask]", mask)
    assert shorten_vectors(func) is func


@pytest.mark.parametrize(
    "store",
    [
        "B@[ramp(0, 1, 8)] = A@[ramp(0, 1, 8) if mask]",
        "B@[ramp(0, 1, 8)] = broadcast(1f32, 8) if other",
        "B@[ramp(0, 1, 8)] = select(other, broadcast(1f32, 8), broadcast(2f32, 8)) if mask",
        "for i in range(2) { B@[ramp(i, 1, 8)] = A@[ramp(i, 1, 8) if mask] if mask }",
    ],
)
def test_what_is_no_store_under_the_mask_alone_stays(store):
    text = f"""
        func f(A: f32[32], B: f32[32] out) {{
          let other: boolx8 = ramp(0, 2, 8) < broadcast(9, 8) {{
            let mask: boolx8 = ramp(0, 1, 8) < broadcast(4, 8) {{
              B@[ramp(0, 1, 8)] = A@[ramp(0, 1, 8) if mask] if mask
              {store}
            }}
          }}
        }}
    """
    func = parse_func(text)
    assert shorten_vectors(func) is func


def test_functions_without_masks_stay():
    func = parse_func("func f(A: f32[8] out) { A@[ramp(0, 1, 8)] = broadcast(1f32, 8) }")
    assert shorten_vectors(func) is func


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize(("first", "limit"), [(0, 8), (3, 4), (8, 3), (16, 22), (24, 40)])
def test_meaning_is_kept(first, limit, stride):
    text = f"""
        func f(A: f32[64], B: f32[64] out) {{
          for i in range(64) {{
            B@[i] = -1f32
          }}
          let mask: boolx8 = ramp({first}, 1, 8) < broadcast({limit}, 8) {{
            B@[ramp({first}, 1, 8)] = A@[ramp({first}, {stride}, 8) if mask] * 2f32x8 if mask
            B@[ramp(32, 1, 8)] = B@[ramp({first}, 1, 8)] if mask
          }}
        }}
    """
    func = parse_func(text.replace("2f32x8", "broadcast(2f32, 8)"))
    assert shorten_vectors(func) is not func
    assert_meaning_is_kept(shorten_vectors, func, {}, "flat")


@pytest.mark.search
@given(runnable_funcs("flat"))
def test_functions_of_all_kinds(drawn):
    assert_meaning_is_kept(shorten_vectors, *drawn, "flat")


def test_a_tile_at_a_border_has_no_masks_on_the_host():
    text = """
        func f(A: f32[20], B: f32[20] out) {
          for i in range(2) {
            for j in range(2) unrolled {
              for k in range(8) vectorized {
                if (i * 16 + j * 8 + k < 20) {
                  B[i * 16 + j * 8 + k] = A[i * 16 + j * 8 + k] + 1f32
                }
              }
            }
          }
        }
    """
    func = run_passes(parse_func(text), "llvm")
    accesses = [node for node in walk(func.body) if isinstance(node, Load | Store)]
    assert accesses
    assert all(access.predicate is None for access in accesses)
    assert {access.index.dtype.lanes for access in accesses} == {4, 8}
