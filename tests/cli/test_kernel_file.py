"""The kernel that is meant if none is named."""

import pytest

from refcomp.cli.kernel_file import only_kernel
from refcomp.cli.kernel_listing import KernelListing, ListedKernel
from refcomp.foundation.errors import UserError


def _listing(*names):
    kernels = {name: ListedKernel(name, (), 1024, 0, ()) for name in names}
    return KernelListing("sm_80", "block", "any", kernels)


def test_a_single_kernel_needs_no_name():
    assert only_kernel(_listing("k")) == "k"


def test_several_kernels_are_refused():
    with pytest.raises(UserError, match="which kernel is to run") as caught:
        only_kernel(_listing("b", "a"))
    assert caught.value.why == "there are 2" and caught.value.remedy.endswith("--kernel: a, b")
