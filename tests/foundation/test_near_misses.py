"""Names that are nearly known."""

from refcomp.foundation.near_misses import advise, did_you_mean

_GPUS = ["gfx90a", "gfx908", "gfx942", "gfx1100", "gfx1101"]


def test_the_nearest_names_are_suggested():
    assert did_you_mean("gfx942a", _GPUS).startswith("did you mean gfx942")
    assert did_you_mean("asmm", ["asm", "llvm"]) == "did you mean asm?"
    assert did_you_mean("gfx110", _GPUS).startswith("did you mean gfx1101, gfx1100 or ")


def test_case_does_not_matter():
    assert did_you_mean("ASM", ["asm", "llvm"]) == "did you mean asm?"
    assert did_you_mean("mi300x", ["MI300X", "MI210"]) == "did you mean MI300X?"


def test_nothing_is_suggested_where_nothing_is_near():
    assert did_you_mean("banana", _GPUS) == ""
    assert did_you_mean("", _GPUS) == ""


def test_a_name_that_differs_in_case_only_is_suggested_alone():
    assert (
        did_you_mean("threadIdx.X", ["threadIdx.x", "threadIdx.y"]) == "did you mean threadIdx.x?"
    )


def test_advice_begins_with_the_nearest_name():
    assert advise("shard", ["shared", "local"], "use one") == "did you mean shared? use one"
    assert advise("banana", ["shared", "local"], "use one") == "use one"


def test_advice_on_a_known_name_or_on_no_name_suggests_nothing():
    assert advise("local", iter(["shared", "local"]), "use one") == "use one"
    assert advise(7, ["shared", "local"], "use one") == "use one"
