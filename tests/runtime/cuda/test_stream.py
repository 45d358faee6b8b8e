"""Streams and events, on the stand-in: who is called with which stream, and what is kept alive."""

import gc
import threading

import ml_dtypes
import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.runtime.cuda.stream import bytes_of
from refcomp.runtime.launch import KernelSignature
from tests.runtime.cuda.recording_pycuda import RecordingPycuda, driver_of, fake_cubin


@pytest.fixture
def recording():
    return RecordingPycuda(devices=2)


def streams_of(recording):
    return [launch.stream for launch in recording.launches]


def test_launches_go_to_the_stream_that_was_entered(recording):
    driver = driver_of(recording)
    kernels = driver.load(0, fake_cubin(), [KernelSignature("f", "f", ())])
    run = lambda: kernels.launch("f", [], (1, 1, 1), (1, 1, 1), ())  # noqa: E731
    outer, inner, other = driver.stream(0), driver.stream(0), driver.stream(1)
    run()
    with outer:
        run()
        with inner, other:
            run()
        run()
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    run()
    assert streams_of(recording) == [None, outer.handle, inner.handle, outer.handle, None, None]
    assert len({outer.handle, inner.handle, other.handle}) == 3


def test_copies_are_queued_and_their_ends_kept(recording):
    driver = driver_of(recording)
    stream = driver.stream(0)
    source, memory = np.arange(4, dtype=np.float32), driver.allocate(0, 16)
    twin, target = driver.allocate(0, 16), np.zeros(4, np.float32)
    stream.upload(source, memory)
    stream.copy(memory, twin, 16)
    stream.fill(memory, 0, 8)
    stream.download(twin, target)
    assert recording.calls.count(f"stream {stream.handle}") == 4
    np.testing.assert_array_equal(target, source)
    del memory, twin
    gc.collect()
    assert recording.alive.count("memory") == 2, "queued work may use it"
    stream.sync()
    assert recording.alive.count("memory") == 0
    assert recording.leaked == []


def test_nothing_is_copied_for_no_bytes(recording):
    driver = driver_of(recording)
    stream, memory = driver.stream(0), driver.allocate(0, 0)
    nothing = np.zeros((0, 3), np.int8)
    recording.calls.clear()
    stream.upload(nothing, memory)
    stream.download(memory, nothing)
    stream.copy(memory, memory, 0)
    stream.fill(memory, 1, 0)
    assert recording.calls == []


def test_a_strided_array_is_refused(recording):
    stream, memory = driver_of(recording).stream(0), driver_of(recording).allocate(0, 16)
    strided = np.zeros((4, 4), np.float32)[:, ::2]
    for use in (
        lambda: stream.upload(strided, memory),
        lambda: stream.download(memory, strided),
        lambda: bytes_of(strided),
    ):
        with pytest.raises(UserError, match="not contiguous") as caught:
            use()
        assert caught.value.remedy == "copy it first"


def test_events_are_recorded_in_the_current_stream(recording):
    driver = driver_of(recording)
    stream, other = driver.stream(0), driver.stream(0)
    recording.calls.clear()
    event = stream.record()
    again = driver.event(0)
    assert [call for call in recording.calls if call.startswith("stream")] == [
        f"stream {stream.handle}",
        "stream None",
    ]
    other.wait(event)
    again.sync()
    assert "cuStreamWaitEvent" in recording.calls
    del event
    gc.collect()
    assert recording.alive.count("event") == 2, "`other` has not reached it"
    other.sync()
    assert recording.alive.count("event") == 1


def test_the_time_between_events_is_the_devices(recording):
    driver = driver_of(recording)
    start = driver.event(0)
    assert driver.event(0).seconds_since(start) == pytest.approx(2.5e-3)


def test_every_dtype_is_copied_as_bytes(recording):
    driver = driver_of(recording)
    for dtype in (np.bool_, np.float16, ml_dtypes.bfloat16):
        values = np.array([[0, 1], [1, 0]], dtype)
        memory, result = driver.allocate(0, values.nbytes), np.empty_like(values)
        driver.upload(0, values, memory)
        driver.download(0, memory, result)
        assert result.tobytes() == values.tobytes()
