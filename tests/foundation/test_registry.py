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


def test_functions_take_and_return_values_of_all_kinds(name):
    array = refcomp.nd.array([1.0, 2.0])
    refcomp.register_func(name, lambda *args, **named: (args, named))
    given = (b"bytes", bytearray(b"ab"), "text", None, array, 2**70, [1, {"k": 2}])
    args, named = refcomp.get_global_func(name)(*given, key=array)
    assert all(found is item for found, item in zip(args, given, strict=True))
    assert named["key"] is array


def test_functions_take_and_return_functions(name):
    def compose(f, g):
        return lambda x: f(g(x))

    refcomp.register_func(name, compose)
    composed = refcomp.get_global_func(name)(lambda x: x + 1, lambda x: 2 * x)
    assert composed(5) == 11
    refcomp.register_func(name, composed, override=True)
    assert refcomp.get_global_func(name)(6) == 13
    assert refcomp.convert(composed) is composed


def test_a_built_function_is_registered_and_called_by_compiled_code(name):
    a = refcomp.placeholder((3,), name="A")
    b = refcomp.compute((3,), lambda i: a[i] * 2.0, name="B")
    refcomp.register_func(name, refcomp.build(refcomp.create_schedule(b), [a, b], target="interp"))
    call = lambda ins, outs: refcomp.call_packed(name, ins[0], outs[0])  # noqa: E731
    c = refcomp.extern((3,), [a], call, name="C")
    module = refcomp.build(refcomp.create_schedule(c), [a, c], target="interp")
    found = refcomp.nd.array([0.0, 0.0, 0.0], dtype="float32")
    module(refcomp.nd.array([1, 2, 3], dtype="float32"), found)
    assert found.asnumpy().tolist() == [2, 4, 6]
