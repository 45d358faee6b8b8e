"""Ensembles of decision trees: every version, the choices of each, and refusals."""

import operator
from dataclasses import replace

import numpy as np
import pytest
from onnx import numpy_helper

from refcomp.foundation.errors import UserError
from refcomp.frontend.onnx import from_onnx
from tests.frontend.onnx.converters.cases import EVALUATOR, RUNTIME, NodeCase, check
from tests.strategies.operands import floats

ML = "ai.onnx.ml"
COMPARISONS = {
    "BRANCH_LEQ": operator.le,
    "BRANCH_LT": operator.lt,
    "BRANCH_GTE": operator.ge,
    "BRANCH_GT": operator.gt,
    "BRANCH_EQ": operator.eq,
    "BRANCH_NEQ": operator.ne,
}
MODES = tuple(COMPARISONS)
X = np.round(floats(0, 9, 4), 1)
X[2, 1] = X[5, 0] = np.nan
STUMP = {
    "nodes_treeids": [0, 0, 0],
    "nodes_nodeids": [0, 1, 2],
    "nodes_featureids": [0, 0, 0],
    "nodes_values": [0.0, 0.0, 0.0],
    "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
    "nodes_truenodeids": [1, 0, 0],
    "nodes_falsenodeids": [2, 0, 0],
}
SIDES = np.array([[-1], [1]], np.float32)
LABELS = [10, 11]
MISSING = "lets NaN fail the mode BRANCH_NEQ, and a class without a vote win with a score of 0"
TOP = "returns 0 or 1 as the class of two, although the labels of the classes are given"
ONE = "does not transform the score of one target"
ABSENT = "gives the greatest float to a target without a vote"
SECOND = "gives the complement of a score to a target without a vote"
OPPOSITE = "reads the scores of the first class as those of the second, which are other numbers"


def complete_trees(trees, depth, seed, modes=MODES):
    """Return the attributes of complete trees, and the tree and number of each leaf."""
    chosen = np.random.RandomState(seed)
    names = {key: [] for key in (*STUMP, "nodes_missing_value_tracks_true")}
    leaves = []
    for tree in range(trees):
        for number in range(2 ** (depth + 1) - 1):
            is_leaf = number >= 2**depth - 1
            if is_leaf:
                leaves.append((tree, number))
            feature = chosen.randint(4)
            rows = np.nan_to_num(X[:, feature])
            row = {
                "treeids": tree,
                "nodeids": number,
                "featureids": feature,
                "values": float(chosen.choice(rows)),
                "modes": "LEAF" if is_leaf else chosen.choice(modes),
                "truenodeids": 0 if is_leaf else 2 * number + 1,
                "falsenodeids": 0 if is_leaf else 2 * number + 2,
                "missing_value_tracks_true": chosen.randint(2),
            }
            for key, value in row.items():
                names[f"nodes_{key}"].append(value)
    return names, leaves


def votes(stem, leaves, targets, seed, *, per_leaf=1):
    chosen = np.random.RandomState(seed)
    rows = [
        (tree, number, target, chosen.randint(-9, 9) / 8)
        for tree, number in leaves
        for target in chosen.choice(targets, per_leaf, replace=False)
    ]
    columns = list(zip(*rows, strict=True))
    names = ("treeids", "nodeids", "ids", "weights")
    lists = {f"{stem}_{name}": list(c) for name, c in zip(names, columns, strict=True)}
    lists[f"{stem}_ids"] = [int(one) for one in lists[f"{stem}_ids"]]
    return lists


def reached(attributes, row):
    """Return the tree and the number of each leaf that a row of features reaches."""
    fields = {name.removeprefix("nodes_"): value for name, value in attributes.items()}
    places = {
        name: k for k, name in enumerate(zip(fields["treeids"], fields["nodeids"], strict=True))
    }
    found = []
    for tree in dict.fromkeys(fields["treeids"]):
        k = places[tree, 0]
        while fields["modes"][k] != "LEAF":
            value = row[fields["featureids"][k]]
            holds = COMPARISONS[fields["modes"][k]](value, fields["values"][k])
            if np.isnan(value) and fields.get("missing_value_tracks_true", {k: 0})[k]:
                holds = True
            k = places[tree, fields["truenodeids" if holds else "falsenodeids"][k]]
        found.append((tree, fields["nodeids"][k]))
    return found


