"""The equations of einsum: which axis of which operand has which label.

The axes for which an ellipsis stands have the labels `.0`, `.1`, ..., counted from the last one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from refcomp.foundation.errors import UserError

_ELLIPSIS = "..."


def parse_equation(
    equation: str, ranks: Sequence[int]
) -> tuple[list[list[str]], list[str]]:
    """Return the labels of the axes of each operand, and those of the result.

    Args:
        equation: such as `"ij,jk->ik"`.
        ranks: the rank of each operand.

    Raises:
        UserError: the equation is ill-formed or does not fit the ranks.

    Example::

        >>> from refcomp.topi.contraction.einsum_equation import parse_equation
        >>> parse_equation("...i,i", (3, 1))
        ([['.1', '.0', 'i'], ['i']], ['.1', '.0'])
    """
    text = equation.replace(" ", "")
    given, arrow, wanted = text.partition("->")
    parts = given.split(",")
    if len(parts) != len(ranks):
        raise _refused(
            equation,
            f"it names {len(parts)} operands, and there are {len(ranks)}",
            "separate the axes of each operand by commas",
        )
    pairs = zip(parts, ranks, strict=True)
    terms = [_labels(part, rank, equation) for part, rank in pairs]
    used = [label for labels in terms for label in labels]
    outer = sorted({label for label in used if label[0] == "."}, key=_place)
    if not arrow:
        counts = Counter(used)
        once = [label for label in counts if counts[label] == 1 and label[0] != "."]
        return terms, [*outer, *sorted(once)]
    result = _result(wanted, outer, equation)
    for label in result:
        if label not in used:
            raise _refused(
                equation,
                f"the result has the axis {label!r}, which no operand has",
                "name only axes of the operands behind ->",
            )
    return terms, result


def _place(label: str) -> int:
    """Return a key that sorts the axes of an ellipsis from the first to the last."""
    return -int(label[1:])


def _labels(part: str, rank: int, equation: str) -> list[str]:
    before, dots, after = part.partition(_ELLIPSIS)
    _check_letters(before + after, equation)
    letters = len(before) + len(after)
    if letters > rank or (letters < rank and not dots):
        raise _refused(
            equation,
            f"{part!r} names {letters} axes of an operand of {rank} dimensions",
            "name each axis, or write ... for further ones",
        )
    further = [f".{place}" for place in reversed(range(rank - letters))]
    return [*before, *further, *after]


def _result(wanted: str, outer: Sequence[str], equation: str) -> list[str]:
    before, dots, after = wanted.partition(_ELLIPSIS)
    _check_letters(before + after, equation)
    twice = [label for label, count in Counter(before + after).items() if count > 1]
    if twice:
        raise _refused(
            equation,
            f"the result has the axis {twice[0]!r} twice",
            "name each axis of the result once",
        )
    if outer and not dots:
        raise _refused(
            equation,
            "the result has no place for the axes of ...",
            "write ... behind ->, too",
        )
    return [*before, *outer, *after]


def _check_letters(letters: str, equation: str) -> None:
    for letter in letters:
        if not (letter.isascii() and letter.isalpha()):
            raise _refused(
                equation,
                f"{letter!r} is not the name of an axis",
                "use letters, commas, ->, and ... at most once for each operand",
            )


def _refused(equation: str, why: str, remedy: str) -> UserError:
    return UserError(f"einsum cannot read {equation!r}", why=why, remedy=remedy)
