"""Memory: bytes that need not be aligned, allocations with red zones, what was written."""

import subprocess
import sys

import numpy as np
import pytest

from refcomp.emulator.machine.memory import BASE, Arena, Bytes, gather, may_reach, scatter


@pytest.mark.parametrize("width", [1, 2, 4, 8])
@pytest.mark.parametrize("step", [0, 1])
def test_numbers_lie_anywhere(width, step):
    data = np.arange(64, dtype=np.uint8)
    index = np.array([8, 24]) + step
    wanted = [int.from_bytes(bytes(range(i, i + width)), "little") for i in index]
    assert gather(data, index, width).tolist() == wanted
    scatter(data, index, width, np.array([5, 6], np.uint64))
    assert gather(data, index, width).tolist() == [5, 6]


def test_bytes_know_what_was_written():
    memory, index = Bytes(16, is_watched=True), np.array([4])
    assert memory.load_undefined(index, 4).tolist() == [0xFFFFFFFF]
    memory.store(index, 2, np.array([7]), None)
    assert memory.load(index, 4).tolist() == [7]
    assert memory.load_undefined(index, 4).tolist() == [0xFFFF0000]
    memory.store(index + 2, 2, np.array([7]), np.array([0xF0], np.uint16))
    assert memory.load_undefined(index, 4).tolist() == [0x00F00000]
    assert Bytes(16, is_watched=False).load_undefined(index, 4) is None


