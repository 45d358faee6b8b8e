"""Advice for kernels whose faults are known, and none for those without."""

from dataclasses import replace

import pytest

import refcomp as rc
from refcomp.driver.amd_resources import AmdResources
from refcomp.driver.nvidia_resources import NvidiaResources
from refcomp.emulator.observers.counting import InstructionCounts, KernelCounts, MemoryTraffic
from refcomp.emulator.ptx.observers.opcodes import PTX, CountedPtx
from refcomp.profile.advice import advise
from refcomp.profile.bound import bound_of
from refcomp.profile.cards import CARDS
from refcomp.profile.facts import RuleInputs
from refcomp.profile.listing import list_kernel
from tests.emulator.snippets import instruction
from tests.profile.programs import product, report, transposed

CARD = CARDS["MI300X"]


def _advice(*rows, resources=None, groups=304, **counts):
    """For instructions, each with waves, lanes a wave and an access."""
    counts = {"waves": 4 * groups} | counts
    kernel = KernelCounts("k", "gfx942", 64, 128, groups=groups, launches=1, **counts)
    for number, (text, waves, lanes, access) in enumerate(rows):
        one = replace(instruction(text), number=number)
        kernel.by_number[number] = InstructionCounts(one, waves, lanes * waves, access)
    facts = RuleInputs(kernel, list_kernel(kernel, {}), resources, bound_of(kernel, CARD))
    return [f"{advice.what}: {advice.remedy}" for advice in advise(facts)]


def _global(size=4, is_atomic=False, **costs):
    return MemoryTraffic("global", size, False, is_atomic, **costs)


FMA = ("v_fma_f32 v0, v1, v2, v3", 100, 64, None)
MANY = ("v_fma_f32 v0, v1, v2, v3", 10_000, 64, None)
LOAD = "global_load_dword v0, v[2:3], off"


def test_a_kernel_of_multiply_adds_needs_none():
    assert _advice(FMA) == []


@pytest.mark.rocm
def test_reads_apart_name_the_loop_that_lanes_run_over():
    found = report(*transposed(is_naive=True))
    (advice,) = [one for one in found.advice if "would do" in one.what]
    assert advice.what.startswith("2048 transactions where 128 would do: 6% of the moved bytes")
    assert "lanes are 256 bytes apart" in advice.what
    assert "they run over j.inner of B; bind i.inner to threadIdx.x instead" in advice.remedy
    assert "cache_read" in advice.remedy
    assert "A@[" in found.listing.loop_ir(advice.line)


@pytest.mark.rocm
def test_bound_loop_of_adjacent_elements_uses_all_moved_bytes():
    """Advice on lanes that run down a column names the loop that runs along the rows."""
    wrong = report(*_doubled("threadIdx.x", "threadIdx.y"))
    told = [one.remedy for one in wrong.advice if "would do" in one.what]
    assert len(told) == 2 and wrong.efficiency < 0.1
    assert all("over i.inner of B; bind j.inner to threadIdx.x instead" in one for one in told)
    right = report(*_doubled("threadIdx.y", "threadIdx.x"))
    assert right.efficiency == 1 and not any("would do" in one.what for one in right.advice)
    assert right.bound.seconds[right.bound.limit] < 0.5 * wrong.bound.seconds[wrong.bound.limit]


def _doubled(row_tag, column_tag):
    a = rc.placeholder((128, 128), name="A")
    b = rc.compute((128, 128), lambda i, j: a[i, j] * 2.0, name="B")
    s = rc.create_schedule(b)
    tags = ("blockIdx.y", "blockIdx.x", row_tag, column_tag)
    for axis, tag in zip(s[b].tile(*b.op.axis, 32, 32), tags, strict=True):
        s[b].bind(axis, rc.thread_axis(tag))
    return s, [a, b]


def test_rows_that_are_too_short():
    """Two lanes take 32 bytes side by side, the next two those of another row."""
    rows = _global(16, waves=100, lanes=6400, bytes=102400, transactions=3200, least=800, stride=16)
    found = _advice(FMA, ("global_load_dwordx4 v[0:3], v[4:5], off", 100, 64, rows))
    (told,) = [one for one in found if "would do" in one]
    assert "3200 transactions where 800 would do: 25% of the moved bytes are used" in told
    assert "rows of 32 bytes have gaps between them" in told and "up to 128 bytes" in told
    # Where no line is known the instruction says which access is meant.
    assert told.startswith("global_load_dwordx4 v[0:3], v[4:5], off: 3200 transactions")


