"""Modules of translated code, compiled at once or beside the interpreter."""

import multiprocessing
import subprocess
import sys
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


_AFTER_THE_MAIN_THREAD = """
import threading
from collections import defaultdict
from types import SimpleNamespace

def work():
    threading.main_thread().join()
    from refcomp.emulator.translation.compilation import (
        Compilable, Compilations, HostTools, WantedVariant
    )
    class Code(Compilable):
        def text(self, variant, name, width):
            return name
    tools = HostTools(lambda text: defaultdict(SimpleNamespace), lambda: 8, is_concurrent=True)
    compilations = Compilations(tools)
    code = Code(100)
    for variant in range(2):
        compilations.begin([WantedVariant(code, variant)])
    compilations.collect(is_waiting=True)
    print(*code.functions)

threading.Thread(target=work).start()
"""


def test_code_is_compiled_after_the_main_thread_has_ended():
    command = [sys.executable, "-c", _AFTER_THE_MAIN_THREAD]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == ("0 1\n", "")


def test_modules_are_compiled_one_after_the_other():
    may_end = Event()
    log = []

    def compile_text(text):
        log.append("begin")
        assert may_end.wait(60)
        log.append("end")
        return defaultdict(_Function)

    compilations = Compilations(HostTools(compile_text, lambda: 8, is_concurrent=True))
    code = _Code(100)
    for variant in (_PLAIN, _MASKED):
        compilations.begin([WantedVariant(code, variant)])
    may_end.set()
    compilations.collect(is_waiting=True)
    assert log == ["begin", "end"] * 2
    assert code.functions.keys() == {_PLAIN, _MASKED}


def test_a_forked_process_compiles_again():
    may_end = Event()

    def compile_text(text):
        assert may_end.wait(60)
        return defaultdict(_Function)

    compilations = Compilations(HostTools(compile_text, lambda: 8, is_concurrent=True))
    code = _Code(100)
    compilations.begin([WantedVariant(code, _PLAIN)])

    def continue_forked():
        may_end.set()
        compilations.collect()
        assert not code.begun
        compilations.begin([WantedVariant(code, _PLAIN)])
        compilations.collect(is_waiting=True)
        assert code.functions.keys() == {_PLAIN}

    child = multiprocessing.get_context("fork").Process(target=continue_forked)
    child.start()
    child.join(60)
    code_of_child = child.exitcode
    child.kill()
    may_end.set()
    compilations.collect(is_waiting=True)
    assert code_of_child == 0
    assert code.functions.keys() == {_PLAIN}
