"""Registers in the text of a unit: where they are kept, and what is read once."""

from refcomp.emulator.machine.registers import FIRST_VECTOR, SCC
from refcomp.emulator.translation.names import Lines
from refcomp.emulator.translation.steps import ResultPlace, SourceValue
from refcomp.emulator.translation.texts import load_texts
from refcomp.emulator.translation.values import Loop, ScalarValues, Scratch, VectorValues

V = FIRST_VECTOR
TEXTS = load_texts(8)


def _scalars() -> ScalarValues:
    return ScalarValues(Lines(TEXTS.frame, "w"), Scratch())


def _vectors(**options) -> VectorValues:
    scalars = _scalars()
    given = {"kept": frozenset(), "is_masked": False, "has_shadow": False, **options}
    return VectorValues(texts=TEXTS, lanes=64, scalars=scalars, scratch=scalars.scratch, **given)


def _loop() -> Loop:
    return Loop("loop1", Lines(TEXTS.frame, "l"))


def test_a_scalar_register_is_loaded_once_and_written_at_the_end():
    scalars = _scalars()
    assert scalars.read(SourceValue("u32", 5)) == scalars.read(SourceValue("u32", 5))
    scalars.write(ResultPlace("u64", 6), "%x")
    assert scalars.read(SourceValue("u64", 6)) == "%x"
    assert "store" not in scalars.lines.text()
    scalars.write(ResultPlace("scc", SCC), "%y")
    scalars.commit()
    assert scalars.lines.text().count("store i32") == 2
    assert scalars.lines.text().count("store i8") == 1


def test_constants_are_numbers_with_a_sign():
    assert _scalars().read(SourceValue("u32", None, 0xFFFFFFFF)) == "-1"
    assert _scalars().read(SourceValue("u64", None, 5)) == "5"


def test_a_scalar_is_spread_over_the_lanes_once():
    vectors, loop = _vectors(), _loop()
    first = vectors.read(loop, SourceValue("f32", 5))
    second = vectors.read(loop, SourceValue("f32", 5))
    assert first != second  # casts
    assert loop.lines.text().count("insertelement") == 1


def test_a_register_that_is_read_and_written_goes_to_scratch_memory():
    for kept, place in ((frozenset({V}), "%scratch"), (frozenset(), "%loop1.v")):
        vectors, loop = _vectors(kept=kept), _loop()
        vectors.write(loop, ResultPlace("u32", V), vectors.read(loop, SourceValue("u32", V)))
        vectors.close(loop)
        tail = loop.lines.text()[-160:]
        assert place in tail and "store" in tail


def test_inactive_lanes_keep_their_values():
    vectors, loop = _vectors(is_masked=True), _loop()
    vectors.write(loop, ResultPlace("u64", V), "%x")
    vectors.close(loop)
    assert loop.lines.text().count("select") == 2


def test_undefined_bits_of_all_that_is_read_are_collected():
    vectors, loop = _vectors(has_shadow=True), _loop()
    vectors.read(loop, SourceValue("u64", V))
    assert loop.undefined and loop.lines.text().count("%loop1.u") == 2


def test_half_a_register_can_stay():
    vectors, loop = _vectors(), _loop()
    vectors.write(loop, ResultPlace("f16", V, keeps_high=True), "%x")
    assert "-65536" in loop.lines.text()


def test_a_mask_of_the_loop_is_used_as_it_is():
    vectors, loop = _vectors(), _loop()
    vectors.write(loop, ResultPlace("mask64", 106), "%m")
    assert vectors.read(loop, SourceValue("mask64", 106)) == "%m"
    assert vectors.read(loop, SourceValue("mask64", None, -1)) == TEXTS.expand("$[i1 true]")
