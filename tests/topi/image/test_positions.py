"""Positions as exact fractions: by hand, and against their definition as fractions."""

from fractions import Fraction

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError
from refcomp.topi.image.positions import as_fraction, positions_of, require_choice


def evaluated(function, count):
    table = rc.compute((count,), lambda x: function(x).astype("int64"), name="table")
    return rc.oracle.evaluate([table], {})[0].tolist()


@pytest.mark.parametrize(
    ("coordinates", "size", "count", "wanted"),
    [
        ("half_pixel", 4, 2, [Fraction(1, 2), Fraction(5, 2)]),
        ("pytorch_half_pixel", 4, 1, [0]),
        ("align_corners", 3, 5, [0, Fraction(1, 2), 1, Fraction(3, 2), 2]),
        ("align_corners", 3, 1, [0]),
        ("asymmetric", 2, 4, [0, Fraction(1, 2), 1, Fraction(3, 2)]),
        ("tf_half_pixel_for_nn", 2, 2, [Fraction(1, 2), Fraction(3, 2)]),
    ],
)
def test_positions_by_hand(coordinates, size, count, wanted):
    found = positions_of(coordinates, size=size, count=count, scale=Fraction(count, size))
    numerators = [found.step * x + found.start for x in range(count)]
    assert [Fraction(n, found.divisor) for n in numerators] == wanted
    assert evaluated(found.floor, count) == [p.__floor__() for p in map(Fraction, wanted)]
    rounded = evaluated(lambda x: found.nearest(x, "ceil"), count)
    assert rounded == [min(p.__ceil__(), size - 1) for p in map(Fraction, wanted)]


def test_cropping_goes_from_begin_to_end():
    scale = Fraction(1)
    crop = {"size": 5, "scale": scale, "begin": 0.25, "end": 1.5}
    several = positions_of("tf_crop_and_resize", count=3, **crop)
    assert Fraction(several.start, several.divisor) == 1
    assert evaluated(several.is_inside, 3) == [1, 1, 0]
    one = positions_of("tf_crop_and_resize", count=1, **crop)
    assert Fraction(one.start, one.divisor) == Fraction(7, 2)


def test_a_fractional_image_is_centred_by_half_pixel_symmetric():
    found = positions_of("half_pixel_symmetric", size=3, count=4, scale=Fraction(3, 2))
    first = Fraction(found.start, found.divisor)
    last = first + Fraction(3 * found.step, found.divisor)
    assert first + last == 2  # as far from the first element as from the last one


def test_scales_are_read_as_fractions():
    assert as_fraction(float(np.float32(1 / 3))) == Fraction(1, 3)
    with pytest.raises(UserError, match="resize does not know the mode 'cubik'") as info:
        require_choice("cubik", ("linear", "cubic"), "resize", "mode")
    assert "did you mean cubic?" in info.value.remedy
