"""`tvm.build_config`: each classic option is followed, or refused with what to write instead."""

import pytest

import refcomp as rc
from refcomp.classic.options import OPTIONS, ClassicSettings, build_config, classic_settings
from refcomp.foundation.errors import UserError
from refcomp.foundation.options import current_options

# Values that refcomp follows by itself: the classic defaults, and what changes no result.
FOLLOWED = {
    "auto_unroll_max_step": 0,
    "auto_unroll_max_depth": 8,
    "auto_unroll_max_extent": 0,
    "unroll_explicit": True,
    "detect_global_barrier": False,
    "partition_const_loop": True,
    "offset_factor": 1,
    "data_alignment": 64,
    "restricted_func": True,
    "double_buffer_split_loop": 1,
    "add_lower_pass": None,
    "dump_pass_ir": False,
    "instrument_bound_checkers": False,
    "disable_select_rewriting": False,
    "disable_vectorize": False,
    "disable_assert": False,
}
REFUSED = {
    "auto_unroll_max_extent": (4, "s[T].unroll(axis)"),
    "detect_global_barrier": (True, "build a kernel for each part"),
    "restricted_func": (False, "give each argument memory of its own"),
    "double_buffer_split_loop": (2, "split the loop by 2"),
    "dump_pass_ir": (True, "REFCOMP_DUMP=folder"),
    "disable_select_rewriting": (True, "if_then_else"),
    "disable_vectorize": (True, "leave out s[T].vectorize(axis)"),
    "disable_assert": (True, "each call checks its arguments"),
}


def test_every_option_has_a_case() -> None:
    assert sorted(FOLLOWED) == sorted(OPTIONS)
    refusable = {name for name, option in OPTIONS.items() if option.accepted is not None}
    assert set(REFUSED) == refusable


def test_values_that_refcomp_follows_change_nothing() -> None:
    before = current_options()
    with build_config(**FOLLOWED) as options:
        assert options == current_options() == before


@pytest.mark.parametrize("name", REFUSED)
def test_other_values_are_refused_with_what_to_write(name: str) -> None:
    value, remedy = REFUSED[name]
    with pytest.raises(UserError) as info, build_config(**{name: value}):
        pass
    assert info.value.what == f"refcomp has no build option {name}={value!r}"
    assert remedy in info.value.remedy


def test_bounds_are_checked_under_the_classic_name() -> None:
    with build_config(instrument_bound_checkers=True) as options:
        assert options.check_bounds
        assert current_options().check_bounds
    assert not current_options().check_bounds


def test_options_of_refcomp_are_taken_too() -> None:
    with build_config(contract=True, offset_factor=1) as options:
        assert options.contract
    with pytest.raises(UserError, match="contract"), build_config(contract=3):
        pass


def test_settings_of_lowering_last_as_long_as_the_scope() -> None:
    with build_config(auto_unroll_max_step=16, offset_factor=4):
        with build_config(unroll_explicit=False, auto_unroll_max_step=8):
            assert classic_settings() == ClassicSettings(8, False, 4)
        passes = [(2, print), [1, repr]]
        with build_config(add_lower_pass=passes):
            assert classic_settings().add_lower_pass == ((1, repr), (2, print))
        assert classic_settings() == ClassicSettings(16, True, 4)
    assert classic_settings() == ClassicSettings()


@pytest.mark.parametrize(
    ("name", "value", "remedy"),
    [
        ("auto_unroll_max_step", -1, "pass an int of at least 0"),
        ("auto_unroll_max_step", "16", "pass an int of at least 0"),
        ("offset_factor", 2.0, "pass an int of at least 0"),
        ("unroll_explicit", 2, "pass True or False"),
        ("unroll_explicit", None, "pass True or False"),
        ("add_lower_pass", print, "pass a list of tuples (phase, function), as [(1, my_pass)]"),
        ("add_lower_pass", [print], "pass a list of tuples (phase, function), as [(1, my_pass)]"),
        ("add_lower_pass", [(1, 2)], "pass a list of tuples (phase, function), as [(1, my_pass)]"),
    ],
)
def test_settings_of_another_type_are_refused(name: str, value: object, remedy: str) -> None:
    with pytest.raises(UserError) as info, build_config(**{name: value}):
        pass
    assert info.value.what == f"the build option {name} cannot be {value!r}"
    assert info.value.remedy == remedy
    assert classic_settings() == ClassicSettings()


def test_unknown_options_are_refused_with_the_nearest() -> None:
    unknown = build_config(unroll_explicitly=True)
    with pytest.raises(UserError, match="unknown build option 'unroll_expl") as info, unknown:
        pass
    assert info.value.remedy.startswith("did you mean unroll_explicit? options: ")
    assert rc.classic.build_config is build_config
