"""Each kind of mutation on a program where it applies, and what is drawn."""

import random

import pytest

from refcomp.ir.func import PrimFunc
from refcomp.ir.parser import parse_func
from refcomp.ir.printer import print_func
from refcomp.mutate.mutations import OPERATORS, draw, is_polynomial, mutations_of

_NESTED = """
func f(A: f32[4, 5], B: f32[4, 5] out) {
  for i in range(4) {
    for j in range(5) {
      if (i + 1 < 4) {
        B[i, j] = select(A[i, j] > 0f32, A[i, j] - 1.2345f32, A[i + 1, j] / 3f32)
      }
    }
  }
}
"""
_KERNEL = """
func f(A: f32[4], B: f32[4] out) {
  for t in range(4) threadIdx.x {
    alloc S: f32[4] shared {
      S[t] = A[t]
      barrier
      B[t] = S[3 - t]
    }
  }
}
"""
_FLAT = """
func f(A: f32[8], B: f32[8] out) {
  B@[ramp(0, 1, 4)] = A@[ramp(0, 1, 4)] if ramp(0, 1, 4) < broadcast(3, 4)
}
"""


def _mutated(text: str, kind: str) -> list[str]:
    func = parse_func(text)
    found = [m.apply(func) for m in mutations_of(func) if m.operator == kind]
    assert all(isinstance(mutant, PrimFunc) for mutant in found)
    assert func.params is found[0].params
    return [print_func(mutant) for mutant in found]


@pytest.mark.parametrize(
    ("kind", "changed"),
    [
        ("operator flipped", "if (i - 1 < 4) {"),
        ("operator flipped", "if (i + 1 >= 4) {"),
        ("operator flipped", "A[i + 1, j] * 3.0f32"),
        ("comparison off by one", "if (i + 1 <= 4) {"),
        ("operands exchanged", "3.0f32 / A[i + 1, j]"),
        ("branches exchanged", "select(A[i, j] > 0.0f32, A[i + 1, j] / 3.0f32, A[i, j] - "),
        ("constant shifted", "if (i + 2 < 4) {"),
        ("constant printed short", "A[i, j] - 1.23f32"),
        ("constant printed short", "A[i, j] > 1.0f32"),
        ("bound too large", "for i in range(4 + 1) {"),
        ("bound too small", "for j in range(5 - 1) {"),
        ("begins too late", "for i in range(0 + 1, extent=4) {"),
        ("guard inverted", "if (not i + 1 < 4) {"),
        ("indices swapped", "B[j, i] = "),
        ("index shifted", "B[i, j + 1] = "),
        ("kept in f16", "B[i, j] = f32(f16(select("),
    ],
)
def test_what_is_changed(kind: str, changed: str) -> None:
    texts = _mutated(_NESTED, kind)
    assert any(changed in text for text in texts), texts
    assert all(text != print_func(parse_func(_NESTED)) for text in texts)


def test_what_is_dropped() -> None:
    (unguarded,) = _mutated(_NESTED, "guard dropped")
    assert "if (" not in unguarded
    (unstored,) = _mutated(_NESTED, "store dropped")
    assert "B[i, j] = " not in unstored
    (unsafe,) = _mutated(_KERNEL, "barrier dropped")
    assert "barrier" not in unsafe


def test_masks_and_offsets() -> None:
    (unmasked,) = _mutated(_FLAT, "mask dropped")
    assert " if " not in unmasked
    assert len(_mutated(_FLAT, "offset shifted")) == 2


def test_bound_loops_keep_their_beginning() -> None:
    assert not [m for m in mutations_of(parse_func(_KERNEL)) if m.operator == "begins too late"]


def test_every_kind_applies_somewhere() -> None:
    texts = (_NESTED, _KERNEL, _FLAT)
    assert {m.operator for text in texts for m in mutations_of(parse_func(text))} == set(OPERATORS)


def test_what_only_integers_decide() -> None:
    for mutation in mutations_of(parse_func(_NESTED)):
        if mutation.operator in ("bound too small", "guard dropped"):
            assert mutation.on_indices
        if mutation.operator in ("branches exchanged", "constant printed short", "store dropped"):
            assert not mutation.on_indices


def test_kinds_are_drawn_in_turn_and_by_the_seed() -> None:
    everything = list(mutations_of(parse_func(_NESTED)))
    drawn = draw(everything, 6, random.Random(1))
    assert len(drawn) == len({m.operator for m in drawn}) == 6
    assert drawn == draw(everything, 6, random.Random(1))
    assert len(draw(everything, 10**9, random.Random(1))) == len(everything)


def test_what_hangs_on_data() -> None:
    assert is_polynomial(parse_func(_KERNEL)) and is_polynomial(parse_func(_FLAT))
    assert not is_polynomial(parse_func(_NESTED))
    of_index = _NESTED.replace("A[i, j] > 0f32", "i > 0")
    assert is_polynomial(parse_func(of_index))
