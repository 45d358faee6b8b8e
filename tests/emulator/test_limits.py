"""When a launch is given up: limits and what counts towards them."""

import math

import pytest

from refcomp.emulator.limits import USUAL_SECONDS, USUAL_STEPS, Limits, Watchdog
from refcomp.foundation.errors import UserError


def test_the_limits_have_defaults():
    assert (Limits().steps, Limits().seconds) == (USUAL_STEPS, USUAL_SECONDS)


def test_instructions_count_from_when_a_wave_ended():
    watchdog = Watchdog(Limits(10))
    assert not watchdog.count(10)
    watchdog.restart()
    assert not watchdog.count(9)
    assert watchdog.count(2)
    assert watchdog.overrun() == "no wave has ended for 10 instructions"


def test_time_counts_from_when_a_wave_ended():
    now = [100.0]
    watchdog = Watchdog(Limits(10, 2.5, lambda: now[0]))
    now[0] = 102.5
    assert not watchdog.is_late()
    watchdog.restart()
    now[0] = 105.0
    assert not watchdog.is_late()
    now[0] = 105.5
    assert watchdog.is_late()
    assert watchdog.overrun() == "no wave has ended for 2.5 seconds"


def test_who_should_have_ended_is_said():
    watchdog = Watchdog(Limits(steps=10), "thread of any warp")
    assert watchdog.count(11)
    assert watchdog.overrun() == "no thread of any warp has ended for 10 instructions"


@pytest.mark.parametrize("steps", [0, -1, 1.5, True, "9"])
def test_a_limit_of_instructions_is_a_whole_number(steps):
    with pytest.raises(UserError, match=r"cannot be given up after .* steps") as told:
        Limits(steps)
    assert told.value.remedy.startswith("give a whole number from 1 on")


@pytest.mark.parametrize("seconds", [0, -0.5, math.nan, False, None])
def test_a_limit_of_time_is_a_positive_number(seconds):
    with pytest.raises(UserError, match=r"cannot be given up after .* seconds") as told:
        Limits(5, seconds)
    assert told.value.remedy.startswith("give a number above 0")