@pytest.mark.tools
def test_memory_that_cannot_be_reserved_is_refused_in_words():
    program = (
        "import resource, sys\n"
        "from refcomp.emulator.machine.memory import Arena\n"
        "from refcomp.foundation.errors import Unsupported\n"
        "resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))\n"
        "Arena(1 << 20, is_watched=True)\n"
        "for is_watched in (True, False):\n"
        "    try:\n"
        "        Arena(4 << 30, is_watched=is_watched)\n"
        "    except Unsupported as error:\n"
        "        print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stderr == ""
    assert (
        "an emulated GPU, 8192 MiB, cannot be reserved\n  --> <string>:8\n  why: the address space"
        in done.stdout
    )
    assert (
        "an emulated GPU, 4096 MiB, cannot be reserved\n  --> <string>:8\n  why: the address space"
        in done.stdout
    )
    assert "ulimit -v unlimited" in done.stdout
    assert "--no-checks" in done.stdout


def test_memory_of_no_bytes_can_be_read_where_that_was_wrong():
    memory, index = Bytes(0, is_watched=True), np.array([0])
    assert memory.load(index, 1).tolist() == [0]
    assert memory.load_words(index, 4)[0].tolist() == [[0] * 4]


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("start", [0, 16, 4, 3])
def test_words_are_loaded_at_once(count, start):
    bytes_ = Bytes(256, is_watched=True)
    bytes_.data[:] = np.arange(256)
    index = start + 16 * np.array([5, 0, 2, 5])
    words, undefined = bytes_.load_words(index, count)
    for number in range(count):
        alone = bytes_.load(index + 4 * number, 4)
        np.testing.assert_array_equal(words[:, number], alone)
        np.testing.assert_array_equal(undefined[:, number], np.full(4, 0xFFFFFFFF))
    bytes_.known[:200] = 0xFF
    assert bytes_.load_words(index, count)[1] is None
    bytes_.known[start + 33] = 0x0F
    assert bytes_.load_words(index, count)[1].tolist() == [[0] * count] * 2 + [
        [0xF000] + [0] * (count - 1),
        [0] * count,
    ]


def test_items_of_16_bytes_keep_all_their_bits():
    bytes_ = Bytes(64, is_watched=True)
    items = np.full(32, 0xFF, np.uint8)
    items[::3] = 0x7F  # among them NaNs that signal
    for index in (np.array([32, 0]), np.array([33, 1])):
        bytes_.store(index, 16, items.view(np.complex128), None)
        assert bytes_.data[index[0] :][:16].tolist() == items[:16].tolist()
        assert bytes_.data[index[1] :][:16].tolist() == items[16:].tolist()
        assert bytes_.load_undefined(index + 8, 8) is None
        np.testing.assert_array_equal(gather(bytes_.data, index, 16).view(np.uint8), items)


def test_allocations_are_apart():
    arena = Arena(1 << 16, is_watched=True)
    first, second = arena.allocate(100, "A"), arena.allocate(50, "B")
    assert first.address % 256 == 0 and second.address >= first.end + 4096
    assert arena.holds(first.address, 100) and not arena.holds(first.address, 101)
    assert arena.holds(first.address + 60, 40) and not arena.holds(first.address + 100, 1)
    assert arena.free_bytes() == (1 << 16) - 150


def test_what_is_outside_is_found():
    arena = Arena(1 << 16, is_watched=True)
    first, second = arena.allocate(100, "A"), arena.allocate(50, "B")
    inside = np.array([first.address, first.address + 96, second.address], np.uint64)
    assert arena.outside(inside, 4) is None
    wrong = np.append(inside, np.array([first.address + 97, BASE - 8], np.uint64))
    assert arena.outside(wrong, 4).tolist() == [False, False, False, True, True]
    assert arena.outside(wrong[:4], 4, is_load=True) is None
    first_behind = np.array([first.address + 100], np.uint64)
    assert arena.outside(first_behind, 4, is_load=True).all()
    told = arena.describe(first.address + 97, 4)
    assert told == "4 bytes that end 1 byte behind A (100 bytes)"
    assert "8 bytes before A" in arena.describe(first.address - 8, 4)
    assert "far from all memory" in arena.describe(0x1234, 4)


@pytest.mark.parametrize("is_load", [False, True])
def test_the_end_of_all_addresses_is_nobodys(is_load):
    """An address and a size whose sum wraps."""
    arena = Arena(1 << 16, is_watched=False)
    place = arena.allocate(64, "A")
    addresses = np.array([2**64 - 16, place.address, 2**64 - 4, place.address + 64], np.uint64)
    wrong = arena.outside(addresses, 16, is_load=is_load)
    assert wrong.tolist() == [True, False, True, True]
    wrong = arena.outside(addresses[1:] - np.uint64(4), 4, is_load=is_load)
    assert wrong.tolist() == [True, True, False]


def test_freed_memory_is_nobodys():
    arena = Arena(3 * 4352, is_watched=True)
    first, second = arena.allocate(64, "A"), arena.allocate(64, "B")
    assert arena.free(first.address) and not arena.free(first.address)
    assert not arena.holds(first.address, 4)
    assert "which was freed" in arena.describe(first.address, 4)
    third, fourth = arena.allocate(64, "C"), arena.allocate(64, "D")
    assert fourth.address == first.address and third.address > second.address
    assert arena.allocate(64, "E") is None


def test_the_host_writes_and_copies():
    arena = Arena(1 << 16, is_watched=True)
    place, other = arena.allocate(8, "A"), arena.allocate(8, "B")
    assert not arena.is_known(place.address, 8)
    arena.write(place.address, b"abcd")
    assert bytes(arena.read(place.address, 4)) == b"abcd" and arena.is_known(place.address, 4)
    arena.copy(other.address, place.address, 8)
    assert bytes(arena.read(other.address, 4)) == b"abcd"
    assert arena.is_known(other.address, 4) and not arena.is_known(other.address, 8)


def test_memory_that_is_freed_again_and_again_does_not_grow():
    arena = Arena(1 << 30, is_watched=False)
    kept = arena.allocate(64, "kept")
    addresses = []
    for _ in range(40):
        place = arena.allocate(8 << 20, "A")
        addresses.append(place.address)
        arena.free(place.address)
    assert max(addresses) - BASE < 100 << 20 and len(set(addresses)) > 4
    assert arena.holds(kept.address, 64) and min(addresses) > kept.end


@pytest.mark.parametrize(
    ("address", "end", "size", "is_right"),
    [
        (16, 21, 8, True),  # five bytes as eight
        (16, 25, 16, True),  # nine as sixteen
        (8, 20, 16, True),  # three words as four
        (8, 16, 16, False),
        (17, 21, 8, False),
        (24, 21, 8, False),
        (20, 21, 4, True),
        (21, 21, 1, False),
    ],
)
def test_how_far_a_load_may_reach(address, end, size, is_right):
    assert may_reach(np.array([address]), end, size).tolist() == [is_right]


def test_bytes_behind_an_allocation_were_written_by_nobody():
    arena = Arena(16384, is_watched=True)
    first = arena.allocate(64, "A")
    arena.write(first.address, bytes(range(64)))
    arena.free(first.address)
    arena._forget_freed()
    second = arena.allocate(5, "B")
    assert second.address == first.address
    assert not arena.bytes.known[second.address - BASE : second.address - BASE + 64].any()


def test_allocations_of_an_earlier_time_come_back():
    arena = Arena(1 << 16, is_watched=True)
    first = arena.allocate(16, "first")
    state = arena.state()
    arena.free(first.address)
    second = arena.allocate(16, "second")
    arena.reset(state)
    assert [one.label for one in arena.allocations()] == ["first"]
    assert arena.allocate(16, "third").address == second.address
    arena.reset(state)
    assert arena.holds(first.address, 16)
    assert not arena.holds(second.address, 16)
