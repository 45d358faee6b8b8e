import threading

import pytest

import refcomp
from refcomp.foundation.errors import UserError
from refcomp.foundation.registry import remove_global_func


@pytest.fixture
def name():
    yield "tests.registry.f"
    remove_global_func("tests.registry.f")


def test_a_function_is_found_by_its_name(name):
    def f():
        return 3

    assert refcomp.register_func(name, f) is f
    assert refcomp.get_global_func(name) is f
    assert name in refcomp.list_global_func_names()


def test_a_decorator_registers(name):
    @refcomp.register_func(name)
    def f():
        return 4

    assert refcomp.get_global_func(name)() == 4


def test_a_bare_decorator_takes_the_functions_own_name():
    @refcomp.register_func
    def function_of_its_own_name():
        return 5

    assert refcomp.get_global_func("function_of_its_own_name") is function_of_its_own_name
    remove_global_func("function_of_its_own_name")


def test_a_name_is_taken_once_unless_overridden(name):
    refcomp.register_func(name, min)
    with pytest.raises(UserError, match=f"a function '{name}' is registered already") as caught:
        refcomp.register_func(name, max)
    assert "override=True" in str(caught.value) and "built-in function min" in str(caught.value)
    assert refcomp.get_global_func(name) is min
    refcomp.register_func(name, max, override=True)
    assert refcomp.get_global_func(name) is max


def test_a_missing_function(name):
    assert refcomp.get_global_func(name, allow_missing=True) is None
    refcomp.register_func(name, min)
    with pytest.raises(UserError, match="no function 'tests.registry.g' is registered") as caught:
        refcomp.get_global_func("tests.registry.g")
    assert "did you mean tests.registry.f?" in str(caught.value)


@pytest.mark.parametrize("wrong", ["", "1f", "a b", "a;b", 'a"', "a\n", "é", "x" * 121, 3])
def test_a_name_is_an_identifier(wrong):
    with pytest.raises(UserError, match="is not a name for a function"):
        refcomp.register_func(wrong, min)


def test_what_cannot_be_called_is_refused(name):
    with pytest.raises(UserError, match="3 cannot be registered as 'tests.registry.f'"):
        refcomp.register_func(name, 3)


def test_of_several_threads_one_gets_the_name(name):
    won, barrier = [], threading.Barrier(8)

    def register(k):
        barrier.wait()
        try:
            refcomp.register_func(name, lambda: k)
            won.append(k)
        except UserError:
            pass

    threads = [threading.Thread(target=register, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1 and refcomp.get_global_func(name)() == won[0]


def test_names_are_listed_in_order(name):
    refcomp.register_func(name, min)
    names = refcomp.list_global_func_names()
    assert names == sorted(names)
