"""Values as C prints them. What is expected was printed by the printf of glibc."""

import pytest

from refcomp.emulator.ptx.execution.printed_values import PrintFormat


@pytest.mark.parametrize(
    ("form", "value", "text"),
    [
        (("", 0, None, "d"), -7, "-7"),
        (("0", 5, None, "d"), -7, "-0007"),
        (("0", 5, 3, "d"), 7, "  007"),
        (("+", 0, None, "d"), 7, "+7"),
        (("+", 0, None, "u"), 7, "7"),
        ((" ", 0, None, "i"), 7, " 7"),
        (("", 0, 0, "d"), 0, ""),
        (("-", 5, None, "u"), 7, "7    "),
        (("", -5, None, "u"), 7, "7    "),
        (("#", 0, None, "o"), 8, "010"),
        (("#", 0, None, "o"), 0, "0"),
        (("#", 0, None, "x"), 0, "0"),
        (("#0", 6, None, "x"), 255, "0x00ff"),
        (("#", 0, None, "X"), 255, "0XFF"),
        (("", 8, 3, "f"), 2.5, "   2.500"),
        (("0", 8, 3, "f"), -2.5, "-002.500"),
        (("", 0, -1, "f"), 2.5, "2.500000"),
        (("0", 5, None, "f"), float("inf"), "  inf"),
        (("", 0, None, "F"), float("-inf"), "-INF"),
        (("0", 5, None, "e"), float("nan"), "  nan"),
        (("+", 0, 1, "e"), 1.5, "+1.5e+00"),
        (("", 0, None, "f"), -0.0, "-0.000000"),
        (("#", 0, 0, "f"), 2.0, "2."),
        (("", 6, 2, "s"), "word", "    wo"),
        (("-", 3, None, "c"), 65, "A  "),
        (("", 8, None, "p"), 4096, "  0x1000"),
    ],
)
def test_value_is_printed_as_by_c(form, value, text):
    assert PrintFormat(*form).text(value) == text


def test_width_and_precision_are_limited():
    assert len(PrintFormat("", 10**8, None, "d").text(5)) == 4096
    assert len(PrintFormat("", 0, 10**8, "d").text(5)) == 4096
