"""This machine as a device for CUDA kernels: memory, and a name that is no GPU's."""

import numpy as np
import pytest

from refcomp.foundation.artifacts import Binary
from refcomp.runtime.cuda.driver import USUAL_LIMITS
from refcomp.runtime.cuda_on_host.driver import host_device
from refcomp.runtime.device import device_kinds


def test_it_does_not_pretend_to_be_a_gpu():
    device = host_device(Binary(b"", "exe"))
    assert device.exist and "instead of a GPU" in device.name
    assert device.kind not in device_kinds()
    assert device.driver.limits(0) == USUAL_LIMITS
    device.sync()
    with pytest.raises(AssertionError, match="this machine always exists"):
        device.driver.absence()


def test_memory_keeps_what_is_copied_to_it():
    driver = host_device(Binary(b"", "exe")).driver
    memory = driver.allocate(0, 12)
    assert memory.address != driver.allocate(0, 12).address
    numbers = np.array([[1, 2, 3]], np.int32)
    driver.upload(0, numbers, memory)
    found = np.zeros(3, np.int32)
    driver.download(0, memory, found)
    assert list(found) == [1, 2, 3]
