"""Contexts are pushed around each use; a kernel that fails ends one, and is named."""

import threading

import pytest

from refcomp.foundation.errors import ToolchainError
from refcomp.runtime.cuda.context import CudaContext, words_of
from tests.runtime.cuda.recording_pycuda import Error, RecordingPycuda

ASTRAY = "an illegal memory access was encountered"


@pytest.fixture
def recording():
    recording = RecordingPycuda(devices=2)
    recording.driver.init()
    return recording


def context_of(recording, index=0):
    return CudaContext(recording.driver, index)


def test_the_context_is_pushed_around_each_use(recording):
    first, second = context_of(recording), context_of(recording, 1)
    with first.use("one"):
        assert recording.stack == [0]
        with second.use("two"):
            assert recording.stack == [0, 1]
        assert recording.stack == [0]
    assert recording.stack == []


def test_the_context_is_popped_after_any_error(recording):
    context = context_of(recording)
    with pytest.raises(KeyError), context.use("one"):
        raise KeyError("of the caller")
    with pytest.raises(ToolchainError), context.use("one"):
        raise Error("cuX failed: unknown error")
    assert recording.stack == []


def test_each_thread_pushes_for_itself(recording):
    context = context_of(recording)
    seen = []

    def work():
        with context.use("one"):
            seen.append(list(recording.stack))
        seen.append(list(recording.stack))

    with context.use("outside"):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert seen == [[0], []]


def test_an_error_that_leaves_the_context_usable(recording):
    context = context_of(recording)
    recording.errors["cuMemcpyDtoD"] = "invalid argument"
    with (
        pytest.raises(ToolchainError, match="refuses an argument") as caught,
        context.use("copying 4 bytes") as cuda,
    ):
        cuda.memcpy_dtod(1, 2, 4)
    assert caught.value.why == "copying 4 bytes: cuMemcpyDtoD failed: invalid argument"
    with context.use("waiting") as cuda:
        cuda.Context.synchronize()


def test_lack_of_memory_does_not_end_the_context(recording):
    context = context_of(recording)
    recording.memory_bytes = 100
    with (
        pytest.raises(MemoryError, match="allocating 101 bytes: cuMemAlloc failed: out of memory"),
        context.use("allocating 101 bytes") as cuda,
    ):
        cuda.mem_alloc(101)
    with context.use("allocating 100 bytes") as cuda:
        assert cuda.mem_alloc(100)


def test_a_kernel_that_fails_ends_the_context_and_is_named(recording):
    context = context_of(recording)
    context.launched("gemm_kernel0")
    recording.trap = ASTRAY
    with pytest.raises(ToolchainError) as caught, context.use("waiting for the GPU") as cuda:
        cuda.Context.synchronize()
    error = caught.value
    assert error.what == "the kernel gemm_kernel0 failed on the GPU"
    assert error.where == "cuda:0"
    assert error.why == (
        f"waiting for the GPU: cuCtxSynchronize failed: {ASTRAY}; "
        "launched since the last wait: gemm_kernel0"
    )
    assert "build the schedule for `interp`" in error.remedy and "start another" in error.remedy
    assert recording.stack == []


def test_later_uses_say_that_the_context_has_ended(recording):
    context, other = context_of(recording), context_of(recording, 1)
    recording.trap = ASTRAY
    with (
        pytest.raises(ToolchainError, match="a kernel that was launched before failed"),
        context.use("waiting") as cuda,
    ):
        cuda.Context.synchronize()
    recording.calls.clear()
    with (
        pytest.raises(ToolchainError, match="cannot be used any more in this process") as caught,
        context.use("allocating 4 bytes"),
    ):
        raise AssertionError
    assert caught.value.where == "allocating 4 bytes"
    assert ASTRAY in caught.value.why and "another process" in caught.value.remedy
    assert recording.calls == [], "the driver is left alone"
    recording.trap = ""
    with other.use("another GPU") as cuda:
        cuda.Context.synchronize()


def test_kernels_are_counted_since_the_last_wait(recording):
    context = context_of(recording)
    context.launched("before")
    context.waited()
    for name in ("a", "b", "a"):
        context.launched(name)
    recording.trap = ASTRAY
    with (
        pytest.raises(ToolchainError, match="a kernel that was launched before") as caught,
        context.use("waiting") as cuda,
    ):
        cuda.Context.synchronize()
    assert "since the last wait: a (2 times), b" in caught.value.why


def test_a_context_that_cannot_be_made(recording):
    recording.errors["cuDevicePrimaryCtxRetain"] = "out of memory"
    with pytest.raises(MemoryError, match="opening GPU 0: cuDevicePrimaryCtxRetain failed"):
        context_of(recording)
    recording.errors = {"cuCtxPushCurrent": "context is destroyed"}
    context = context_of(recording)
    with (
        pytest.raises(ToolchainError, match="NVIDIA's driver failed") as caught,
        context.use("waiting"),
    ):
        raise AssertionError
    assert "cuCtxPushCurrent failed: context is destroyed" in caught.value.why


def test_words_that_cannot_be_decoded():
    raw = b"cuModuleLoadDataEx failed: device kernel image is invalid - \xff\xfe\x01"
    with pytest.raises(UnicodeDecodeError) as caught:
        raw.decode()
    assert words_of(caught.value) == "cuModuleLoadDataEx failed: device kernel image is invalid"
    assert words_of(Error("cuX failed: words - ")) == "cuX failed: words"
