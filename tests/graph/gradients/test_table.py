"""The table covers all operators, and each kind is what it says: compared, zero, or refused.

By day 3 samples of an operator are compared, with --nightly 6.
"""

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError
from refcomp.graph.gradients.rules import RULES
from refcomp.graph.gradients.table import NONE, ZERO, Differentiability, differentiability
from refcomp.topi.draws import Draws
from refcomp.topi.operator import find_operator, operator_names
from refcomp.topi.sources import OPERATOR_HOMES
from tests.graph.gradients.differences import by_place, compare, graph_of, smooth_sample
from tests.graph.gradients.torch_cases import check_torch, torch_cases
from tests.samples import sample_count

_SEEDS = range(sample_count(by_day=3, nightly=6))
_MOST_SEEDS = 40  # of operators whose samples are often empty or of integers
_VJP = [name for name in OPERATOR_HOMES if differentiability(name).kind == "vjp"]
# Operators whose inputs are truth values: no small change can be made.
_OF_TRUTH_VALUES = {"all", "any", "logical_and", "logical_not", "logical_or", "logical_xor"}
_SMOOTH_INPUTS = sorted(set(ZERO) & set(OPERATOR_HOMES) - _OF_TRUTH_VALUES)


def test_the_table_names_operators_once() -> None:
    known = set(operator_names())
    assert set(ZERO) <= known
    assert set(NONE) <= known
    assert set(RULES) <= known
    assert not set(ZERO) & set(NONE)
    assert not (set(ZERO) | set(NONE)) & set(RULES)


def test_an_operator_from_outside_is_left_to_vjp() -> None:
    assert differentiability("my_operator").kind is Differentiability.VJP


@pytest.mark.search
@pytest.mark.parametrize("name", _VJP)
def test_vjp_agrees_with_differences(name):
    found = []
    for seed in range(_MOST_SEEDS):
        found.append(compare(name, seed))
        if seed + 1 >= len(_SEEDS) and by_place(found):
            break
    faults = [fault for one in found for fault in one.faults]
    assert not faults, "\n".join(faults)
    assert by_place(found), f"{name}: no element was compared"


_TORCH = sorted({case.operator for case in torch_cases()} - set(RULES))


@pytest.mark.parametrize("name", _TORCH)
def test_vjp_agrees_with_torch(name):
    assert differentiability(name).kind == "vjp"
    assert check_torch([name]) >= 1


def test_torch_computed_gradients_of_many_operators() -> None:
    assert len({case.operator for case in torch_cases()}) > 100
    assert len(_TORCH) > 35


@pytest.mark.parametrize("name", _SMOOTH_INPUTS)
def test_zero_agrees_with_differences(name):
    found = [compare(name, seed) for seed in range(10)]
    faults = [fault for one in found for fault in one.faults]
    assert not faults, "\n".join(faults)
    assert by_place(found), f"{name}: no element was compared"


@pytest.mark.parametrize("name", sorted(set(NONE) & set(OPERATOR_HOMES)))
def test_none_is_refused_or_has_no_float_to_differentiate_by(name):
    refused = 0
    floats = 0
    for seed in _SEEDS:
        graph, _ = graph_of(name, find_operator(name).sample(Draws(seed)))
        wrt = [value.name for value in graph.inputs if value.dtype.is_float]
        floats += bool(wrt)
        for output in graph.outputs if wrt else ():
            reads = [value.name for node in graph.nodes[:1] for value in node.reads]
            with pytest.raises(UserError, match="no gradient passes the node") as info:
                rc.graph.gradient(graph, wrt=[one for one in wrt if one in reads], head=output.name)
            assert info.value.why == NONE[name]
            refused += 1
    assert refused >= floats


def test_most_operators_are_differentiable() -> None:
    kinds = [differentiability(name).kind for name in OPERATOR_HOMES]
    assert kinds.count(Differentiability.RULE) == len(RULES)
    assert kinds.count(Differentiability.RULE) + kinds.count(Differentiability.VJP) > 240


def test_samples_are_smooth_and_in_f64() -> None:
    sample = smooth_sample("log", 3)
    (operand,) = sample.operands
    assert operand.dtype == np.float64
    assert (operand > 0).all()
