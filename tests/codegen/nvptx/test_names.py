"""Names of NVIDIA's architectures that are refused."""

import pytest

from refcomp.codegen.nvptx.names import check_arch
from refcomp.foundation.errors import UserError


def test_architectures_from_sm_60_on_are_accepted():
    for name in ("sm_60", "sm_75", "sm_90a", "sm_100", "sm_103f"):
        check_arch(name)


@pytest.mark.parametrize("name", ["", "sm_", "sm_9b", "compute_75", "sm75", "sm_80,sm_90"])
def test_other_names_are_refused(name):
    with pytest.raises(UserError, match="is not the name of an NVIDIA architecture"):
        check_arch(name)


def test_architectures_without_atomic_additions_of_f64_are_refused():
    with pytest.raises(UserError, match="sm_53 is older than sm_60") as caught:
        check_arch("sm_53")
    assert "no atomic addition of f64" in caught.value.why
    assert caught.value.remedy == "build for sm_60 or newer"
