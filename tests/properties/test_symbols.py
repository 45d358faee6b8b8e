"""Random networks of symbols keep their meaning; damaged files of networks are refused in words."""

import json
import random
from collections.abc import Callable

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import RefcompError
from refcomp.graph.compiled import CompiledGraph
from refcomp.graph.evaluate import evaluate_graph
from refcomp.graph.params import load_param_dict, save_param_dict
from tests.graph.symbol.applied import numbers

SHAPE = (2, 4, 6)
sym = rc.sym

# Operators on whole and half numbers whose results are exact in any order. Each keeps the shape.
ONE = (
    sym.relu,
    sym.negative,
    sym.abs,
    sym.floor,
    sym.copy,
    lambda x: x + 1.5,
    lambda x: 2 - x,
    lambda x: sym.flip(x, axis=2),
    lambda x: sym.clip(x, a_min=-8, a_max=8),
    lambda x: sym.reshape(sym.reshape(x, shape=(0, -1)), shape=(0, 4, 6)),
    lambda x: sym.transpose(sym.transpose(x, axes=(2, 0, 1)), axes=(1, 2, 0)),
    lambda x: sym.concatenate(*reversed(list(sym.split(x, indices_or_sections=2))), axis=1),
    lambda x: sym.broadcast_add(x, sym.max(x, axis=1, keepdims=True)),
    lambda x: sym.broadcast_min(x, sym.slice_axis(x, axis=2, begin=1, end=2)),
)
TWO = (
    sym.elemwise_add,
    sym.elemwise_sub,
    sym.broadcast_max,
    sym.broadcast_min,
    sym.elemwise_sum,
    lambda x, y: sym.where(sym.broadcast_greater(x, y), x, y),
)


def network(chance: random.Random) -> sym.Symbol:
    """Return a random network of variables of one shape, with one to three outputs."""
    known = [sym.Variable(name) for name in "abc"]
    for _ in range(chance.randint(3, 12)):
        if chance.random() < 0.5:
            known.append(chance.choice(ONE)(chance.choice(known)))
        else:
            known.append(chance.choice(TWO)(chance.choice(known), chance.choice(known)))
    return sym.Group(known[-chance.randint(1, 3) :])


@pytest.mark.parametrize("seed", range(40))
def test_network_means_the_same_after_saving_and_building(seed: int) -> None:
    net = network(random.Random(seed))
    names = net.list_input_names()
    shapes = dict.fromkeys(names, SHAPE)
    feeds = {name: numbers(*SHAPE, seed=seed + place) for place, name in enumerate(names)}
    graph = net.to_graph(shapes)
    expected = evaluate_graph(graph, feeds)
    assert [array.shape for array in expected] == net.infer_shape(**shapes)[1]
    again = sym.load_json(net.json())
    assert str(again.to_graph(shapes)) == str(graph)
    # One variable is a parameter, which passes fold.
    params = {names[0]: feeds[names[0]]} if len(names) > 1 else None
    rest = {name: SHAPE for name in names if not params or name not in params}
    level = seed % 4
    with rc.graph.build_config(opt_level=level):
        compiled, lib, weights = rc.graph.build(again, "interp", rest, params=params)
    executor = rc.graph.executor.create(compiled.json(), lib)
    executor.load_params(save_param_dict(weights))
    made = executor.run({name: feeds[name] for name in rest})
    for actual, wanted in zip(made, expected, strict=True):
        np.testing.assert_array_equal(actual.asnumpy(), wanted, err_msg=f"{seed}\n{graph}")


JUNK = (None, True, -1, 0, 3, 2**70, 1.5, "", "x", "(1, 2)", "null", "relu", [], {}, [[0, 0, 0]])


def damaged(document: object, chance: random.Random) -> None:
    """Replace, delete or double one random item of a JSON document."""
    place = document
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = chance.choice(keys)
        inner = place[key]
        if isinstance(inner, dict | list) and inner and chance.random() < 0.8:
            place = inner
            continue
        match chance.randrange(3):
            case 0:
                place[key] = chance.choice(JUNK)
            case 1:
                del place[key]
            case _ if isinstance(place, list):
                place.insert(key, inner)
            case _:
                place[f"{key}{key}"] = inner
        return


def refusals(text: str, read: Callable[[str], object], seed: int, count: int) -> int:
    """Return how many damaged documents `read` refuses; any other failure is raised."""
    chance = random.Random(seed)
    refused = 0
    for _ in range(count):
        document = json.loads(text)
        for _ in range(chance.randint(1, 2)):
            damaged(document, chance)
        try:
            read(json.dumps(document))
        except RefcompError:
            refused += 1
    return refused


@pytest.mark.parametrize("seed", range(4))
def test_damaged_symbol_is_read_or_refused(seed: int) -> None:
    text = network(random.Random(seed)).json()

    def read(changed: str) -> None:
        net = sym.load_json(changed)
        net.infer_shape(**dict.fromkeys(net.list_input_names(), SHAPE))

    assert refusals(text, read, seed, 300) > 150


@pytest.mark.parametrize("seed", range(4))
def test_damaged_compiled_graph_is_read_or_refused(seed: int) -> None:
    net, params = rc.graph.testing.mlp.get_workload()
    shape = {"data": (1, 1, 28, 28)}
    compiled, lib, weights = rc.graph.build(net, "interp", shape, params=params)
    image = np.zeros(shape["data"], "float32")

    def read(changed: str) -> None:
        CompiledGraph.from_json(changed)
        executor = rc.graph.executor.create(changed, lib)
        executor.set_input(**weights)
        executor.plan_for({})
        executor.set_input("data", image)

    assert refusals(compiled.json(), read, seed, 100) > 60


@pytest.mark.parametrize("seed", range(4))
def test_damaged_parameters_are_read_or_refused(seed: int) -> None:
    chance = random.Random(seed)
    data = save_param_dict({"w": numbers(2, 3), "bias": numbers(2, dtype="int8")})
    refused = 0
    for _ in range(2000):
        changed = bytearray(data)
        for _ in range(chance.randint(1, 3)):
            changed[chance.randrange(len(changed))] = chance.choice([0, 1, 0x7F, 0x80, 0xFF])
        try:
            load_param_dict(bytes(changed))
        except RefcompError:
            refused += 1
    assert refused > 1000
