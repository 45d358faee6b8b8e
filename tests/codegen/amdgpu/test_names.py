"""Names of GPUs: what they tell, and those that are none."""

import pytest

from refcomp.codegen.amdgpu.names import IsaVersion, isa_version, wavefront_size
from refcomp.foundation.errors import UserError


def test_names_of_gpus():
    assert isa_version("gfx90a") == IsaVersion(9, 0, 10)
    assert isa_version("gfx942") == IsaVersion(9, 4, 2)
    assert isa_version("gfx1100") == IsaVersion(11, 0, 0)
    assert [wavefront_size(name) for name in ("gfx906", "gfx1030")] == [64, 32]
    for name in ("gfx9", "sm_80", "gfx90a:xnack+", "gfx11-generic"):
        with pytest.raises(UserError, match="is not the name of an AMD GPU") as caught:
            isa_version(name)
        assert "use a name such as gfx90a" in str(caught.value)