def votes_of(attributes, stem, x, targets):
    """Return for each row and target the votes of the trees that vote."""
    names = (f"{stem}_{name}" for name in ("treeids", "nodeids", "ids", "weights"))
    rows = list(zip(*(attributes[name] for name in names), strict=True))
    return [
        [
            [w for t, n, target, w in rows if (t, n) in leaves and target == wanted]
            for wanted in range(targets)
        ]
        for leaves in (reached(attributes, row) for row in x)
    ]


def as_tensors(attributes, names):
    """Return attributes with f64 tensors in place of some lists of floats."""
    changed = dict(attributes)
    for name in names:
        array = np.array(changed.pop(name), np.float64)
        changed[f"{name}_as_tensor"] = numpy_helper.from_array(array, name)
    return changed


def regressor(version, label, x=X, *, targets=2, per_leaf=1, doubles=(), wrong=None, **attributes):
    nodes, leaves = complete_trees(4, 3, seed=7)
    given = {**nodes, **votes("target", leaves, targets, 2, per_leaf=per_leaf)}
    reduce = {
        "SUM": sum,
        "AVERAGE": lambda v: sum(v) / 4,
        "MIN": lambda v: min(v, default=0),
        "MAX": lambda v: max(v, default=0),
    }[attributes.get("aggregate_function", "SUM")]
    scores = np.array([[*map(reduce, row)] for row in votes_of(given, "target", x, targets)])
    scores = scores + attributes.get("base_values", 0)
    if attributes.get("post_transform") == "LOGISTIC":
        scores = 1 / (1 + np.exp(-scores))
    elif attributes.get("post_transform") == "SOFTMAX":
        scores = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    return NodeCase(
        "TreeEnsembleRegressor",
        version,
        [x],
        as_tensors({**given, "n_targets": targets, **attributes}, doubles),
        expected=[scores.astype(np.float32)],
        domain=ML,
        label=label,
        atol=1e-5,
        wrong={EVALUATOR: MISSING, **(wrong or {})},
    )


def classifier(version, label, x=X, *, classes=3, per_leaf=1, seed=1, wrong=None, **attributes):
    """A case with several classes, each of which may win."""
    nodes, leaves = complete_trees(5, 3, seed=classes)
    given = {**nodes, **votes("class", leaves, classes, seed, per_leaf=per_leaf)}
    base = attributes.get("base_values", [-np.inf] * classes)
    voted = votes_of(given, "class", x, classes)
    scores = np.array([[sum(v) for v in row] for row in voted])
    if "base_values" in attributes:
        compared = scores = scores + np.array(base)
    else:
        compared = np.array([[sum(v) if v else -np.inf for v in row] for row in voted])
    labels = {"classlabels_int64s": [7, 5, 9, 8][:classes]}
    if "classlabels_strings" in attributes:
        labels = {"classlabels_strings": attributes["classlabels_strings"]}
    (names,) = (np.array(one) for one in labels.values())
    if attributes.get("post_transform") == "SOFTMAX":
        scores = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    return NodeCase(
        "TreeEnsembleClassifier",
        version,
        [x],
        {**given, **labels, **attributes},
        expected=[names[compared.argmax(axis=1)], scores.astype(np.float32)],
        domain=ML,
        outputs=2,
        label=label,
        atol=1e-5,
        wrong={EVALUATOR: MISSING, **(wrong or {})},
    )


def logistic(x):
    return 1 / (1 + np.exp(-x))


def binary(label, weights, place=0, *, transform="NONE", base=0.0):
    """A case with two classes, of which only one has votes."""
    score = np.array(weights) + base
    is_probable = min(weights) >= 0
    other = 0 * score if place else 1 - score if is_probable else -score
    if transform == "LOGISTIC" and not place:
        other = -score
    scores = np.stack([other, score], axis=1)
    if transform == "LOGISTIC":
        scores = logistic(scores)
    elif place and transform == "SOFTMAX":
        scores = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    elif place and transform == "SOFTMAX_ZERO":
        scores = (scores != 0).astype(np.float64)
    labels = np.array(LABELS)[(score > (0.5 if is_probable else 0)).astype(int)]
    given = {
        **STUMP,
        "class_treeids": [0, 0],
        "class_nodeids": [1, 2],
        "class_ids": [place, place],
        "class_weights": weights,
        "classlabels_int64s": LABELS,
        "post_transform": transform,
        **({"base_values": [base]} if base else {}),
    }
    return NodeCase(
        "TreeEnsembleClassifier",
        3,
        [SIDES],
        given,
        expected=[labels, scores.astype(np.float32)],
        domain=ML,
        outputs=2,
        label=f"{label}_{place}_{transform}",
        wrong={EVALUATOR: OPPOSITE},
    )


