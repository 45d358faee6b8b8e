"""Architectures are compared by capability, and a refusal names the least one that would do."""

import pytest

from refcomp.foundation.compute_capability import archs_of, capability_of, check_capability
from refcomp.foundation.errors import Unsupported, UserError


def test_the_last_digit_is_the_minor_version() -> None:
    assert capability_of("sm_75") == (7, 5)
    assert capability_of("sm_90a") == (9, 0)
    assert capability_of("sm_120") == (12, 0)
    assert capability_of("sm_89") < capability_of("sm_90") < capability_of("sm_100")


@pytest.mark.parametrize(
    "arch", ["", "90", "sm_9", "sm_90b", "sm90", "compute_90", "sm_09", "SM_90"]
)
def test_other_words_are_no_architectures(arch: str) -> None:
    with pytest.raises(UserError, match="is not the name of an NVIDIA architecture") as caught:
        capability_of(arch)
    assert "sm_90" in str(caught.value.remedy)


def test_several_architectures_stand_between_commas() -> None:
    assert archs_of("sm_80, sm_90,sm_80") == ("sm_80", "sm_90")
    with pytest.raises(UserError, match="'' is not the name"):
        archs_of("sm_80,")


def test_an_old_architecture_is_refused_by_what_needs_a_newer_one() -> None:
    check_capability("sm_80,sm_90", "sm_80", "matrix products of tf32")
    with pytest.raises(Unsupported) as caught:
        check_capability("sm_90,sm_75", "sm_80", "matrix products of tf32")
    text = str(caught.value)
    assert "matrix products of tf32 need sm_80 or newer, and the target is for sm_75" in text
    assert "GPUs of sm_75 have no such instruction" in text
    assert "build with -arch=sm_80 or newer, or schedule without matrix products of tf32" in text
