"""Both kinds of GPU say of their instructions what a profile asks for."""

import pytest

from refcomp.emulator.observers.counting.mnemonics import AMD
from refcomp.emulator.ptx.observers.opcodes import PTX


@pytest.mark.parametrize("isa", [AMD, PTX])
def test_roles_are_classes_and_do_not_overlap(isa):
    multiplying = {isa.multiply, isa.matrix}
    roles = [multiplying, isa.arithmetic, isa.overhead, {isa.spilled}, isa.cached]
    named = [kind for role in roles for kind in role]
    assert len(named) == len({*named}) and {*named} <= {*isa.classes}
    assert multiplying | isa.arithmetic <= isa.of_lanes <= {*isa.classes}


def test_vendors_have_words_of_their_own():
    assert (AMD.words.wave, PTX.words.wave) == ("wave", "warp")
    assert (AMD.words.code, PTX.words.code) == ("ISA", "PTX")
