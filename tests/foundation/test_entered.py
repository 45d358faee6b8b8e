import threading
from contextlib import ExitStack

import pytest

from refcomp.foundation.errors import UserError
from refcomp.foundation.target import Target, current_target

GPU = Target("opencl")
HOST = Target("llvm")


def within(target):
    with target:
        yield current_target()


def test_a_generator_may_end_inside_of_a_later_statement():
    generator = within(GPU)
    assert next(generator) == GPU
    with HOST:
        assert list(generator) == []
        assert current_target() == HOST
    assert current_target() is None


def test_the_frame_tells_statements_of_one_object_apart():
    generator = within(GPU)
    next(generator)
    with HOST:
        with GPU:
            assert list(generator) == []
            assert current_target() == GPU
            with HOST:
                pass
            assert current_target() == GPU
        assert current_target() == HOST
    assert current_target() is None


def test_a_target_of_a_suspended_generator_does_not_stay_current():
    generator = within(GPU)
    message = (
        "the target llvm is left while opencl, which became current inside of it, (.|\n)*"
        "would stay the current target(.|\n)*finish or close the generator first"
    )
    with HOST, pytest.raises(UserError, match=message), HOST:
        next(generator)
    assert current_target() is None
    with pytest.raises(UserError, match="opencl is left where it is not current(.|\n)*`yield`"):
        next(generator)


def test_an_error_inside_is_not_hidden():
    generator = within(GPU)
    with pytest.raises(KeyError), HOST:
        next(generator)
        raise KeyError
    assert current_target() is None
    generator.close()
    assert current_target() is None


def test_a_closed_generator_leaves_its_target():
    with HOST:
        generator = within(GPU)
        next(generator)
        generator.close()
        assert current_target() == HOST
    assert current_target() is None


def test_an_exit_stack_enters_and_leaves_targets():
    with ExitStack() as stack:
        stack.enter_context(HOST)
        stack.enter_context(GPU)
        assert current_target() == GPU
        with HOST:
            stack.close()
            assert current_target() == HOST
    assert current_target() is None
    stack = ExitStack()
    with pytest.raises(UserError, match="or an ExitStack, holds"), HOST:
        stack.enter_context(GPU)
    assert current_target() is None


def test_a_statement_ends_in_its_own_thread():
    generator = within(GPU)
    thread = threading.Thread(target=next, args=(generator,))
    thread.start()
    thread.join()
    assert current_target() is None
    with HOST:
        with pytest.raises(UserError, match="opencl is left where it is not current"):
            next(generator)
        assert current_target() == HOST
