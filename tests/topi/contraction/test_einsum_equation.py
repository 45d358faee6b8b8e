"""The equations of einsum: labels, and the message of each refusal."""

import pytest

from refcomp.foundation.errors import UserError
from refcomp.topi.contraction.einsum_equation import parse_equation


@pytest.mark.parametrize(
    ("equation", "ranks", "terms", "result"),
    [
        ("ij,jk->ik", (2, 2), ["ij", "jk"], "ik"),
        ("ba", (2,), ["ba"], "ab"),
        ("ii", (2,), ["ii"], ""),
        (" i j -> j i ", (2,), ["ij"], "ji"),
        (",", (0, 0), ["", ""], ""),
    ],
)
def test_letters_are_labels(equation, ranks, terms, result):
    assert parse_equation(equation, ranks) == ([[*term] for term in terms], [*result])


def test_an_ellipsis_counts_from_the_end():
    terms, result = parse_equation("i...,...->...i", (3, 1))
    assert terms == [["i", ".1", ".0"], [".0"]] and result == [".1", ".0", "i"]


@pytest.mark.parametrize(
    ("equation", "ranks", "message"),
    [
        ("i,j->ij", (1,), "it names 2 operands, and there are 1"),
        ("ij->i", (3,), "'ij' names 2 axes of an operand of 3 dimensions"),
        ("ij->i", (1,), "'ij' names 2 axes of an operand of 1 dimensions"),
        ("ij->ii", (2,), "the result has the axis 'i' twice"),
        ("ij->k", (2,), "the result has the axis 'k', which no operand has"),
        ("...i->i", (2,), "the result has no place for the axes of ..."),
        ("i1->i", (2,), "'1' is not the name of an axis"),
        ("...i...->i", (2,), "'[.]' is not the name of an axis"),
        ("i->j->k", (1,), "'-' is not the name of an axis"),
    ],
)
def test_ill_formed_equations_are_refused(equation, ranks, message):
    with pytest.raises(UserError, match=message):
        parse_equation(equation, ranks)
