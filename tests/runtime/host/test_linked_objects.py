"""Notes of libraries: those that describe functions are found, whatever else is there."""

import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

import refcomp
from refcomp.codegen.llvm.linked_description import with_description
from refcomp.driver.text_forms import make_code
from refcomp.runtime.host import linked_objects as room
from refcomp.runtime.host.linked_objects import linked_objects
from refcomp.toolchain.description import load_description
from refcomp.toolchain.find import find_tool

TEXT = 'target triple = "{}-pc-linux-gnu"\ndefine i32 @answer() {{\n  ret i32 7\n}}\n'


def note(contents: bytes, name: bytes = b"refcomp\0", kind: int = 1, step: int = 4) -> bytes:
    head = struct.pack("=III", len(name), len(contents), kind)
    padded = head + name
    padded += bytes(-len(padded) % step) + contents
    return padded + bytes(-len(padded) % step)


@pytest.mark.parametrize("step", [4, 8])
def test_own_notes_are_found_among_others(step: int) -> None:
    notes = [
        note(b"other", b"GNU\0", 1, step),
        note(b"one", step=step),
        note(b"another type", kind=2, step=step),
        note(b"", step=step),
        note(b"no name", b"", step=step),
        note(b"twenty bytes of text", step=step),
    ]
    found = [b"one", b"", b"twenty bytes of text"]
    assert list(room._described(b"".join(notes), step)) == found
    assert list(room._described(b"", step)) == []


def test_a_damaged_note_ends_with_its_segment() -> None:
    whole = note(b"first") + note(b"second")
    for size in range(len(whole)):
        found = list(room._described(whole[:size], 4))
        assert all(text in b"first second" for text in found)
        assert len(found) <= 2
    huge = struct.pack("=III", 8, 2**32 - 1, 1) + b"refcomp\0rest"
    assert list(room._described(huge, 4)) == [b"rest"]
    assert list(room._described(struct.pack("=III", 2**32 - 1, 2**32 - 1, 1), 4)) == []


# Loads libraries in all ways, and prints which ones are found, before one is closed and after.
PROGRAM = """
import ctypes, json, os, sys
from pathlib import Path
from refcomp.foundation.artifacts import Binary
from refcomp.runtime.host.linked_objects import linked_objects
from refcomp.runtime.host.machine_code import load_shared_object

def found():
    return [[linked.file, [text.decode() for text in linked.descriptions]]
            for linked in linked_objects()]

def close(library):
    ctypes.CDLL(None).dlclose(ctypes.c_void_p(library._handle))

paths = sys.argv[1:]
unloaded = ctypes.CDLL(paths[0])
close(unloaded)
kept = ctypes.CDLL(paths[1])
ctypes.CDLL(paths[2], mode=os.RTLD_GLOBAL)
os.chdir("/")
load_shared_object(Binary(Path(paths[0]).read_bytes(), "so"))
before = found()
close(kept)
print(json.dumps([before, found(), kept.answer()]))
"""


@pytest.mark.llvm
def test_libraries_of_this_process_are_found_and_kept(tmp_path: Path) -> None:
    lld = find_tool(load_description("llvm"), "lld")
    for name in "abc":
        text = with_description(TEXT.format(os.uname().machine), f"of {name}".encode())
        (tmp_path / f"{name}.o").write_bytes(make_code(text, "llvm", ".o"))
        arguments = ["-shared", f"{name}.o", "-o", f"{name}.so"]
        subprocess.run([lld, *arguments], check=True, cwd=tmp_path)
    (tmp_path / "script.py").write_text(PROGRAM)
    paths = [str(tmp_path / "a.so"), str(tmp_path / "b.so"), "./c.so"]
    done = subprocess.run(
        [sys.executable, tmp_path / "script.py", *paths],
        capture_output=True,
        check=True,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(Path(refcomp.__file__).parents[1])},
    )
    found = [[paths[1], ["of b"]], ["./c.so", ["of c"]]]
    assert json.loads(done.stdout) == [found, found, 7]


def test_a_library_that_is_gone_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "_loaded_files", lambda: ["/nowhere/gone.so"])
    monkeypatch.setattr(room, "_notes", lambda library: [(note(b"text"), 4)])
    (linked,) = linked_objects()
    assert (linked.file, linked.descriptions) == (sys.executable, (b"text",))


# Another thread loads libraries under the interpreter lock, as an import does.
RIVAL = """
import ctypes, sys, threading, time
from refcomp.runtime.host.linked_objects import linked_objects

sys.setswitchinterval(1e-6)
loader = ctypes.PyDLL(None)
loader.dlopen.restype = ctypes.c_void_p

def load_again_and_again():
    while True:
        loader.dlclose(ctypes.c_void_p(loader.dlopen(b"libanl.so.1", 2)))

threading.Thread(target=load_again_and_again, daemon=True).start()
end = time.monotonic() + 0.5
while time.monotonic() < end:
    linked_objects()
print("done", flush=True)
"""


def test_it_waits_for_no_thread_that_loads_libraries() -> None:
    environment = os.environ | {"PYTHONPATH": str(Path(refcomp.__file__).parents[1])}
    script = [sys.executable, "-c", RIVAL + "import os; os._exit(0)"]
    done = subprocess.run(
        script, capture_output=True, check=True, env=environment, text=True, timeout=60
    )
    assert done.stdout == "done\n"
