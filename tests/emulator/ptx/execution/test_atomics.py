"""Atomic updates do what one thread after the other would do."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refcomp.foundation.errors import Unsupported
from tests.emulator.ptx.texts import kernel, kinds, run, words

_OPERATIONS = {
    "add.u32": lambda old, b: (old + b) % 2**32,
    "min.u32": min,
    "max.u32": max,
    "and.b32": lambda old, b: old & b,
    "or.b32": lambda old, b: old | b,
    "xor.b32": lambda old, b: old ^ b,
    "exch.b32": lambda old, b: b,
    "inc.u32": lambda old, b: 0 if old >= b else old + 1,
    "dec.u32": lambda old, b: b if old == 0 or old > b else old - 1,
}
_COUNTS = st.lists(st.integers(0, 3), min_size=1, max_size=70)
_WORDS = st.integers(0, 5) | st.integers(0, 2**32 - 1)


def _text(operation, opcode="atom"):
    """Thread i updates the place data[0..3] that data[4 + i] names by data[74 + i]."""
    returned = "%r4, " if opcode == "atom" else ""
    return kernel(f"""
        mul.wide.u32 %rd2, %r1, 4; add.s64 %rd2, %rd1, %rd2;
        ld.global.u32 %r2, [%rd2+16]; ld.global.u32 %r3, [%rd2+296];
        mov.u32 %r4, 0;
        mul.wide.u32 %rd3, %r2, 4; add.s64 %rd3, %rd1, %rd3;
        {opcode}.global.{operation} {returned}[%rd3], %r3;
        st.global.u32 [%rd2+576], %r4;
        ret;
    """)


@pytest.mark.parametrize("operation", _OPERATIONS)
@given(data=st.data())
def test_updates_are_made_in_order(operation, data):
    places = data.draw(_COUNTS)
    values = data.draw(st.lists(_WORDS, min_size=len(places), max_size=len(places)))
    start = data.draw(st.lists(_WORDS, min_size=4, max_size=4))
    memory = words(4 + 70 + 70 + 70)
    memory[:4] = start
    memory[4 : 4 + len(places)] = places
    memory[74 : 74 + len(places)] = values
    returned = []
    for place, value in zip(places, values, strict=True):
        returned.append(start[place])
        start[place] = _OPERATIONS[operation](start[place], value)
    assert run(_text(operation), [memory, np.uint32(0)], block=len(places)).findings == ()
    assert memory[:4].tolist() == start
    assert memory[144 : 144 + len(places)].tolist() == returned


def test_floats_are_added_in_the_order_of_threads():
    rng = np.random.default_rng(0)
    memory = words(214)
    memory[74:144] = rng.standard_normal(70).astype(np.float32).view(np.uint32)
    expected = np.float32(0)
    for value in memory[74:144].view(np.float32):
        expected += value
    text = _text("add.f32", "red").replace("ld.global.u32 %r3", "ld.global.f32 %f1")
    text = text.replace("], %r3;", "], %f1;")
    assert run(text, [memory, np.uint32(0)], block=70).findings == ()
    assert memory[:1].view(np.float32)[0] == expected


@given(st.lists(st.integers(0, 2), min_size=1, max_size=40), st.integers(0, 2))
def test_a_value_is_exchanged_by_the_first_thread_that_expects_it(expected, start):
    text = kernel("""
        mul.wide.u32 %rd2, %r1, 4; add.s64 %rd2, %rd1, %rd2;
        ld.global.u32 %r2, [%rd2+4]; add.u32 %r3, %r2, 1; rem.u32 %r3, %r3, 3;
        atom.global.cas.b32 %r4, [%rd1], %r2, %r3;
        st.global.u32 [%rd2+164], %r4;
        ret;
    """)
    memory = words(81)
    memory[0] = start
    memory[1 : 1 + len(expected)] = expected
    now, returned = start, []
    for value in expected:
        returned.append(now)
        now = (value + 1) % 3 if now == value else now
    assert run(text, [memory, np.uint32(0)], block=len(expected)).findings == ()
    assert memory[0] == now
    assert memory[41 : 41 + len(expected)].tolist() == returned


_TINY = 0x00000003  # a denormal


def _sums_of(space, first, added):
    """A place of global or shared memory, to which both threads of a block add."""
    place = "[%rd1]" if space == "global" else "[%r3]"
    text = kernel(f"""
        .shared .align 4 .b8 near[4]; mov.u32 %r3, near;
        st.{space}.u32 {place}, {first:#x}; mov.b32 %f1, {added:#x}; bar.sync 0;
        red.{space}.add.f32 {place}, %f1; bar.sync 0;
        ld.{space}.u32 %r2, {place}; st.global.u32 [%rd1], %r2;
        ret;
    """)
    memory = words(1)
    assert run(text, [memory, np.uint32(0)], block=2).findings == ()
    return int(memory[0])


def test_sums_flush_denormals_in_global_memory_alone():
    """The ISA says so of `atom.add.f32`."""
    assert _sums_of("global", _TINY, _TINY) == 0
    assert _sums_of("shared", _TINY, _TINY) == 3 * _TINY
    # The last sum would not be 0, but the one before it is.
    half = 0x00400000
    assert _sums_of("global", half, half) == 0
    assert _sums_of("shared", half, half) == 3 * half


@pytest.mark.parametrize("space", ["global", "shared"])
def test_nan_of_a_sum_is_the_one_of_gpus(space):
    assert _sums_of(space, 0xFFC12345, 0x3F800000) == 0x7FFFFFFF


@pytest.mark.parametrize(
    ("before", "update", "found"),
    [
        ("", "red.shared.add.u32 [%r3], 1;", ["undefined"]),
        ("", "atom.shared.exch.b32 %r4, [%r3], 1;", []),
        ("st.shared.u32 [%r3], 1;", "red.shared.add.u32 [%r3], 1;", []),
        ("st.shared.u32 [%r3], 1;", "red.shared.add.u32 [%r3], %r9;", ["undefined"]),
        (
            "st.shared.u32 [%r3], 1;",
            "red.shared.add.u32 [%r3], %r9; red.shared.add.u32 [%r3], 1;",
            ["undefined"],
        ),
    ],
)
def test_updates_with_bits_that_nothing_wrote(before, update, found):
    """What they leave is undefined, and so is a branch on it."""
    text = kernel(f"""
        .shared .align 4 .b8 near[4]; mov.u32 %r3, near; {before}
        {update}
        ld.shared.u32 %r5, [%r3]; setp.eq.u32 %p1, %r5, 77; @%p1 st.global.u32 [%rd1], 1;
        ret;
    """)
    report = run(text, [words(1), np.uint32(0)], block=1)
    assert [finding.kind for finding in report.findings] == found


def test_update_of_a_read_only_array_is_found():
    data = words(1)
    data.flags.writeable = False
    text = kernel("red.global.add.u32 [%rd1], 1; ret;")
    (finding,) = run(text, [data, np.uint32(0)], block=2).findings
    assert "writes to the argument data, which is read-only" in str(finding)


def test_pairs_of_halves_are_added():
    text = kernel("mov.b32 %r2, 0x3C004000; red.global.add.noftz.f16x2 [%rd1], %r2; ret;")
    memory = words(1)
    assert run(text, [memory, np.uint32(0)], block=3).findings == ()
    assert memory.view(np.float16).tolist() == [6.0, 3.0]


def test_other_updates_are_refused():
    text = kernel("red.global.v2.f32.add [%rd1], {%f1, %f2}; ret;")
    with pytest.raises(Unsupported, match="is not emulated"):
        run(text, [words(2), np.uint32(0)])


def test_updates_of_memory_that_nothing_wrote_are_found():
    text = ".shared .align 4 .b8 tile[4]; red.shared.add.u32 [tile], 1; ret;"
    report = run(kernel(text), [words(1), np.uint32(0)])
    assert kinds(report) == ["undefined"]
    assert "updates memory that nothing wrote" in report.findings[0].what
    assert (
        run(
            kernel(text.replace("red.shared.add.u32", "atom.shared.exch.b32 %r2,")),
            [words(1), np.uint32(0)],
        ).findings
        == ()
    )


def test_updates_by_values_that_nothing_wrote_are_found():
    report = run(kernel("red.global.add.u32 [%rd1], %r9; ret;"), [words(1), np.uint32(0)])
    assert kinds(report) == ["undefined"]
    assert "changes memory by a value that nothing wrote" in report.findings[0].what
