"""Wrong kernels are found twice: by the interpreter, and by Oclgrind, which runs their OpenCL C.

Neither knows of the other, so that what one of them does not see, or sees where nothing is, shows.
"""

import numpy as np
import pytest
from hypothesis import settings

from refcomp.ir.parser import parse_func
from refcomp.oracle.interpreter.interpret import InterpretError
from refcomp.oracle.lockstep.interpret import interpret, interpret_program
from refcomp.passes.flatten_storage import flatten_storage
from refcomp.passes.split_host_device import split_host_device
from tests.properties.broken_kernels import BROKEN, DIVERGENT, OUTSIDE, RACE, SOUND, UNWRITTEN
from tests.properties.oclgrind import drawn, run_watched
from tests.strategies.racy_kernels import kernel_texts

# What Oclgrind says where the interpreter says that.
_SAYS = {
    RACE: "data race",
    UNWRITTEN: "Uninitialized value",
    OUTSIDE: "Invalid ",
    DIVERGENT: "Work-group divergence",
}
NAMES = {f"{kernel.name}_{how.name}": (kernel, how) for kernel, how in BROKEN}


def _program(text, name):
    """The program of `text`, its function and so its kernels renamed to `name`."""
    rest = text.partition("(")[2]
    return split_host_device(flatten_storage(parse_func(f"func {name}({rest}")))


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    """What Oclgrind found in each kernel, sound (under its name) or broken, all in one process."""
    programs = {k.name: (_program(k.text, k.name), k.arguments()) for k in SOUND}
    for name, (kernel, how) in NAMES.items():
        programs[name] = _program(kernel.broken(how), name), kernel.arguments()
    return run_watched(programs, tmp_path_factory.mktemp("kernels"))


def _fault(function, *args):
    try:
        function(*args)
    except InterpretError as error:
        return error
    return None


def _is_told(error, how):
    return error is not None and any(word in error.what for word in how.told)


def test_there_are_breaks_of_every_kind():
    assert {word for _, how in BROKEN for word in how.told} == set(_SAYS)
    assert len(NAMES) == len(BROKEN) >= 12


@pytest.mark.parametrize("kernel", SOUND, ids=lambda kernel: kernel.name)
def test_the_interpreter_runs_the_sound_ones(kernel):
    nested, flat = kernel.arguments(), kernel.arguments()
    interpret(parse_func(kernel.text), nested)
    interpret_program(_program(kernel.text, kernel.name), flat)
    assert nested[-1].any()
    assert nested[-1].tolist() == flat[-1].tolist()


@pytest.mark.parametrize("name", NAMES)
def test_the_interpreter_finds_the_break(name):
    kernel, how = NAMES[name]
    error = _fault(interpret, parse_func(kernel.broken(how)), kernel.arguments())
    assert _is_told(error, how), error
    error = _fault(interpret_program, _program(kernel.broken(how), name), kernel.arguments())
    assert _is_told(error, how), error


@pytest.mark.oclgrind
@pytest.mark.parametrize("kernel", SOUND, ids=lambda kernel: kernel.name)
def test_oclgrind_finds_nothing_in_the_sound_ones(kernel, watched):
    args = kernel.arguments()
    interpret(parse_func(kernel.text), args)
    assert watched[kernel.name].findings == []
    assert watched[kernel.name].arrays[-1].tolist() == args[-1].tolist()


@pytest.mark.oclgrind
@pytest.mark.parametrize("name", NAMES)
def test_oclgrind_finds_the_break(name, watched):
    _, how = NAMES[name]
    said = watched[name].findings
    assert any(_SAYS[word] in line for word in how.told for line in said), said


@pytest.mark.oclgrind
def test_both_judges_agree_on_random_kernels(tmp_path, record_property):
    different = dict.fromkeys(drawn(kernel_texts(), 4 * settings.default.max_examples))
    texts = {f"drawn{i}": text for i, text in enumerate(different)}
    programs, faults = {}, {}
    for name, text in texts.items():
        args = [np.zeros(6, np.int32), np.arange(8, dtype=np.int32)]
        programs[name] = _program(text, name), [arg.copy() for arg in args]
        faults[name] = _fault(interpret_program, programs[name][0], args), args
    for name, watched in run_watched(programs, tmp_path).items():
        fault, args = faults[name]
        assert (fault is None) == (not watched.findings), (texts[name], fault, watched.findings)
        if fault is None:
            assert [a.tolist() for a in args] == [a.tolist() for a in watched.arrays]
    right = sum(fault is None for fault, _ in faults.values())
    record_property("summary", f"random kernels: {right} right, {len(texts) - right} wrong")
