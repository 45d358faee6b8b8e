"""Code objects: what is said of files that are none. `test_emulate.py` runs their kernels."""

import pytest

from refcomp.cli.amd_kernels import AmdKernels
from refcomp.foundation.errors import UserError
from tests.emulator.kernels import compiled_code


def test_a_file_that_is_no_code_object_is_named():
    with pytest.raises(UserError, match="not a code object for AMD GPUs") as caught:
        AmdKernels(b"text", "k.hsaco")
    assert caught.value.where == "k.hsaco"


@pytest.mark.rocm
def test_kernels_are_found_by_name():
    kernels = AmdKernels(compiled_code("vector_add"), "k.hsaco")
    assert kernels.find("vector_add") is kernels.listing.kernels["vector_add"]
    assert (kernels.listing.gpu, kernels.listing.group) == ("gfx942", "group")
    with pytest.raises(UserError, match="did you mean vector_add"):
        kernels.find("vector_ad")
