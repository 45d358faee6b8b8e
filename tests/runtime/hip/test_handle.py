"""What was made is given back once, by its owner, after its users."""

import gc
import os

import pytest

from refcomp.runtime.hip.handle import HipHandle, make
from tests.runtime.hip.recording_hip import RecordingHip, library_of


@pytest.fixture
def recording() -> RecordingHip:
    return RecordingHip()


def test_it_is_given_back_when_it_is_let_go(recording):
    made = make(library_of(recording), "hipMalloc", 16, give_back="hipFree")
    assert recording.alive == {made.value: "memory"}
    del made
    gc.collect()
    assert recording.alive == {} and recording.calls == ["hipMalloc", "hipFree"]


def test_nothing_is_made_when_the_call_fails(recording):
    recording.errors["hipStreamCreate"] = 2
    with pytest.raises(MemoryError, match=r"hipStreamCreate\(\) says: hipError2,"):
        make(library_of(recording), "hipStreamCreate", give_back="hipStreamDestroy")
    gc.collect()
    assert recording.calls == ["hipStreamCreate"]


def test_its_device_is_waited_for(recording):
    recording.devices = 3
    HipHandle(library_of(recording), 5, "hipEventDestroy", busy_device=2)
    recording.alive[5] = "event"
    gc.collect()
    assert recording.calls[:2] == ["hipSetDevice", "hipDeviceSynchronize"]
    assert recording.current == 2


def test_what_cannot_be_given_back_is_told(recording):
    made = make(library_of(recording), "hipMalloc", 16, give_back="hipFree")
    recording.errors["hipFree"] = 700
    with pytest.warns(ResourceWarning, match=r"hipFree\(memory=0x[0-9a-f]+\) says: hipError700,"):
        del made
        gc.collect()


def test_a_forked_child_gives_nothing_back(recording, monkeypatch):
    made = make(library_of(recording), "hipMalloc", 16, give_back="hipFree")
    parent = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: parent + 1)
    del made
    gc.collect()
    assert recording.calls == ["hipMalloc"]
