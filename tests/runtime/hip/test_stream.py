"""Streams and events give their work to the library with their handles, and hold what it needs."""

import gc
import threading
import weakref

import numpy as np
import pytest

from refcomp.foundation.artifacts import Binary
from refcomp.foundation.errors import UserError
from refcomp.runtime.hip.driver import HipDriver
from refcomp.runtime.hip.stream import HipEvent
from refcomp.runtime.launch import KernelSignature
from tests.runtime.hip.recording_hip import RecordingHip, driver_of

ONE = (1, 1, 1)


@pytest.fixture
def recording() -> RecordingHip:
    return RecordingHip()


@pytest.fixture
def driver(recording) -> HipDriver:
    return driver_of(recording)


def test_copies_in_a_stream(recording, driver):
    stream = driver.stream(0)
    memory, other = driver.allocate(0, 16), driver.allocate(0, 16)
    source, target = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    stream.upload(source, memory)
    stream.copy(memory, other, 16)
    stream.fill(other, 0, 4)
    stream.download(other, target)
    stream.sync()
    assert target.tolist() == [0, 1, 2, 3]
    assert recording.streams == [stream.handle] * 4
    assert recording.copies == [(1, 16), (3, 16), (2, 16)]
    assert recording.calls[-1] == "hipStreamSynchronize"


def test_nothing_is_copied_for_no_bytes(recording, driver):
    stream, memory, empty = driver.stream(0), driver.allocate(0, 0), np.zeros(0, np.int8)
    stream.upload(empty, memory)
    stream.download(memory, empty)
    stream.fill(memory, 1, 0)
    stream.copy(memory, memory, 0)
    assert recording.streams == []


@pytest.mark.search
def test_arrays_are_held_until_the_stream_is_done(driver):
    stream, memory = driver.stream(0), driver.allocate(0, 4)
    source = driver.pinned(0, (4,), np.uint8)
    stream.upload(source, memory)
    alive = weakref.ref(source)
    del source
    gc.collect()
    assert alive() is not None
    stream.sync()
    gc.collect()
    assert alive() is None


def test_what_is_not_contiguous_is_refused(driver):
    stream, memory = driver.stream(0), driver.allocate(0, 8)
    for use in (stream.upload, lambda array, memory: stream.download(memory, array)):
        with pytest.raises(UserError, match="an array that is not contiguous is copied"):
            use(np.zeros(4, np.uint8)[::2], memory)


def test_launches_inside_go_to_the_stream_of_the_thread(recording, driver):
    launcher = driver.load(0, Binary(b"code", "hsaco"), [KernelSignature("k", "k", ())])

    def launch() -> None:
        launcher.launch("k", [], ONE, ONE, ())

    outer, inner = driver.stream(0), driver.stream(0)
    with outer:
        launch()
        with inner:
            launch()
        launch()
        thread = threading.Thread(target=launch)
        thread.start()
        thread.join()
    launch()
    handles = [outer.handle, inner.handle, outer.handle, None, None]
    assert recording.streams == handles and len({*handles}) == 3


def test_a_stream_is_left_when_something_fails(recording, driver):
    stream = driver.stream(0)
    with pytest.raises(ZeroDivisionError), stream:
        raise ZeroDivisionError
    assert driver.streams.of(0) is None


def test_streams_are_those_of_their_device(recording, driver):
    recording.devices = 2
    with driver.stream(1) as stream:
        assert (driver.streams.of(0), driver.streams.of(1)) == (None, stream.handle)


def test_events_order_streams_and_tell_time(recording, driver):
    first, second = driver.stream(0), driver.stream(0)
    event = first.record()
    assert isinstance(event, HipEvent)
    second.wait(event)
    assert second.record().seconds_since(event) == pytest.approx(2.5e-3)
    event.sync()
    event.record(second.handle)
    assert recording.streams == [first.handle, second.handle, second.handle]
    assert recording.calls.count("hipStreamWaitEvent") == 1
    with second:
        driver.seconds(0, lambda: None)
    assert recording.streams[3:] == [second.handle] * 2


def test_streams_and_events_are_given_back(recording, driver):
    stream = driver.stream(0)
    event = stream.record()
    assert sorted(recording.alive.values()) == ["event", "stream"]
    del stream, event
    gc.collect()
    assert recording.alive == {}
