"""Estimates, computed by hand from counts and figures."""

from dataclasses import replace

import pytest

from refcomp.profile.bound import bound_of
from refcomp.profile.cards import CARDS
from tests.profile.estimated import CARD, counted_kernel


@pytest.mark.parametrize(("groups", "units"), [(4, 4), (10, 10), (11, 5.5), (20, 10)])
def test_groups_come_in_rounds(groups, units):
    kernel = counted_kernel(("v_mov_b32 v0, v1", 1, None), groups=groups)
    assert bound_of(kernel, CARD).units == units


@pytest.mark.parametrize(
    ("groups", "waves", "simds"), [(10, 4, 40), (10, 1, 10), (20, 1, 20), (50, 1, 25), (10, 6, 30)]
)
def test_waves_of_a_group_share_the_simds_of_a_unit(groups, waves, simds):
    row = ("v_fma_f32 v0, v1, v2, v3", 1000, None)
    bound = bound_of(counted_kernel(row, groups=groups, waves=waves), CARD)
    assert bound.simds == simds
    assert bound.seconds["VALU"] == pytest.approx(1000 * 4 / simds * 1e-9)
    assert bound.useful == pytest.approx(1) and bound.peak == pytest.approx(simds / 40)


@pytest.mark.parametrize(("is_on_pairs", "units", "simds"), [(True, 10, 20), (False, 5, 10)])
def test_groups_on_pairs_of_units_have_the_simds_of_both(is_on_pairs, units, simds):
    card = replace(CARDS["RX 7900 XTX"], units=10)
    kernel = counted_kernel(("v_mov_b32 v0, v1", 1, None), groups=5, is_on_pairs=is_on_pairs)
    bound = bound_of(kernel, card)
    assert (bound.units, bound.simds) == (units, simds)


def test_one_of_several_launches():
    rows = (("v_fma_f32 v0, v1, v2, v3", 1000, None),)
    once = bound_of(counted_kernel(*rows), CARD)
    twice = bound_of(
        counted_kernel(("v_fma_f32 v0, v1, v2, v3", 2000, None), groups=20, launches=2), CARD
    )
    assert once.seconds == twice.seconds and once.peak == twice.peak


def test_it_says_of_itself_what_it_is():
    bound = bound_of(counted_kernel(("v_fma_f32 v0, v1, v2, v3", 100_000, None)), CARD)
    assert str(bound) == "estimate, not measured: 10.00 microseconds at least on MI300X, by VALU"


def test_of_nothing_there_is_no_estimate():
    assert bound_of(counted_kernel(groups=0, launches=1), CARD) is None