def joined(label, x, function, *, transform=0, **attributes):
    """A case of TreeEnsemble-5: two trees share a node below the root of the first."""
    dtype = x.dtype
    given = {
        "tree_roots": [0, 2],
        "n_targets": 2,
        "aggregate_function": function,
        "post_transform": transform,
        "nodes_featureids": [0, 1, 2],
        "nodes_modes": np.array([0, 4, 3], np.uint8),
        "nodes_splits": np.array([0.1, 0.4, -0.2], dtype),
        "nodes_truenodeids": [1, 0, 2],
        "nodes_trueleafs": [0, 1, 1],
        "nodes_falsenodeids": [2, 1, 3],
        "nodes_falseleafs": [0, 1, 1],
        "leaf_targetids": [0, 1, 0, 1],
        "leaf_weights": np.array([1, 2, 4, 8], dtype),
        **attributes,
    }
    second = np.where(x[:, 2] > dtype.type(-0.2), 2, 3)
    below = np.where(x[:, 1] == dtype.type(0.4), 0, 1)
    first = np.where(x[:, 0] <= dtype.type(0.1), below, second)
    weights = [[[1, 0], [0, 2], [4, 0], [0, 8]][leaf] for leaf in (*first, *second)]
    both = np.array(weights, np.float64).reshape(2, -1, 2)
    absent = np.where(both == 0, np.inf, both).min(axis=0)
    smallest = np.where(np.isinf(absent), 0, absent)
    scores = [both.mean(axis=0), both.sum(axis=0), smallest, both.max(axis=0)][function]
    scores = logistic(scores) if transform == 2 else scores
    tensors = {
        name: numpy_helper.from_array(value, name) if isinstance(value, np.ndarray) else value
        for name, value in given.items()
    }
    return NodeCase(
        "TreeEnsemble",
        5,
        [x],
        tensors,
        expected=[scores.astype(dtype)],
        domain=ML,
        label=label,
        wrong={EVALUATOR: ABSENT, RUNTIME: SECOND} if function > 1 or transform else {},
        rtol=2e-3,
    )


