"""Objects of pycuda are released once, with their context, or never where that is impossible."""

import gc
import os
import sys
import threading

import pytest

from refcomp.runtime.cuda import handle as handles
from refcomp.runtime.cuda.context import CudaContext
from refcomp.runtime.cuda.handle import CudaHandle
from tests.runtime.cuda.recording_pycuda import RecordingPycuda


@pytest.fixture
def recording():
    recording = RecordingPycuda(devices=2)
    recording.driver.init()
    return recording


def make(recording, index=0, **options):
    context = CudaContext(recording.driver, index)
    with context.use("making") as cuda:
        return context, CudaHandle(context, cuda.mem_alloc(8), **options)


def test_the_last_reference_releases_with_the_context_pushed(recording):
    before = len(handles._alive)
    _, made = make(recording, 1)
    assert recording.alive == ["memory"] and len(handles._alive) == before + 1
    del made
    assert (recording.alive, recording.leaked, recording.stack) == ([], [], [])
    assert len(handles._alive) == before
    assert "cuCtxSynchronize" not in recording.calls


def test_the_work_of_a_busy_object_is_awaited(recording):
    _, made = make(recording, is_busy=True)
    del made
    assert recording.calls[-2:] == ["cuCtxSynchronize", "cuCtxPopCurrent"]


def test_any_thread_may_release(recording):
    box = [make(recording)]
    thread = threading.Thread(target=box.clear)
    thread.start()
    thread.join()
    assert (recording.alive, recording.leaked) == ([], [])


def test_nothing_is_released_after_the_context_has_ended(recording):
    context, made = make(recording)
    context.ending = "a trap"
    recording.calls.clear()
    del made
    gc.collect()
    assert recording.calls == [] and recording.leaked == []
    assert recording.alive == ["memory"], "its destructor must not run"


def test_a_release_that_fails_is_a_warning(recording):
    _, made = make(recording, is_busy=True)
    recording.errors["cuCtxPushCurrent"] = "context is destroyed"
    with pytest.warns(ResourceWarning, match="releasing an object: cuCtxPushCurrent failed"):
        del made
    assert recording.alive == ["memory"]


def test_all_objects_are_kept_at_the_end_of_the_process(recording):
    _, made = make(recording)
    objects = made._objects
    before = sys.getrefcount(objects)
    handles._keep_all()
    assert sys.getrefcount(objects) == before + 1


def test_a_forked_child_releases_nothing(recording):
    _, made = make(recording)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        recording.calls.clear()
        del made
        gc.collect()
        os.write(writer, repr((recording.calls, recording.alive)).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reader, 1000) == b"([], ['memory'])"
    del made
    assert recording.alive == []
