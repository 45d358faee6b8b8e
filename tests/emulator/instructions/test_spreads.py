"""Where undefined bits go: held against all values that the undefined bits could have."""

from itertools import product

import numpy as np
import pytest

from refcomp.emulator.instructions import spreads
from refcomp.emulator.instructions.tables.integers import shift_left, shift_right

BITS = 4
_ALL = range(1 << BITS)


def _may_differ(function, values, shadows):
    """Which bits of the result depend on the undefined bits."""
    choices = [
        [v & ~s | c & s for c in {c & s for c in _ALL}]
        for v, s in zip(values, shadows, strict=True)
    ]
    results = [function(*(np.uint8(v) for v in picked)) for picked in product(*choices)]
    mask = np.uint8((1 << BITS) - 1)
    differ = np.uint8(0)
    for result in results:
        differ |= (result ^ results[0]) & mask
    return int(differ)


_ROWS = {
    "and": (spreads.of_and, np.bitwise_and, True),
    "or": (spreads.of_or, np.bitwise_or, True),
    "xor": (spreads.of_xor, np.bitwise_xor, True),
    "andn2": (spreads.of_and_inverted, lambda a, b: a & ~b, True),
    "orn2": (spreads.of_or_inverted, lambda a, b: a | ~b, True),
    "sum": (spreads.of_sum, np.add, False),
    "product": (spreads.of_low_bits, np.multiply, False),
    "shift": (spreads.by_shift(shift_left, 1), shift_left, False),
    "shift right": (spreads.by_shift(shift_right, 1), shift_right, False),
}


@pytest.mark.search
@pytest.mark.parametrize("name", _ROWS)
def test_all_bits_that_may_differ_are_undefined(name):
    spread, function, is_exact = _ROWS[name]
    rng = np.random.default_rng(1)
    with np.errstate(over="ignore"):
        for values, shadows in rng.integers(0, 1 << BITS, (300, 2, 2)):
            told = spread(*np.uint8(shadows), *np.uint8(values))
            told = int(told) & ((1 << BITS) - 1)
            differs = _may_differ(function, values, shadows)
            assert differs & ~told == 0, (values, shadows)
            assert not is_exact or told == differs, (values, shadows)


def test_a_choice_between_equals_is_defined():
    s = np.zeros(1, np.uint32)
    a = np.array([5], np.uint32)
    unknown, chosen = np.array([True]), np.array([False])
    assert spreads.of_choice(s, s, unknown, a, a, chosen) == [0]
    assert spreads.of_choice(s, s, unknown, a, a ^ 6, chosen) == [6]
    assert spreads.of_choice(s, s + 1, ~unknown, a, a, chosen) == [0]


def test_fields_move_and_chains_follow():
    bits = np.array([0xF0], np.uint32)
    moved = spreads.by_field(lambda v, n: v >> n, 2)(bits, bits * 0, bits, bits * 0 + 4)
    assert moved == [0xF]
    both = spreads.Tracked(np.bitwise_and, spreads.of_and)
    either = spreads.Tracked(np.bitwise_or, spreads.of_or)
    chain = spreads.chained(both, either)
    zero = bits * 0
    assert chain(bits, zero, zero, zero, zero, zero) == [0]  # and with 0
    assert chain(bits, zero, zero, zero, ~zero, zero) == [0xF0]
    assert chain(bits, zero, zero, zero, ~zero, bits) == [0]  # or with 1


def test_a_carry_depends_on_all_bits():
    one = np.array([4], np.uint32)
    total, carry = spreads.of_low_bits_and_carry(one, one * 0, one, one)
    assert total == [0xFFFFFFFC] and carry.tolist() == [True]


@pytest.mark.search
@pytest.mark.parametrize(
    ("spread", "function"),
    [
        (spreads.by_signed_shift(shift_right, 1), shift_right),
        (spreads.by_extension(lambda a: a.astype(np.int8) >> np.int8(3)), None),
    ],
)
def test_a_sign_that_is_undefined_spreads(spread, function):
    rng = np.random.default_rng(2)
    for value, shadow, amount in rng.integers(0, 256, (200, 3)):
        amount = np.uint8(amount % 8 if function else 3)
        choices = [value & ~shadow | c & shadow for c in range(256)]
        results = [np.uint8(np.uint8(c).view(np.int8) >> amount.view(np.int8)) for c in choices]
        differs = int(np.bitwise_or.reduce([r ^ results[0] for r in results]))
        rest = (np.uint8(0), np.uint8(value), amount) if function else (np.uint8(value),)
        assert int(spread(np.uint8(shadow), *rest)) == differs