CASES = [
    *(regressor(v, "sum") for v in (1, 3, 5)),
    *(
        regressor(3, name, aggregate_function=name, base_values=[0.5, -1.0])
        for name in ("SUM", "AVERAGE", "MIN", "MAX")
    ),
    regressor(5, "softmax", per_leaf=2, post_transform="SOFTMAX"),
    regressor(1, "logistic", targets=1, post_transform="LOGISTIC", wrong={RUNTIME: ONE}),
    regressor(1, "integers", np.nan_to_num(X * 10).astype(np.int64)),
    regressor(3, "f64", X.astype(np.float64), doubles=("nodes_values", "target_weights")),
    *(classifier(v, "votes") for v in (1, 3, 5)),
    *(classifier(v, "base", base_values=[0.1, 0.5, -0.5]) for v in (1, 3, 5)),
    classifier(3, "softmax", per_leaf=2, post_transform="SOFTMAX"),
    classifier(3, "two_classes", classes=2, per_leaf=2, wrong={RUNTIME: TOP}),
    classifier(1, "four_classes", classes=4, per_leaf=3),
    *(
        binary(label, weights, place, transform=transform)
        for label, weights in (("positive", [0.3, 0.8]), ("signed", [-0.3, 0.8]))
        for place in (0, 1)
        for transform in ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO")
    ),
    binary("base", [0.3, 0.8], base=0.1),
    joined("sum", X, 1),
    joined("max", X, 3, transform=2),
    joined("f64", X.astype(np.float64), 2),
    joined("f16", X.astype(np.float16), 0),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_node(case):
    check(case)


@pytest.mark.tools
def test_many_trees_agree_with_a_walk_by_hand_on_llvm():
    check(regressor(3, "", targets=3, per_leaf=2), "CPU")
    check(classifier(3, "", classes=4, per_leaf=2), "CPU")


def test_symbolic_rows_are_those_of_the_run():
    model = regressor(3, "").model()
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "N"
    assert str(from_onnx(model.SerializeToString()).outputs[0]) == "y0: f32[N, 2]"


def changed(case, **attributes):
    kept = {**case.attributes, **attributes}
    return replace(case, attributes={k: v for k, v in kept.items() if v is not None})


STUMPED = binary("", [0.3, 0.8])
JOINED = joined("", X, 1)


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (
            changed(STUMPED, nodes_modes=["BRANCH_LE", "LEAF", "LEAF"]),
            "a node has the mode 'BRANCH_LE'",
        ),
        (changed(STUMPED, nodes_nodeids=[0, 1, 1]), "two nodes of tree 0 have the number 1"),
        (changed(STUMPED, nodes_truenodeids=[9, 0, 0]), "tree 0 has no node 9"),
        (
            changed(STUMPED, nodes_truenodeids=[2, 0, 0]),
            "its 1 trees have 2 nodes that follow no other",
        ),
        (changed(STUMPED, nodes_values=[0.0]), "it has 3 nodes, 3 modes and 1 values"),
        (changed(STUMPED, nodes_featureids=[0]), "its nodes_featureids has 1 numbers, not 3"),
        (changed(STUMPED, nodes_featureids=[4, 0, 0]), "its trees compare features 4 to 4"),
        (changed(STUMPED, class_nodeids=[1, 7]), "tree 0 has no leaf 7"),
        (changed(STUMPED, class_weights=[1.0]), "it has 2 votes, but 1 weights"),
        (changed(STUMPED, class_ids=[0, 5]), "its leaves vote for targets 0 to 5"),
        (
            changed(STUMPED, classlabels_int64s=None),
            "0 classlabels_strings and 0 classlabels_int64s",
        ),
        (changed(STUMPED, base_values=[1.0] * 3), "it has 3 base_values, but 2 classes"),
        (changed(STUMPED, post_transform="LOGIT"), "its post_transform is 'LOGIT'"),
        (changed(regressor(3, ""), aggregate_function="MEAN"), "its aggregate_function is 'MEAN'"),
        (changed(regressor(3, ""), base_values=[1.0] * 3), "it has 3 base_values, but 2 targets"),
        (changed(STUMPED, nodes_nodeids=[0]), "its nodes_nodeids has 1 numbers, not 3"),
        (changed(STUMPED, nodes_featureids=[2**40, 0, 0]), "compare features 1099511627776"),
        (changed(regressor(3, ""), n_targets=-1), "it has -1 targets"),
        (changed(regressor(3, ""), n_targets=2**50), "its trees have 32 leaves for"),
        (
            changed(JOINED, nodes_modes=numpy_helper.from_array(np.array(["a"] * 3, object))),
            "its nodes_modes is not a list of numbers",
        ),
        (changed(JOINED, aggregate_function=7), "it has no function 7"),
        (changed(JOINED, tree_roots=[3]), r"its tree_roots are \[3\], of 3 nodes"),
        (changed(JOINED, nodes_truenodeids=[1, 0, 9]), "to a leaf, that does not exist"),
        (changed(JOINED, nodes_truenodeids=[1, 0, -1]), "with a negative number"),
        (
            changed(JOINED, nodes_falsenodeids=[0, 1, 3]),
            "a way through its trees returns to node 0",
        ),
        (
            changed(JOINED, nodes_modes=numpy_helper.from_array(np.array([6, 6, 6], np.uint8))),
            "its membership_values have 1 sets",
        ),
        (
            changed(JOINED, nodes_modes=numpy_helper.from_array(np.array([7, 0, 0], np.uint8))),
            "a node has the mode 7",
        ),
        (
            changed(JOINED, nodes_splits=numpy_helper.from_array(np.zeros(2, np.float32))),
            "it has 3 modes, but 2 nodes_splits",
        ),
    ],
)
def test_refusals(case, message):
    with pytest.raises(UserError, match=message):
        from_onnx(case.model().SerializeToString())
