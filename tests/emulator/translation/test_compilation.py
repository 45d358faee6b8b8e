"""Modules of translated code, compiled at once or beside the interpreter."""

from collections import defaultdict
from threading import Event

import pytest

from refcomp.emulator.translation.compilation import (
    Compilable,
    Compilations,
    HostTools,
    WantedVariant,
)
from refcomp.emulator.translation.printer import Variant
from refcomp.foundation.errors import ToolchainError

_PLAIN = Variant(is_masked=False, is_checked=False, has_shadow=False)
_MASKED = Variant(is_masked=True, is_checked=False, has_shadow=False)


class _Code(Compilable):
    numbers = 1

    def text(self, variant, name, width):
        return f"{name} by {width}\n"


class _Function:
    pass


def test_functions_appear_once_their_module_is_collected():
    begun, may_end = Event(), Event()

    def compile_text(text):
        begun.set()
        assert may_end.wait(60)
        return defaultdict(_Function)

    compilations = Compilations(HostTools(compile_text, lambda: 8, is_concurrent=True))
    code = _Code(100)
    compilations.begin([WantedVariant(code, _PLAIN)])
    assert begun.wait(60)
    compilations.collect()
    assert code.begun == {_PLAIN}
    assert not code.functions
    may_end.set()
    compilations.collect(is_waiting=True)
    assert code.functions.keys() == {_PLAIN}
    assert len(code.functions[_PLAIN].argtypes) == 2  # the state and a number


def test_a_module_holds_all_variants_that_are_wanted():
    texts = []

    def compile_text(text):
        texts.append(text)
        return defaultdict(_Function)

    compilations = Compilations(HostTools(compile_text, lambda: 16))
    code = _Code(100)
    compilations.begin([])
    assert not texts
    compilations.begin([WantedVariant(code, _PLAIN), WantedVariant(code, _MASKED)])
    assert code.functions.keys() == {_PLAIN, _MASKED}
    (text,) = texts
    assert text.endswith("unit0 by 16\nunit1 by 16\n")


def test_a_variant_is_wanted_once_enough_was_spent_on_it():
    code = _Code(100)
    code.spent_ns = {_PLAIN: 60, _MASKED: 160}
    assert code.wanted(1) == [_MASKED]
    assert code.wanted(0.5) == [_PLAIN, _MASKED]
    code.begun.add(_MASKED)
    assert code.wanted(0.5) == [_PLAIN]


def _missing(text=""):
    raise ToolchainError("no compiler", remedy="install one")


@pytest.mark.parametrize(
    "tools",
    [
        HostTools(_missing, lambda: 8),
        HostTools(_missing, lambda: 8, is_concurrent=True),
        HostTools(_missing, _missing),
    ],
)
def test_a_tool_that_fails_is_reported_once(caplog, tools):
    compilations = Compilations(tools)
    code = _Code(100)
    for variant in (_PLAIN, _MASKED):
        compilations.begin([WantedVariant(code, variant)])
    compilations.collect(is_waiting=True)
    assert compilations.is_broken
    assert not code.functions
    (record,) = caplog.records
    assert "all emulated code is interpreted" in record.getMessage()


def test_other_errors_are_raised():
    def compile_text(text):
        raise ZeroDivisionError

    compilations = Compilations(HostTools(compile_text, lambda: 8, is_concurrent=True))
    with pytest.raises(ZeroDivisionError):  # of whichever comes after the end of the tools
        compilations.begin([WantedVariant(_Code(100), _PLAIN)])
        compilations.collect(is_waiting=True)
