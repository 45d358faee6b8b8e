from threading import Thread

import pytest

import refcomp
from refcomp.foundation.errors import UserError
from refcomp.foundation.options import BuildOptions, current_options, is_certify_in_environment

_ASKED_BY = [
    ("REFCOMP_CERTIFY", "certify"),
    ("REFCOMP_CHECK_BOUNDS", "check_bounds"),
    ("REFCOMP_VERIFY_STEPS", "verify_steps"),
]


@pytest.fixture(autouse=True)
def silent_environment(monkeypatch):
    for variable, _ in _ASKED_BY:
        monkeypatch.delenv(variable, raising=False)


def test_nothing_is_licensed_by_default():
    assert current_options() == BuildOptions()
    assert not current_options().contract


@pytest.mark.parametrize(("variable", "option"), _ASKED_BY)
@pytest.mark.parametrize(("text", "asked"), [("1", True), ("", False), ("0", False)])
def test_the_environment_may_ask_for_an_option(variable, option, text, asked, monkeypatch):
    monkeypatch.setenv(variable, text)
    assert current_options() == BuildOptions(**{option: asked})
    assert is_certify_in_environment() is (asked and option == "certify")
    with refcomp.build_options(**{option: False}):
        assert current_options() == BuildOptions()


@pytest.mark.parametrize("variable", [variable for variable, _ in _ASKED_BY])
@pytest.mark.parametrize("text", ["yes", "no", "2", " 1", "x" * 5000])
def test_another_wish_is_refused(variable, text, monkeypatch):
    monkeypatch.setenv(variable, text)
    with pytest.raises(UserError, match=f"^{variable} is '.*which is neither 0 nor 1") as caught:
        current_options()
    assert f"where: environment variable {variable}" in str(caught.value)
    assert len(str(caught.value)) < 300


def test_scopes_nest_and_end():
    with refcomp.build_options(contract=True) as outer:
        assert outer == current_options() == BuildOptions(contract=True)
        assert not outer.narrow_indices
        with refcomp.build_options(contract=False):
            assert not current_options().contract
        with refcomp.build_options():
            assert current_options().contract
    assert not current_options().contract


def test_a_scope_ends_with_an_error_too():
    with pytest.raises(ZeroDivisionError), refcomp.build_options(contract=True):
        raise ZeroDivisionError
    assert not current_options().contract


def test_another_thread_has_scopes_of_its_own():
    seen = []
    with refcomp.build_options(contract=True):
        thread = Thread(target=lambda: seen.append(current_options().contract))
        thread.start()
        thread.join()
    assert seen == [None]


def test_what_is_no_option_is_refused():
    with (
        pytest.raises(
            UserError,
            match=r"unknown build option 'fast'(.|\n)*options: contract, .*certify, check_bounds",
        ),
        refcomp.build_options(fast=True),
    ):
        pass
    with (
        pytest.raises(UserError, match=r"contract is 'yes'(.|\n)*pass True or False"),
        refcomp.build_options(contract="yes"),
    ):
        pass
