"""Blocks of a function, and where its registers live."""

from refcomp.emulator.ptx.text.parse import read_ptx
from refcomp.emulator.ptx.translation.flow import FunctionFlow
from tests.emulator.ptx.texts import kernel

_LOOP = """
mov.u32 %r2, 0;
L: add.u32 %r2, %r2, %r1;
setp.lt.u32 %p1, %r2, 9;
@%p1 bra L;
@%p1 mov.u32 %r3, 1;
st.global.u32 [%rd1], %r3;
ret;
"""


def _flow(body):
    return FunctionFlow(read_ptx(kernel(body)).functions["k"])


def _names(flow, bits):
    return {name for name, number in flow.numbers.items() if bits >> number & 1}


def test_blocks_begin_at_labels_and_behind_branches():
    flow = _flow(_LOOP)
    assert {begin: one.following for begin, one in flow.blocks.items()} == {
        0: (3,),
        3: (3, 6),
        6: (),
    }


def test_registers_live_until_they_are_last_read():
    flow = _flow(_LOOP)
    assert _names(flow, flow.live_in[3]) == {"%r1", "%r2", "%rd1", "%r3"}
    assert _names(flow, flow.live_in[6]) == {"%p1", "%rd1", "%r3"}
    assert _names(flow, flow.live_before(flow.blocks[0], 2)) == {"%r1", "%rd1", "%r3"}


def test_a_predicated_instruction_may_leave_a_register_unwritten():
    flow = _flow(_LOOP)
    assert _names(flow, flow.unsure) == {"%r3"}


def test_instructions_of_a_loop_weigh_more():
    assert _flow(_LOOP).weight == 3 + 3 * 8 + 3


def test_branches_to_one_head_are_one_loop():
    turns = "add.u32 %r2, %r2, 1; @%p1 bra L; " * 3000
    assert _flow(f"L: {turns} ret;").weight == 2 + 6000 * 8 + 1


def test_a_deep_nest_weighs_as_much_as_three_loops():
    heads = " ".join(f"L{n}: add.u32 %r2, %r2, 1;" for n in range(5))
    ends = " ".join(f"@%p1 bra L{n};" for n in reversed(range(5)))
    expected = 2 + 8 + 64 + 3 * 512 + 3 * 512 + 64 + 8 + 1
    assert _flow(f"{heads} {ends} ret;").weight == expected
