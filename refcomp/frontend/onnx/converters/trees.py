"""Ensembles of decision trees in ai.onnx.ml, of all versions.

A kernel walks each row through each tree to a leaf (`tree_leaves`). Then the weights of the leaves
are gathered from a table, and reduced over the trees.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from refcomp.foundation.dtype import F32
from refcomp.foundation.errors import UserError
from refcomp.foundation.near_misses import advise
from refcomp.frontend.onnx.converters.labels import values_at
from refcomp.frontend.onnx.converters.scores import (
    best_class,
    transformed,
    two_scores,
    with_labels,
)
from refcomp.frontend.onnx.node import OnnxNode
from refcomp.frontend.onnx.registry import converter
from refcomp.graph.graph import Array, Value

ML = "ai.onnx.ml"
_MODES = (
    "BRANCH_LEQ",
    "BRANCH_LT",
    "BRANCH_GTE",
    "BRANCH_GT",
    "BRANCH_EQ",
    "BRANCH_NEQ",
)
_LEAF = "LEAF"
_MEMBER = 6  # the mode of TreeEnsemble that tests membership of a set
_AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
# Elements of the table of weights: leaves times targets.
_MAX_TABLE = 1 << 26
_MAX_FEATURE = (1 << 31) - 1  # which an i32 holds


@dataclass(frozen=True, slots=True)
class Trees:
    """The trees of an ensemble, as `tree_leaves` takes them, and the votes of their leaves.

    Attributes:
        thresholds: of each node.
        nodes: five numbers of each node.
        roots: of each tree.
        leaves: the number of leaves.
        votes: leaf, target and weight of each vote, as three arrays.
    """

    thresholds: Array
    nodes: Array
    roots: Array
    leaves: int
    votes: tuple[Array, Array, Array]

    def table(self, count: int) -> Array:
        """Return the weight of each leaf for each of `count` targets."""
        leaves, targets, weights = self.votes
        table = np.zeros((self.leaves, count))
        np.add.at(table, (leaves, targets), weights)
        return table

    def has_votes(self, count: int) -> Array:
        """Return True where a leaf has a weight for a target."""
        leaves, targets, _ = self.votes
        has_vote = np.zeros((self.leaves, count), np.bool_)
        has_vote[leaves, targets] = True
        return has_vote

    def check(self, count: int) -> None:
        """Raise UserError unless all votes are for one of `count` targets, in a small table."""
        _, targets, _ = self.votes
        if count < 1:
            raise UserError(f"it has {count} targets", remedy="give at least one")
        if self.leaves * count > _MAX_TABLE:
            raise UserError(
                f"its trees have {self.leaves} leaves for {count} targets",
                why="a table of their weights would be too large",
                remedy="divide the ensemble into several",
            )
        if len(targets) and not 0 <= targets.min() <= targets.max() < count:
            raise UserError(
                f"its leaves vote for targets {targets.min()} to {targets.max()}",
                remedy=f"give targets from 0 to {count - 1}",
            )

    def depth(self) -> int:
        """Return the most nodes on a way from a root to a leaf; UserError if a way is endless."""
        reached: dict[int, int] = {}  # node -> the most nodes from it to a leaf
        open_nodes: set[int] = set()
        stack = [int(root) for root in self.roots if root >= 0]
        children = self.nodes[:, 3:].tolist()
        while stack:
            node = stack[-1]
            below = [child for child in children[node] if child >= 0]
            missing = [child for child in below if child not in reached]
            if node in reached or not missing:
                stack.pop()
                open_nodes.discard(node)
                reached[node] = 1 + max((reached[child] for child in below), default=0)
                continue
            open_nodes.add(node)
            if any(child in open_nodes for child in missing):
                raise UserError(
                    f"a way through its trees returns to node {missing[0]}",
                    remedy="the file is damaged: export it again",
                )
            stack.extend(missing)
        return max((reached[int(r)] for r in self.roots if r >= 0), default=0)


@converter("TreeEnsembleClassifier", domain=ML)
def tree_ensemble_classifier(node: OnnxNode) -> list[Value]:
    """Convert TreeEnsembleClassifier of any version: the class of each row, and the scores."""
    return with_labels(node, "classlabels_int64s", _tree_classes)


def _tree_classes(node: OnnxNode, labels: Array) -> list[Value]:
    count = len(labels)
    trees = _classic_trees(node, "class", count)
    base = _numbers(node, "base_values")
    transform = node.attributes["post_transform"]
    _, targets, weights = trees.votes
    classes = sorted(set(targets.tolist()))
    found = _leaves(node, trees)
    scores = _votes(node, trees, found, count)
    if count == 2 and len(classes) == 1 and len(base) <= 1:
        return _of_one_class(
            node, scores, labels, classes[0], bool((weights >= 0).all())
        )
    if len(base) not in (0, count):
        raise UserError(
            f"it has {len(base)} base_values, but {count} classes",
            remedy="give one for each class, or none",
        )
    compared = scores
    if len(base):
        compared = scores = _plus(node, scores, base)
    elif not trees.has_votes(count).all():
        # A class without a vote cannot win.
        is_voted = _is_voted(node, trees, found, count)
        worst = node.constant(-np.inf, scores.dtype.dtype)
        compared = node.make("where", [is_voted, scores, worst])
    winners = values_at(node, best_class(node, compared), labels)
    return [winners, node.cast(transformed(node, scores, transform), F32)]


def _of_one_class(
    node: OnnxNode, scores: Value, labels: Array, voted: int, is_positive: bool
) -> list[Value]:
    """Return the class and the scores of two classes, only one of which has votes.

    The vote says how probable the second class is. A vote for the first class means the same, as
    ONNX Runtime reads it; then the scores are completed by the complement.
    """
    transform = node.attributes["post_transform"]
    score = node.make(
        "strided_slice", [scores], begin=(voted,), end=(voted + 1,), axes=(1,)
    )
    score = _plus(node, score, _numbers(node, "base_values"))
    limit = node.constant(0.5 if is_positive else 0.0, score.dtype.dtype)
    is_second = node.make("greater", [node.make("squeeze", [score], axis=1), limit])
    winners = values_at(node, node.cast(is_second, "int64"), labels)
    if voted == 0:
        both = two_scores(node, score, transform, is_probability=is_positive)
    else:
        zeros = node.make("zeros_like", [score])
        pair = node.make("concatenate", [zeros, score], axis=1)
        both = transformed(node, pair, transform)
    return [winners, node.cast(both, F32)]


def _plus(node: OnnxNode, scores: Value, base: Array) -> Value:
    if not len(base):
        return scores
    return node.make("add", [scores, node.constant(base, scores.dtype.dtype)])


@converter("TreeEnsembleRegressor", domain=ML)
def tree_ensemble_regressor(node: OnnxNode) -> Value:
    """Convert TreeEnsembleRegressor of any version."""
    count = node.attributes.get("n_targets", 1)
    trees = _classic_trees(node, "target", count)
    scores = _reduced(node, trees, count, node.attributes["aggregate_function"])
    base = _numbers(node, "base_values")
    if len(base) not in (0, 1, count):
        raise UserError(
            f"it has {len(base)} base_values, but {count} targets",
            remedy="give one for each target, or none",
        )
    scores = _plus(node, scores, base)
    return transformed(node, node.cast(scores, F32), node.attributes["post_transform"])


@converter("TreeEnsemble", since=5, domain=ML)
def tree_ensemble(node: OnnxNode) -> Value:
    """Convert TreeEnsemble."""
    count = node.attributes.get("n_targets", 1)
    numbers = (node.attributes["aggregate_function"], node.attributes["post_transform"])
    names = []
    for number, known in zip(numbers, (_AGGREGATES, _TRANSFORMS), strict=True):
        if not 0 <= number < len(known):
            raise UserError(
                f"it has no function {number}",
                remedy=f"use 0 to {len(known) - 1}: {', '.join(known)}",
            )
        names.append(known[number])
    scores = _reduced(node, _joined_trees(node, count), count, names[0])
    return transformed(node, scores, names[1])


def _leaves(node: OnnxNode, trees: Trees) -> Value:
    """Return the leaf that each row reaches in each tree [rows, trees]."""
    data = node.required(0)
    if len(data.shape) == 1:
        data = node.make("expand_dims", [data], axis=0)
    if not data.dtype.is_float:
        data = node.cast(data, F32)
    features = node.extent(data, 1)
    wanted = trees.nodes[:, 0]
    if wanted.min() < 0 or wanted.max() >= features:
        raise UserError(
            f"its trees compare features {wanted.min()} to {wanted.max()}",
            why=f"the input is {node.required(0)}",
            remedy=f"give features from 0 to {features - 1}",
        )
    return node.make(
        "tree_leaves",
        [
            data,
            node.constant(trees.thresholds, data.dtype.dtype),
            node.constant(trees.nodes),
            node.constant(trees.roots),
        ],
        depth=trees.depth(),
    )


def _dtype_of_votes(node: OnnxNode) -> np.dtype[np.generic]:
    given = node.required(0).dtype
    return np.dtype(given.dtype if given.is_float else np.float32)


def _weights(node: OnnxNode, trees: Trees, found: Value, count: int) -> Value:
    """Return the weight of each vote [rows, trees, targets]."""
    table = node.constant(trees.table(count).astype(_dtype_of_votes(node)))
    return node.make("take", [table, found], axis=0)


def _votes(node: OnnxNode, trees: Trees, found: Value, count: int) -> Value:
    """Return the sum of the votes of all trees [rows, targets]."""
    return node.make("sum", [_weights(node, trees, found, count)], axis=1)


def _is_voted(node: OnnxNode, trees: Trees, found: Value, count: int) -> Value:
    """Return True where a tree votes for a target [rows, targets]."""
    has_vote = node.make("take", [node.constant(trees.has_votes(count)), found], axis=0)
    return node.make("any", [has_vote], axis=1)


def _reduced(node: OnnxNode, trees: Trees, count: int, function: str) -> Value:
    """Return the votes for each target [rows, targets], reduced over the trees."""
    if function not in _AGGREGATES:
        raise UserError(
            f"its aggregate_function is {function!r}",
            remedy=advise(
                function, _AGGREGATES, f"use one of {', '.join(_AGGREGATES)}"
            ),
        )
    found = _leaves(node, trees)
    dtype = _dtype_of_votes(node)
    if function == "SUM":
        return _votes(node, trees, found, count)
    if function == "AVERAGE":
        number = node.constant(len(trees.roots), dtype)
        return node.make("divide", [_votes(node, trees, found, count), number])
    # A tree that does not vote for a target does not count.
    worst = np.inf if function == "MIN" else -np.inf
    table = np.where(trees.has_votes(count), trees.table(count), worst)
    marked = node.make("take", [node.constant(table.astype(dtype)), found], axis=0)
    best = node.make(function.lower(), [marked], axis=1)
    is_voted = _is_voted(node, trees, found, count)
    return node.make("where", [is_voted, best, node.constant(0, dtype)])


def _numbers(node: OnnxNode, name: str) -> Array:
    """Return an attribute of floats, which may be a tensor since version 3, as f64."""
    tensor = node.attributes.get(f"{name}_as_tensor")
    given = node.attributes.get(name, ()) if tensor is None else tensor
    if np.asarray(given).dtype.kind not in "fiu":
        raise UserError(f"its {name} is not a list of numbers")
    return np.asarray(given, np.float64).reshape(-1)


def _named_nodes(
    node: OnnxNode,
) -> tuple[list[tuple[int, int]], tuple[str, ...], Array]:
    """Return tree and number, mode and threshold of each node; the lists are of one length."""
    modes = node.attributes.get("nodes_modes", ())
    trees = _integers(node, "nodes_treeids")
    lists = ("nodeids", "featureids", "truenodeids", "falsenodeids")
    _same_length(node, len(trees), [f"nodes_{name}" for name in lists])
    names = list(zip(trees, _integers(node, "nodes_nodeids"), strict=True))
    thresholds = _numbers(node, "nodes_values")
    if not len(names) == len(modes) == len(thresholds) or not names:
        raise UserError(
            f"it has {len(names)} nodes, {len(modes)} modes and {len(thresholds)} values",
            remedy="the file is damaged: export it again",
        )
    known = (*_MODES, _LEAF)
    for mode in sorted(set(modes) - set(known)):
        raise UserError(
            f"a node has the mode {mode!r}",
            remedy=advise(mode, known, f"use one of {', '.join(known)}"),
        )
    return names, modes, thresholds


def _classic_trees(node: OnnxNode, stem: str, count: int) -> Trees:
    """Return trees whose nodes and leaves are one list, named by tree and number."""
    attributes = node.attributes
    names, modes, thresholds = _named_nodes(node)
    # Nodes and leaves are numbered apart.
    places: dict[tuple[int, int], int] = {}
    inner: list[int] = []
    leaves = 0
    for k, name in enumerate(names):
        if name in places:
            raise UserError(f"two nodes of tree {name[0]} have the number {name[1]}")
        if modes[k] == _LEAF:
            leaves += 1
            places[name] = -leaves
        else:
            places[name] = len(inner)
            inner.append(k)
    missing = _missing_flags(node, len(names))
    features = attributes["nodes_featureids"]
    rows = []
    children: set[tuple[int, int]] = set()
    for k in inner:
        tree = names[k][0]
        ways = [
            (tree, attributes[f"nodes_{way}nodeids"][k]) for way in ("false", "true")
        ]
        for way in ways:
            if way not in places:
                raise UserError(
                    f"tree {tree} has no node {way[1]}, which follows another"
                )
        children.update(ways)
        mode = _MODES.index(modes[k])
        rows.append([features[k], mode, missing[k], *(places[way] for way in ways)])
    roots = [places[name] for name in names if name not in children]
    number = len({tree for tree, _ in names})
    if len(roots) != number:
        raise UserError(
            f"its {number} trees have {len(roots)} nodes that follow no other",
            remedy="give each tree one root",
        )
    votes = _classic_votes(node, stem, places)
    return _trees(thresholds[inner].tolist(), rows, roots, leaves, votes, count)


def _classic_votes(
    node: OnnxNode, stem: str, places: dict[tuple[int, int], int]
) -> tuple[Array, Array, Array]:
    """Return the leaf, the target and the weight of each vote."""
    trees = _integers(node, f"{stem}_treeids")
    weights = _numbers(node, f"{stem}_weights")
    _same_length(node, len(trees), (f"{stem}_nodeids", f"{stem}_ids"))
    if len(weights) != len(trees):
        raise UserError(f"it has {len(trees)} votes, but {len(weights)} weights")
    leaves = []
    for name in zip(trees, _integers(node, f"{stem}_nodeids"), strict=True):
        place = places.get(name, 0)
        if name not in places:
            raise UserError(f"tree {name[0]} has no leaf {name[1]}, which has a weight")
        leaves.append(-1 - place)
    targets = np.array(_integers(node, f"{stem}_ids"), np.int64)
    where = np.array(leaves, np.int64)
    at_leaf = where >= 0  # no way ends at another node
    return where[at_leaf], targets[at_leaf], weights[at_leaf]


def _integers(node: OnnxNode, name: str) -> tuple[int, ...]:
    return tuple(node.attributes.get(name, ()))


def _same_length(node: OnnxNode, count: int, names: Sequence[str]) -> None:
    for name in names:
        if len(_integers(node, name)) != count:
            raise UserError(
                f"its {name} has {len(_integers(node, name))} numbers, not {count}",
                remedy="the file is damaged: export it again",
            )


def _missing_flags(node: OnnxNode, count: int) -> tuple[int, ...]:
    """Return for each node 1 if NaN goes the way of a comparison that holds, else 0."""
    flags = _integers(node, "nodes_missing_value_tracks_true")
    if flags:
        _same_length(node, count, ["nodes_missing_value_tracks_true"])
    return tuple(int(flag != 0) for flag in flags) or (0,) * count


def _trees(
    thresholds: Sequence[float],
    rows: Sequence[Sequence[int]],
    roots: Sequence[int],
    leaves: int,
    votes: tuple[Array, Array, Array],
    count: int,
) -> Trees:
    """Return checked trees for `count` targets; they have at least one node and one leaf."""
    features = [row[0] for row in rows]
    if features and not 0 <= min(features) <= max(features) <= _MAX_FEATURE:
        raise UserError(
            f"its trees compare features {min(features)} to {max(features)}",
            remedy="the file is damaged: export it again",
        )
    made = Trees(
        np.array(thresholds if rows else [0.0], np.float64),
        np.array(rows or [[0, 0, 0, -1, -1]], np.int32),
        np.array(roots, np.int32),
        max(leaves, 1),
        votes,
    )
    made.check(count)
    return made


def _joined_trees(node: OnnxNode, count: int) -> Trees:
    """Return trees whose nodes and leaves are two lists, named by their places in these."""
    attributes = node.attributes
    modes = _numbers(node, "nodes_modes").astype(np.int64).tolist()
    ways = ("false", "true")
    names = ["nodes_featureids"]
    names += [f"nodes_{way}{what}" for way in ways for what in ("nodeids", "leafs")]
    _same_length(node, len(modes), names)
    weights = _numbers(node, "leaf_weights")
    _same_length(node, len(weights), ["leaf_targetids"])
    splits = _numbers(node, "nodes_splits").tolist()
    if len(splits) != len(modes):
        raise UserError(f"it has {len(modes)} modes, but {len(splits)} nodes_splits")
    goes = [
        _ways(
            _integers(node, f"nodes_{way}nodeids"), _integers(node, f"nodes_{way}leafs")
        )
        for way in ways
    ]
    for places in goes:
        for place in places:
            if not -len(weights) <= place < len(modes):
                raise UserError(
                    "a node goes to another one, or to a leaf, that does not exist",
                    why=f"there are {len(modes)} nodes and {len(weights)} leaves",
                )
    missing = _missing_flags(node, len(modes))
    features = attributes["nodes_featureids"]
    rows = [
        [features[k], modes[k], missing[k], goes[0][k], goes[1][k]]
        for k in range(len(modes))
    ]
    for mode in modes:
        if not 0 <= mode <= _MEMBER:
            raise UserError(f"a node has the mode {mode}", remedy=f"use 0 to {_MEMBER}")
    _expand_members(rows, splits, _sets(_numbers(node, "membership_values")))
    roots = _integers(node, "tree_roots")
    if any(not 0 <= root < len(modes) for root in roots):
        raise UserError(f"its tree_roots are {list(roots)[:9]}, of {len(modes)} nodes")
    targets = np.array(_integers(node, "leaf_targetids"), np.int64)
    votes = (np.arange(len(weights)), targets, weights)
    return _trees(splits, rows, roots, len(weights), votes, count)


def _ways(places: Sequence[int], are_leaves: Sequence[int]) -> list[int]:
    """Return where nodes go: the number of a node, or -1 - k for leaf k."""
    if any(place < 0 for place in places):
        raise UserError("a node goes to a node or leaf with a negative number")
    pairs = zip(places, are_leaves, strict=True)
    return [-1 - place if is_leaf else place for place, is_leaf in pairs]


def _sets(values: Array) -> list[list[float]]:
    """Return the sets of a list in which NaN ends each set."""
    sets: list[list[float]] = [[]]
    for value in values.tolist():
        if value != value:
            sets.append([])
        else:
            sets[-1].append(value)
    return sets


def _expand_members(
    rows: list[list[int]], splits: list[float], sets: Sequence[list[float]]
) -> None:
    """Replace each test of membership by a chain of comparisons, whose rest is appended."""
    equal = _MODES.index("BRANCH_EQ")
    remaining = iter(sets)
    for k in range(len(rows)):
        if rows[k][1] != _MEMBER:
            continue
        members = next(remaining, None)
        if members is None:
            raise UserError(
                f"its membership_values have {len(sets)} sets, but more nodes ask for one"
            )
        feature, _, missing, otherwise, then = rows[k]
        place = k
        for member in members[:-1]:
            rows[place] = [feature, equal, missing, len(rows), then]
            splits[place] = member
            place = len(rows)
            rows.append([])
            splits.append(0.0)
        rows[place] = [feature, equal, missing, otherwise, then]
        splits[place] = members[-1] if members else np.nan  # equal to nothing
