"""The estimates of convolutions: near what was measured, and on the right side of a choice."""

import pytest

from refcomp.topi.schedules.convolution_cost import (
    ConvolutionSize,
    direct_cycles,
    winograd_cycles,
    winograd_gain,
)
from refcomp.topi.schedules.vector_registers import AVX2, AVX512

# A Zen 3 at 3.2 GHz: channels, extent, milliseconds of direct sums and of Winograd's filtering.
_MEASURED = [
    (16, 56, 0.157, 0.116),
    (32, 56, 0.587, 0.364),
    (64, 56, 2.367, 1.267),
    (128, 28, 2.347, 1.281),
    (256, 14, 2.435, 1.323),
    (512, 7, 3.154, 2.179),
]


@pytest.mark.parametrize(("channels", "extent", "direct", "winograd"), _MEASURED)
def test_estimates_are_near_the_times_of_a_core(channels, extent, direct, winograd) -> None:
    size = ConvolutionSize(channels, channels, extent, extent)
    assert direct_cycles(size, AVX2) == pytest.approx(direct * 3.2e6, rel=0.2)
    assert winograd_cycles(size, AVX2) == pytest.approx(winograd * 3.2e6, rel=0.2)


def test_wider_vectors_leave_the_weights_to_be_read() -> None:
    size = ConvolutionSize(512, 512, 7, 7)
    assert winograd_gain(size, AVX512) < winograd_gain(size, AVX2)
    assert winograd_gain(size, AVX512) < 1.05


def test_half_tiles_and_few_channels_gain_little() -> None:
    assert ConvolutionSize(64, 64, 7, 8).tiles == 16
    even, odd = ConvolutionSize(64, 64, 4, 4), ConvolutionSize(64, 64, 3, 3)
    assert winograd_gain(odd, AVX2) < winograd_gain(even, AVX2)
    assert winograd_gain(ConvolutionSize(8, 8, 56, 56), AVX2) < 1


def test_elements_of_8_bytes_fill_twice_as_many_vectors() -> None:
    size = ConvolutionSize(64, 64, 56, 56)
    wide = ConvolutionSize(64, 64, 56, 56, element_bytes=8)
    assert winograd_cycles(wide, AVX2) == 2 * winograd_cycles(size, AVX2)