@pytest.mark.rocm
def test_statements_of_an_unrolled_loop_are_one_advice():
    """None of the sixteen makes a tenth of what is moved."""
    found = report(*_unrolled())
    told = [one.what for one in found.advice if "would do" in one.what]
    assert len(told) == 1 and told[0].startswith("1024 transactions where 32 would do")


def _unrolled():
    """Each of 64 lanes sums up sixteen elements of a row of its own."""
    a, k = rc.placeholder((64, 512), name="A"), rc.reduce_axis((0, 16), name="k")
    b = rc.compute((64,), lambda i: rc.sum(a[i, k * 32], axis=k), name="B")
    s = rc.create_schedule(b)
    s[b].bind(b.op.axis[0], rc.thread_axis("threadIdx.x"))
    s[b].unroll(k)
    return s, [a, b]


@pytest.mark.rocm
def test_bank_conflicts_are_gone_with_storage_align():
    conflicts = [
        [
            one
            for one in report(*transposed(is_naive=False, align=align)).advice
            if "banks" in one.what
        ]
        for align in (0, 32)
    ]
    ((advice,), nothing) = conflicts
    assert nothing == []
    assert "s[A.shared].storage_align(s[A.shared].op.axis[0], 32, 1)" in advice.remedy
    assert "reads of shared memory wait 3968 of 4096 clocks" in advice.what


@pytest.mark.rocm
def test_advice_on_a_product_without_contraction_names_it():
    found = [one.remedy for one in report(*product(), contract=False).advice]
    assert any("contract=True" in remedy and "--contract" in remedy for remedy in found)
    assert not any("contract=True" in one.remedy for one in report(*product()).advice)


def test_narrow_accesses():
    dense = _global(waves=100, lanes=6400, bytes=25600, transactions=200, least=200, stride=4)
    some = ("v_fma_f32 v0, v1, v2, v3", 1000, 64, None)
    (told,) = _advice(some, (LOAD, 100, 64, dense))
    assert "100 loads of 4 bytes a lane" in told
    assert "split the loop over the last axis once more, by 4, and vectorize" in told
    wide = replace(dense, size=16, stride=16)
    assert _advice(some, ("global_load_dwordx4 v[0:3], v[4:5], off", 100, 64, wide)) == []
    # Where moving data takes a fiftieth of the time, it does not matter how.
    assert _advice(MANY, (LOAD, 100, 64, dense)) == []


def test_updates_of_the_same_elements():
    update = _global(
        is_atomic=True, waves=100, lanes=6400, bytes=25600, transactions=100, least=200
    )
    (told,) = _advice(MANY, ("global_atomic_add v0, v1, s[0:1]", 100, 64, update))
    assert "6400 updates of memory" in told and "rfactor" in told


def test_shared_memory_as_the_limit():
    read = MemoryTraffic("shared", 16, False, False, waves=50, lanes=3200, clocks=400)
    (told,) = _advice(FMA, ("ds_read_b128 v[0:3], v4", 50, 64, read))
    assert told.startswith("shared memory is the limit (estimate): multiply-adds alone take")
    assert "registers" in told


def test_few_multiply_adds():
    (told,) = _advice(FMA, ("v_add_u32 v0, v1, v2", 300, 64, None))
    assert told.startswith("multiply-adds: 100 of 400 vector instructions: unroll")


def test_loops_that_only_count():
    (told,) = _advice(FMA, ("s_add_u32 s0, s0, 1", 200, 64, None))
    assert told.startswith("200 of 300 instructions count loops, branch and wait")
    (told,) = _advice(FMA, ("s_add_u32 s0, s0, 1", 120, 64, None))  # more than all others
    assert told.startswith("120 of 220 instructions count loops")
    load = ("global_load_dwordx4 v[0:3], v[4:5], off", 200, 64, None)
    assert not any("count loops" in told for told in _advice(FMA, load))


def test_lanes_that_are_off():
    (told,) = _advice(("v_fma_f32 v0, v1, v2, v3", 100, 16, None))
    assert told.startswith("25% of the lanes") and "multiples of 64 threads" in told


