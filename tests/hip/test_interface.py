"""One C signature for a function, whether AMD's library has it or Python offers it."""

import ctypes

import pytest

from refcomp.hip import api as hip_api
from refcomp.hip import interface as hip_interface
from refcomp.hip.interface import function_names, offered_by, parameters


class Offered:
    def __init__(self) -> None:
        self.seen: list[object] = []

    def hipMalloc(self, memory, size):
        memory[0] = 0x1000 + size
        return 0

    def hipFree(self, memory):
        self.seen.append(memory)
        return 17

    def hipSetDevice(self, device):
        raise LookupError(f"device {device}")

    def hipDeviceGetName(self, name, size, device):
        ctypes.memmove(name, b"one\0", 4)
        return 0

    def hipModuleGetFunction(self, function, module, name):
        self.seen.append((module, name))
        function[0] = 5
        return 0

    def hipModuleLaunchKernel(self, *args):
        extra = args[-1]
        self.seen.append((args[:-2], [extra[i] for i in range(3)], bool(args[-2])))
        return 0

    def hipGetErrorName(self, error):
        return b"hipError%d" % error


def test_values_arrive_as_from_c():
    offered = Offered()
    functions = offered_by(offered)
    memory, name = ctypes.c_void_p(), ctypes.create_string_buffer(8)
    assert functions.hipMalloc(ctypes.byref(memory), 16) == 0
    assert memory.value == 0x1010
    assert functions.hipFree(memory) == functions.hipFree(None) == 17
    assert functions.hipDeviceGetName(name, 8, 0) == 0 and name.value == b"one"
    assert functions.hipModuleGetFunction(ctypes.byref(memory), 2**40, b"kernel") == 0
    extra = (ctypes.c_void_p * 3)(1, 2**40, 3)
    assert functions.hipModuleLaunchKernel(7, 1, 2, 3, 4, 5, 2**32 - 1, 0, None, None, extra) == 0
    assert offered.seen == [
        *(0x1010, None, (2**40, b"kernel")),
        ((7, 1, 2, 3, 4, 5, 2**32 - 1, 0, None), [1, 2**40, 3], False),
    ]


def test_texts_stay():
    functions = offered_by(Offered())
    assert [functions.hipGetErrorName(n) for n in (3, 3, 700)] == [
        *(b"hipError3", b"hipError3", b"hipError700")
    ]


def test_what_is_raised_comes_out_once():
    functions = offered_by(Offered())
    assert functions.hipSetDevice(3) == 999
    with pytest.raises(LookupError, match="device 3"):
        functions.raise_pending()
    functions.raise_pending()


def test_wrong_types_are_refused_before_the_call():
    functions = offered_by(Offered())
    memory = ctypes.c_void_p()
    for args in ((1.5, 12), (ctypes.byref(ctypes.c_int32()), 12)):
        with pytest.raises(ctypes.ArgumentError, match="expected LP_c_void_p"):
            functions.hipMalloc(*args)
    with pytest.raises(ctypes.ArgumentError, match="wrong type"):
        functions.hipMalloc(ctypes.byref(memory), "12")
    with pytest.raises(TypeError, match="at least 2 arguments"):
        functions.hipMalloc(ctypes.byref(memory))


def test_what_is_not_offered_is_not_there():
    functions = offered_by(Offered())
    assert [name for name in function_names() if hasattr(functions, name)] == [
        *("hipSetDevice", "hipDeviceGetName", "hipMalloc", "hipFree", "hipModuleGetFunction"),
        *("hipModuleLaunchKernel", "hipGetErrorName"),
    ]


def test_each_kind_of_argument_has_a_type():
    kinds = {kind for name in function_names() for kind, _ in parameters(name)}
    assert kinds == {*hip_interface.C_TYPES}
    assert parameters("hipModuleGetFunction") == (
        *(("out_handle", "function"), ("handle", "module"), ("text", "name")),
    )
    assert parameters("hipDeviceSynchronize") == ()


@pytest.mark.rocm
def test_the_real_library_has_the_same_signatures():
    loaded = hip_interface.of_library(ctypes.CDLL("libamdhip64.so.5"))
    everything = type("Everything", (), {name: lambda self, *args: 0 for name in function_names()})
    offered = offered_by(everything())
    lacking = [name for name in function_names() if not hasattr(loaded, name)]
    assert lacking == ["hipGetDevicePropertiesR0600"]
    for name in {*function_names()} - {*lacking}:
        real, ours = getattr(loaded, name), getattr(offered, name)
        assert (real.argtypes, real.restype) == (ours.argtypes, ours.restype)
        assert len(real.argtypes) == len(parameters(name))
        expected = ctypes.c_char_p if name in hip_api.TEXTS else ctypes.c_int32
        assert real.restype is expected
