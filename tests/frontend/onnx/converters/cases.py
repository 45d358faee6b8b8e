"""Cases of single ONNX nodes, each in a version of its operator, and how they are judged.

Two other programs judge a case where they can run it: ONNX Runtime, and ONNX's own evaluator. Where
one of them is wrong, the case says so, with the reason; then it must state what is right.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import onnx
from onnx import helper
from onnx.reference import ReferenceEvaluator

from refcomp import onnx_backend
from refcomp.frontend.onnx import from_onnx
from refcomp.frontend.onnx.conversions import is_narrow_float
from refcomp.frontend.onnx.element_types import ELEMENT_TYPES
from refcomp.graph.graph import Graph, is_macro

RUNTIME, EVALUATOR = "ONNX Runtime", "ONNX's evaluator"


@dataclass(frozen=True, eq=False)
class NodeCase:
    """A node with inputs, and maybe the outputs that the operator's text asks for.

    Attributes:
        operator: the name of the operator.
        version: the version of its operator set, in which the node is run.
        inputs: an array for each input; None for one that is left out; a list for a sequence.
        attributes: by name.
        expected: what is right, by the operator's text; None if the other programs say it.
        domain: the domain of the operator.
        outputs: the number of outputs that are used.
        constants: places of inputs that are stored in the model.
        optionals: places of inputs that are declared as optionals.
        shapes: place of an input -> the shape that the model declares, with names of symbols.
        wrong: name of a program that is wrong -> why, with reference to the operator's text.
        rtol, atol: how far floats may be from what is right.
        label: makes the name of the test unique and clear.
    """

    operator: str
    version: int
    inputs: Sequence[Any]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    expected: Sequence[Any] | None = None
    domain: str = ""
    outputs: int = 1
    constants: Sequence[int] = ()
    optionals: Sequence[int] = ()
    shapes: Mapping[int, Sequence[int | str]] = field(default_factory=dict)
    wrong: Mapping[str, str] = field(default_factory=dict)
    rtol: float = 1e-4
    atol: float = 1e-6
    label: str = ""

    def __str__(self) -> str:
        return f"{self.operator}-{self.version}" + (f"-{self.label}" if self.label else "")

    @property
    def pair(self) -> tuple[str, str, int]:
        """The domain, the operator, and the version in which it got its meaning."""
        schema = onnx.defs.get_schema(self.operator, self.version, self.domain)
        return self.domain, self.operator, schema.since_version

    def model(self, *, is_typed: bool = True) -> onnx.ModelProto:
        """Return a model of this node alone. Its output has a type if `is_typed`."""
        names = ["" if value is None else f"x{k}" for k, value in enumerate(self.inputs)]
        results = [f"y{k}" for k in range(self.outputs)]
        node = helper.make_node(
            self.operator, names, results, domain=self.domain, **self.attributes
        )
        stored = [
            onnx.numpy_helper.from_array(np.asarray(self.inputs[place]), names[place])
            for place in self.constants
        ]
        inputs = [
            onnx.helper.make_value_info(name, self._type(k))
            for k, (name, value) in enumerate(zip(names, self.inputs, strict=True))
            if value is not None and k not in self.constants
        ]
        outputs = [helper.make_empty_tensor_value_info(name) for name in results]
        graph = helper.make_graph([node], "case", inputs, outputs, stored)
        sets = [helper.make_opsetid(self.domain, self.version)]
        if self.domain:
            sets.append(helper.make_opsetid("", 21))
        made = helper.make_model(graph, opset_imports=sets, ir_version=10)
        if not is_typed:
            return made
        try:
            return onnx.shape_inference.infer_shapes(made)
        except Exception:  # onnx's own classes; types of outputs stay unknown
            return made

    def _type(self, place: int) -> onnx.TypeProto:
        kind = _type_of(self.inputs[place], self.shapes.get(place))
        return helper.make_optional_type_proto(kind) if place in self.optionals else kind

    def feeds(self) -> dict[str, Any]:
        """Return the inputs by name."""
        return {
            f"x{k}": value
            for k, value in enumerate(self.inputs)
            if value is not None and k not in self.constants
        }


def versions(operator: str, since: int = 1, before: int = 1000, domain: str = "") -> list[int]:
    """Return the versions in which an operator got a meaning, from `since` on, before `before`."""
    known = _all_versions().get((domain, operator), set())
    return [version for version in sorted(known) if since <= version < before]


@cache
def _all_versions() -> dict[tuple[str, str], set[int]]:
    """Return the versions of all operators, which ONNX takes 25 ms to list."""
    known: dict[tuple[str, str], set[int]] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        known.setdefault((schema.domain, schema.name), set()).add(schema.since_version)
    return known


def _type_of(value: Any, shape: Sequence[int | str] | None = None) -> onnx.TypeProto:
    if isinstance(value, list):
        return helper.make_sequence_type_proto(_type_of(value[0]))
    if isinstance(value, dict):
        key, element = next(iter(value.items()))
        kind = onnx.TensorProto.STRING if isinstance(key, str) else onnx.TensorProto.INT64
        return helper.make_map_type_proto(kind, _type_of(_element(element)))
    array = np.asarray(value)
    if array.dtype.kind in "OU":
        return helper.make_tensor_type_proto(onnx.TensorProto.STRING, array.shape)
    code = helper.np_dtype_to_tensor_dtype(array.dtype)
    return helper.make_tensor_type_proto(code, array.shape if shape is None else shape)


def graph_of(case: NodeCase) -> Graph:
    """Return the graph that refcomp reads."""
    # onnx's inference of types dies of a signal for some ill-formed nodes.
    return from_onnx(case.model(is_typed=False).SerializeToString())


def is_deferred(case: NodeCase) -> bool:
    """Return True if refcomp converts the node in the run."""
    return any(is_macro(node.operator) for node in graph_of(case).nodes)


def _element(value: Any) -> Any:
    """Return an element of a map, as an array of its dtype: a number of Python is f32."""
    return np.float32(value) if type(value) is float else np.asarray(value)


def check(case: NodeCase, device: str = "INTERP") -> None:
    """Raise AssertionError unless refcomp agrees with all that judge the case."""
    model = case.model()
    made = onnx_backend.prepare(model, device).run(case.feeds())
    judges = {}
    if case.expected is not None:
        judges["the operator's text"] = list(case.expected)
    for name, run in ((RUNTIME, _by_runtime), (EVALUATOR, _by_evaluator)):
        if name not in case.wrong:
            results = run(case, model)
            if results is not None:
                judges[name] = results
    assert judges, f"nobody judges {case}: state what is expected"
    assert case.expected is not None or not case.wrong, "state what is right"
    for name, results in judges.items():
        for place, (one, right) in enumerate(zip(made, results, strict=True)):
            _compare(one, right, case, f"{case}, output {place}, by {name}")


def last_of_each(cases: Sequence[NodeCase]) -> list[NodeCase]:
    """Return one case of each operator, which states what is expected."""
    chosen = {case.operator: case for case in cases if case.expected is not None}
    return list(chosen.values())


def check_in_a_run(case: NodeCase, *, has_rank: bool) -> None:
    """Check a case in a model that does not declare the extents of inputs, or not even ranks."""
    model = case.model()
    for output in model.graph.output:
        output.type.tensor_type.ClearField("shape")
    for place, info in enumerate(model.graph.input):
        if not info.type.HasField("tensor_type"):
            continue
        tensor = info.type.tensor_type
        if not has_rank:
            tensor.ClearField("shape")
            continue
        for axis, dim in enumerate(tensor.shape.dim):
            dim.dim_param = f"n{place}_{axis}"
    made = onnx_backend.prepare(model, "INTERP").run(case.feeds())
    assert case.expected is not None
    for place, (one, right) in enumerate(zip(made, case.expected, strict=True)):
        _compare(one, right, case, f"{case}, output {place}")


def _compare(made: Any, right: Any, case: NodeCase, what: str) -> None:
    if isinstance(right, list | tuple):
        assert isinstance(made, list) and len(made) == len(right), what
        for one, other in zip(made, right, strict=True):
            _compare(one, other, case, what)
        return
    if isinstance(right, dict):
        assert made.keys() == right.keys(), what
        pairs = [(made[key], right[key]) for key in right]
        _compare(*map(np.array, zip(*pairs, strict=True)), case, what)
        return
    right = np.asarray(right)
    assert made.shape == right.shape, f"{what}: {made.shape} != {right.shape}"
    if right.dtype.kind in "OU":
        assert made.tolist() == right.tolist(), what
        return
    assert made.dtype == right.dtype, f"{what}: {made.dtype} != {right.dtype}"
    if right.dtype.kind in "biu":
        np.testing.assert_array_equal(made, right, what)
        return
    wide = [np.asarray(one, np.float64) for one in (made, right)]
    np.testing.assert_allclose(*wide, rtol=case.rtol, atol=case.atol, err_msg=what)


def _by_runtime(case: NodeCase, model: onnx.ModelProto) -> list[Any] | None:
    """Return the outputs of ONNX Runtime; None if it does not take the node."""
    import onnxruntime  # noqa: PLC0415  (slow)

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1  # to start threads takes nine times what a node takes
    try:
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        made = session.run(None, case.feeds())
    except Exception:  # its classes share no base but Exception
        return None
    return list(map(_typed, made, model.graph.output))


def _typed(made: Any, info: onnx.ValueInfoProto) -> Any:
    """Return an output of ONNX Runtime, which gives floats of 8 bits as u8."""
    code = info.type.tensor_type.elem_type
    if code not in ELEMENT_TYPES or not is_narrow_float(code):
        return made
    return np.asarray(made).view(ELEMENT_TYPES[code].numpy)


def _by_evaluator(case: NodeCase, model: onnx.ModelProto) -> list[Any] | None:
    """Return the outputs of ONNX's evaluator; None if it does not take the node."""
    try:
        with np.errstate(all="ignore"):
            return list(ReferenceEvaluator(model).run(None, case.feeds()))
    except Exception:  # whatever its operators raise
        return None