def test_scratch():
    access = MemoryTraffic("private", 4, False, False, waves=10, lanes=640)
    (told,) = _advice(FMA, ("scratch_load_dword v0, v1, off", 10, 64, access))
    assert told.startswith("10 accesses to a lane's own memory")


@pytest.mark.parametrize(
    ("limit", "remedy"),
    [
        ("vector registers", "fewer elements"),
        ("shared memory", "smaller tiles"),
        ("barriers", "more"),
    ],
)
def test_few_waves(limit, remedy):
    taken = AmdResources("k", 256, 0, 32, 0, 0, 0, 0, 256, 2, limit)
    (told,) = _advice(FMA, resources=taken)
    assert f"2 waves a SIMD at a time (estimate), limited by {limit}" in told and remedy in told
    assert _advice(FMA, resources=replace(taken, waves=4)) == []


def test_few_groups():
    (told,) = _advice(FMA, groups=16)
    assert told.startswith(
        "compute units of the MI300X at work: 16 of 304 on average, SIMDs: 64 of 1216"
    )
    assert "more, smaller groups" in told


def test_small_groups():
    (told,) = _advice(FMA, waves=304)
    assert "SIMDs: 304 of 1216" in told and "more threads in a group: 4 waves of 64" in told


def test_memory_as_the_limit():
    (told,) = _advice(FMA, read=10**9)
    assert told.startswith("memory is the limit (estimate): multiply-adds alone take 0%")
    access = _global(16, waves=100, lanes=6400, bytes=1024, transactions=800, least=800)
    (told,) = _advice(FMA, FMA, ("global_load_dwordx4 v[0:3], v[4:5], off", 100, 64, access))
    assert told.startswith("the L1 cache is the limit") and "shared memory" in told


def _advice_of_ptx(text, access, **counts):
    """Of one warp that computes and accesses memory, in so many blocks that the H100 is busy."""
    kernel = KernelCounts(
        "k", "sm_90", 32, 32, groups=132, waves=528, launches=1, isa=PTX, **counts
    )
    for number, (name, one) in enumerate((("fma.rn.f32", None), (text, access))):
        opcode, *modifiers = name.split(".")
        counted = CountedPtx(name, number, "", opcode, tuple(modifiers))
        kernel.by_number[number] = InstructionCounts(counted, 1, 32, one, isa=PTX)
    taken = NvidiaResources(
        *("k", "sm_90", 255, 0, 0, 0, 0, 0, 0, 1, 128), blocks=1, warps=4, limit="barriers",
        advice="",
    )  # fmt: skip
    bound = bound_of(kernel, CARDS["H100 SXM"])
    found = advise(RuleInputs(kernel, list_kernel(kernel, {}), taken, bound))
    return [f"{advice.what}: {advice.remedy}" for advice in found]


def test_advice_on_nvidia_gpus_is_in_nvidias_words_and_numbers():
    costs = {"waves": 1, "lanes": 32, "bytes": 128, "transactions": 4, "least": 4, "stride": 4}
    store = MemoryTraffic("global", 4, True, False, **costs)
    told = _advice_of_ptx("st.global.f32", store)
    assert any("st.global.f32: 1 store of 4 bytes a lane" in one for one in told)
    assert any("let the threads of a block share what they read" in one for one in told)
    assert any(
        "1 warp a scheduler at a time (estimate), limited by barriers: more threads in a block"
        in one
        for one in told
    )
    update = replace(store, is_store=False, is_atomic=True, transactions=1, bytes=4)
    told = _advice_of_ptx("red.global.add.f32", update)
    assert any("32 updates of memory" in one and "each block or thread" in one for one in told)
    assert not any("group" in one for one in told)


def test_products_of_halves_without_matrix_instructions():
    (told,) = _advice(("v_pk_fma_f16 v0, v1, v2, v3", 100, 64, None))
    assert "tensorize" in told


def test_the_greatest_part_comes_first():
    found = _advice(
        ("v_fma_f32 v0, v1, v2, v3", 100, 16, None), ("v_mov_b32 v0, v1", 300, 16, None)
    )
    assert "multiples of 64" in found[0] or "multiply-adds: " in found[0]
    assert len(found) == 2
