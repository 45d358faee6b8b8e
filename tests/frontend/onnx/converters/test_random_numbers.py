"""Random numbers differ from those of all other programs: types, shapes and moments are checked."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from refcomp import onnx_backend
from refcomp.foundation.errors import UserError
from refcomp.frontend.onnx import from_onnx
from refcomp.graph.evaluate import evaluate_graph
from tests.frontend.onnx.converters.cases import EVALUATOR, RUNTIME, NodeCase, check, versions

X = np.linspace(-1, 1, 24, dtype=np.float32).reshape(2, 3, 4)
LARGE = np.zeros((40, 50), np.float32)


def run(case: NodeCase) -> list[np.ndarray]:
    """Return the outputs, which are the same in two runs and by the meaning in numpy."""
    model = case.model()
    prepared = onnx_backend.prepare(model, "INTERP")
    made, again = (prepared.run(case.feeds()) for _ in range(2))
    meant = evaluate_graph(from_onnx(model.SerializeToString()), case.feeds())
    for one, other, third in zip(made, again, meant, strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_allclose(one.astype(float), third.astype(float), rtol=1e-3, atol=1e-6)
    return list(made)


DISTRIBUTIONS = [
    ("RandomNormal", {"mean": 3.0, "scale": 2.0}, 3, 2),
    ("RandomUniform", {"low": -1.0, "high": 5.0}, 2, 6 / 12**0.5),
]


DRAWN = [name for name, *_ in DISTRIBUTIONS]


@pytest.mark.parametrize("version", [1, 22])
@pytest.mark.parametrize("is_like", [False, True])
@pytest.mark.parametrize(("name", "parameters", "mean", "deviation"), DISTRIBUTIONS)
def test_distributions(name, parameters, mean, deviation, is_like, version):
    given = {**parameters, "seed": 4.0}
    if is_like:
        case = NodeCase(f"{name}Like", version, [LARGE], given)
    else:
        case = NodeCase(name, version, [], {**given, "shape": [40, 50]})
    (made,) = run(case)
    assert made.dtype == np.float32
    assert made.shape == (40, 50)
    assert abs(made.mean() - mean) < 0.15
    assert abs(made.std() - deviation) < 0.1


@pytest.mark.parametrize("version", [1, 22])
@pytest.mark.parametrize(
    ("code", "dtype"), [(TensorProto.DOUBLE, np.float64), (TensorProto.FLOAT16, np.float16)]
)
def test_types_of_random_numbers(code, dtype, version):
    given = {"dtype": code}
    whole = np.zeros((3, 4), np.int32)
    for name in ("RandomNormal", "RandomUniform"):
        for case in (
            NodeCase(name, version, [], {**given, "shape": [3, 4]}),
            NodeCase(f"{name}Like", version, [whole], given),
        ):
            (made,) = run(case)
            assert made.dtype == dtype
            assert made.shape == (3, 4)


def test_seeds():
    given = {"shape": [100]}
    cases = [NodeCase("RandomUniform", 1, [], {**given, "seed": seed}) for seed in (1.0, 1.0, 1.5)]
    one, same, other = (run(case)[0] for case in cases)
    assert (one == same).all()
    assert (one != other).any()
    model = cases[0].model()
    node = model.graph.node[0]
    (seed,) = (one for one in node.attribute if one.name == "seed")
    node.attribute.remove(seed)
    second = model.graph.node.add()
    second.CopyFrom(node)
    second.output[0] = "z"
    model.graph.output.add().CopyFrom(model.graph.output[0])
    model.graph.output[1].name = "z"
    one, other = onnx_backend.prepare(model, "INTERP").run([])
    assert (one != other).any(), "nodes without seeds differ"


@pytest.mark.parametrize("version", versions("Bernoulli"))
def test_bernoulli(version):
    chances = np.repeat(np.array([0, 0.25, 1], np.float32), 1000).reshape(3, 1000)
    (made,) = run(NodeCase("Bernoulli", version, [chances], {"seed": 2.0}))
    assert made.dtype == np.float32
    assert made[0].sum() == 0
    assert abs(made[1].mean() - 0.25) < 0.05
    assert made[2].sum() == 1000
    for code, dtype in ((TensorProto.BOOL, bool), (TensorProto.INT64, np.int64)):
        (typed,) = run(NodeCase("Bernoulli", version, [chances], {"seed": 2.0, "dtype": code}))
        assert typed.dtype == dtype
        np.testing.assert_array_equal(typed, made.astype(dtype))


@pytest.mark.parametrize("version", versions("Multinomial"))
def test_multinomial(version):
    rows = np.log(np.array([[1, 3, 1e-30], [1e-30, 1e-30, 1]], np.float32))
    for code, dtype in ((TensorProto.INT32, np.int32), (TensorProto.INT64, np.int64)):
        given = {"sample_size": 1000, "dtype": code, "seed": 3.0}
        (made,) = run(NodeCase("Multinomial", version, [rows], given))
        assert made.dtype == dtype
        assert made.shape == (2, 1000)
        assert abs((made[0] == 1).mean() - 0.75) < 0.06
        assert (made[1] == 2).all()


def training(version: int) -> NodeCase:
    data = np.abs(X).repeat(50, axis=0) + np.float32(1)
    if version < 12:
        return NodeCase("Dropout", version, [data], {"ratio": 0.25}, outputs=2)
    inputs = [data, np.array(0.25, np.float32), np.array(True)]
    return NodeCase("Dropout", version, inputs, {"seed": -5}, outputs=2)


NO_MASK = {RUNTIME: "it returns 0 for each element, although all are kept"}
BOOL_MASK = {EVALUATOR: "its mask is of bool, but the schema says: of the type of the data"}
COPIES = [
    *(NodeCase("Dropout", v, [X], {"is_test": 1}, [X]) for v in (1, 6)),
    *(NodeCase("Dropout", v, [X], {}, [X]) for v in versions("Dropout", 7)),
    *(
        NodeCase(
            "Dropout",
            v,
            [X],
            {},
            [X, np.ones_like(X, X.dtype if v < 10 else bool)],
            outputs=2,
            wrong={7: NO_MASK | BOOL_MASK, 10: NO_MASK}.get(v, {}),
            label="mask",
        )
        for v in versions("Dropout", 7)
    ),
    *(
        NodeCase(
            "Dropout",
            v,
            [X, np.array(0, np.float32), np.array(True)],
            {},
            [X, np.ones_like(X, bool)],
            outputs=2,
            label="ratio 0",
        )
        for v in versions("Dropout", 12)
    ),
]


RANDOM = [
    *(NodeCase(n, v, [], {"shape": [3, 4]}) for n in DRAWN for v in versions(n)),
    *(NodeCase(f"{n}Like", v, [X]) for n in DRAWN for v in versions(n)),
    *(NodeCase("Bernoulli", v, [np.abs(X)]) for v in versions("Bernoulli")),
    *(NodeCase("Multinomial", v, [X[0]]) for v in versions("Multinomial")),
    *(training(v) for v in (1, 6, *versions("Dropout", 12))),
]
CASES = [*COPIES, *RANDOM]


@pytest.mark.parametrize("case", COPIES, ids=str)
def test_dropout_that_copies(case):
    check(case)


@pytest.mark.parametrize("case", RANDOM, ids=str)
def test_random_numbers_have_the_type_that_is_declared(case):
    declared = case.model().graph.output
    for one, info in zip(run(case), declared, strict=True):
        tensor = info.type.tensor_type
        if not tensor.elem_type:
            assert (case.operator, case.version) in (("Dropout", 1), ("Dropout", 6))
            continue  # ONNX infers nothing
        code = helper.np_dtype_to_tensor_dtype(one.dtype)
        assert code == tensor.elem_type
        assert list(one.shape) == [dim.dim_value for dim in tensor.shape.dim]


@pytest.mark.parametrize("version", [1, 6, *versions("Dropout", 12)])
def test_dropout_in_training(version):
    case = training(version)
    made, mask = run(case)
    assert mask.dtype == (bool if version >= 12 else np.float32)
    kept = mask.astype(bool)
    assert 0.7 < kept.mean() < 0.8
    right = np.where(kept, case.inputs[0] / np.float32(0.75), 0)
    np.testing.assert_allclose(made, right, rtol=1e-5)


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (NodeCase("RandomNormalLike", 1, [X.astype(np.int32)]), "its output has the dtype i32"),
        (NodeCase("RandomUniform", 1, [], {"shape": [-1]}), r"its shape is \[-1\]"),
        (NodeCase("Multinomial", 7, [X]), "not a matrix"),
        (NodeCase("Dropout", 6, [X], {"ratio": 1.0}), "its ratio is 1.0"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused(case, message):
    with pytest.raises(UserError, match=message):
        from_onnx(case.model().SerializeToString())
