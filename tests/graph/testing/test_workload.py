"""Networks with random parameters, and the examples of this room."""

import doctest
import inspect
from collections.abc import Iterator

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError
from refcomp.graph.testing.initializers import ConstantInitializer
from refcomp.graph.testing.workload import create_workload, random_parameters

NET = rc.sym.dense(rc.sym.Variable("data"), units=3, name="fc")


def pages() -> Iterator[tuple[str, str]]:
    """Yield the docstring of each public function and class that has an example."""
    room = rc.graph.testing
    yield "testing", room.__doc__ or ""
    for name in room.__all__:
        value = getattr(room, name)
        members = [value.get_symbol] if inspect.ismodule(value) else [value]
        yield from ((name, inspect.getdoc(member) or "") for member in members)


@pytest.mark.parametrize(("name", "page"), list(pages()))
def test_example_gives_what_the_page_shows(name: str, page: str) -> None:
    found = doctest.DocTestParser().get_doctest(page, {"rc": rc, "np": np}, name, None, None)
    assert found.examples
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    runner.run(found, out=report.append)
    assert runner.failures == 0, "".join(report)


def test_seeds_decide_all_parameters() -> None:
    _, first = create_workload(NET, 2, (8,))
    _, again = create_workload(NET, 2, (8,), seed=0)
    _, other = create_workload(NET, 2, (8,), seed=1)
    assert list(first) == ["fc_weight", "fc_bias"]
    np.testing.assert_array_equal(first["fc_weight"].asnumpy(), again["fc_weight"].asnumpy())
    assert (first["fc_weight"].asnumpy() != other["fc_weight"].asnumpy()).all()


def test_dtype_and_initializer_are_chosen() -> None:
    net, params = create_workload(NET, 2, (8,), "float16", ConstantInitializer(0.5))
    assert net is NET
    assert {array.dtype for array in params.values()} == {"float16"}
    assert (params["fc_weight"].asnumpy() == 0.5).all()
    assert (params["fc_bias"].asnumpy() == 0).all()


def test_variable_may_name_its_initializer() -> None:
    weight = rc.sym.Variable("w", init="ones")
    net = rc.sym.dense(rc.sym.Variable("x"), weight, units=3, use_bias=False)
    (params,) = random_parameters(net, {"x": (2, 4)}).values()
    assert (params.asnumpy() == 1).all()
    wrong = rc.sym.dense(rc.sym.Variable("x"), rc.sym.Variable("w", init="one"), units=3)
    with pytest.raises(UserError, match="no initializer is called 'one'"):
        random_parameters(wrong, {"x": (2, 4)})


def test_other_networks_are_refused() -> None:
    with pytest.raises(UserError, match="a int is not a network"):
        create_workload(3)
    with pytest.raises(UserError, match="the symbol has no variable 'data'"):
        create_workload(rc.sym.exp(rc.sym.Variable("x")))
