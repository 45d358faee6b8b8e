"""Read an ONNX model as a graph. Needs the optional package `onnx`.

Raises UserError for files that are too large, truncated or not ONNX, for external data, and for
inconsistent shapes and dtypes. Raises one Unsupported that counts all operators and attributes that
refcomp cannot run. Names in a model are hostile, so messages and text contain them only quoted.
"""

from __future__ import annotations

import math
import os
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from refcomp.foundation.dtype import SCALAR_DTYPES, DType, as_dtype, to_numpy
from refcomp.foundation.errors import RefcompError, Unsupported, UserError
from refcomp.foundation.paths import checked_path
from refcomp.frontend.onnx_attributes import Attributes, Proto, read_attributes
from refcomp.frontend.onnx_operators import CONVERTERS, OnnxValues
from refcomp.frontend.onnx_weights import take_weights
from refcomp.graph.builder import GraphBuilder
from refcomp.graph.graph import Array, Graph
from refcomp.graph.verify import verify_graph

MAX_BYTES = 1 << 30
# The versions of ONNX's operator set whose operators the converters implement.
OPSETS = range(13, 25)

_PIECE = 16 << 20  # bytes of a file that are read at a time
# The fields of a TensorProto that hold elements one by one.
_NUMBER_FIELDS = (
    "float_data",
    "int32_data",
    "int64_data",
    "double_data",
    "uint64_data",
)
_DOMAINS = ("", "ai.onnx")  # two names of ONNX's own operator set


def from_onnx(
    source: str | os.PathLike[str] | bytes, *, max_bytes: int = MAX_BYTES
) -> Graph:
    """Return the graph of an ONNX model. It needs the optional package `onnx`.

    Symbolic extents keep their names. The operators are those of the operator sets 13 to 24.

    Args:
        source: the path of a model file, or its bytes.
        max_bytes: the largest file that is read, in bytes. Default 1 GiB.

    Raises:
        UserError: `onnx` is not installed; or the file is missing, too large, truncated or not
            ONNX, has data in other files, or has inconsistent shapes or dtypes.
        Unsupported: operators or attributes that refcomp cannot run. The error counts all of them.

    Source: the ONNX operator specification.

    Example::

        >>> from onnx import TensorProto, helper
        >>> x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 4])
        >>> y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 4])
        >>> node = helper.make_node("Relu", ["x"], ["y"])
        >>> model = helper.make_model(
        ...     helper.make_graph([node], "net", [x], [y]),
        ...     opset_imports=[helper.make_opsetid("", 17)],
        ... )
        >>> print(rc.from_onnx(model.SerializeToString()))
        graph net(x: f32[N, 4]) -> (y) {
          y: f32[N, 4] = relu(x)
        }
    """
    weights = take_weights(_read(source, max_bytes))
    model = _parse(weights.rest)
    _check_opset(model)
    graph = _Importer(model.graph, weights.taken).build()
    verify_graph(graph)
    return graph


def _onnx() -> Proto:
    try:
        import onnx  # noqa: PLC0415  optional
        import onnx.numpy_helper  # noqa: PLC0415
    except ImportError as error:
        raise UserError(
            "reading an ONNX model needs the package onnx, which is not installed",
            remedy='pip install "refcomp[onnx]"',
        ) from error
    return onnx


def _read(source: str | os.PathLike[str] | bytes, max_bytes: int) -> bytes:
    if isinstance(source, bytes):
        _check_size(len(source), "the model", max_bytes)
        return source
    path = Path(checked_path(source, "an ONNX model"))
    try:
        with path.open("rb") as file:
            # Not max_bytes + 1 at once: Python takes that much memory, however small the file is.
            size = os.fstat(file.fileno()).st_size
            pieces = [file.read(min(size, max_bytes) + 1)]
            # The file may have grown, and a pipe has no size.
            while sum(map(len, pieces)) <= max_bytes and (piece := file.read(_PIECE)):
                pieces.append(piece)
    except (OSError, ValueError) as error:
        raise UserError(
            f"the model {str(path)!r} cannot be read",
            why=str(error),
            remedy="check the path",
        ) from error
    data = b"".join(pieces)  # of one piece, it is the same object
    _check_size(len(data), repr(str(path)), max_bytes)
    return data


def _check_size(size: int, what: str, max_bytes: int) -> None:
    if size > max_bytes:
        raise UserError(
            f"{what} is larger than {max_bytes} bytes",
            remedy="if you trust it, pass from_onnx(..., max_bytes=N)",
        )


def _parse(data: bytes) -> Proto:
    onnx = _onnx()
    if not data:
        raise UserError(
            "the model is empty", remedy="give a file that an exporter has finished"
        )
    try:
        model = onnx.ModelProto.FromString(data)
    except Exception as error:  # protobuf's own class moved between its versions
        raise _not_a_model(f"it does not parse: {error}") from error
    if not model.HasField("graph") or not model.opset_import or not model.ir_version:
        raise _not_a_model("it has no graph or names no operator set")
    return model


def _not_a_model(why: str) -> UserError:
    return UserError(
        "this is not an ONNX model, or a damaged one",
        why=why,
        remedy="compare its size with the original's; export or download it again",
    )


def _check_opset(model: Proto) -> None:
    versions = [o.version for o in model.opset_import if o.domain in _DOMAINS]
    if not versions or versions[0] not in OPSETS:
        raise Unsupported(
            f"the model uses operator set {versions[0] if versions else 'none'} of ONNX",
            why=f"refcomp knows {OPSETS.start} to {OPSETS.stop - 1}",
            remedy="convert it: onnx.version_converter.convert_version(model, 17)",
        )


class _Importer:
    """A reader of one model's graph. `context` holds what has been built so far."""

    def __init__(self, proto: Proto, weights: Mapping[int, memoryview]) -> None:
        self.proto = proto  # a GraphProto
        # number of an initializer -> its elements, which `proto` does not hold
        self.weights = weights
        self.onnx = _onnx()
        self.context = OnnxValues(GraphBuilder(proto.name or "model"))
        self.reasons = Reasons()
        # Outputs of nodes that could not be converted. Nodes that read them are only checked.
        self.lost: set[str] = set()

    def build(self) -> Graph:
        stored = self._read_constants()
        self._add_inputs(stored)
        for name, array in stored.items():
            self.context.add_constant(name, array)
        for node in self.proto.node:
            self._add_node(node)
        self.reasons.raise_any()
        outputs = []
        for output in self.proto.output:
            value = self.context.values.get(output.name)
            if value is None:
                raise UserError(
                    f"nothing makes the output {output.name!r} of the model",
                    remedy="the file is damaged or incomplete: export it again",
                )
            outputs.append(value)
        return self.context.builder.finish(outputs)

    def _read_constants(self) -> dict[str, Array]:
        if self.proto.sparse_initializer:
            raise Unsupported(
                "the model stores sparse constants, which refcomp does not support",
                remedy="store them as dense tensors",
            )
        stored: dict[str, Array] = {}
        for number, tensor in enumerate(self.proto.initializer):
            if tensor.name in stored:
                raise UserError(
                    f"two constants of the model are named {tensor.name!r}",
                    remedy="the file is damaged: export it again",
                )
            raw = self.weights.get(number)
            stored[tensor.name] = self.read_tensor(tensor, raw)
        return stored

    def read_tensor(self, tensor: Proto, raw: memoryview | None = None) -> Array:
        """Return the elements of a stored tensor; `raw` holds them if `tensor` does not.

        Its size is checked before any memory is allocated for it. The array shares the memory of
        `raw`.
        """
        what = f"constant {tensor.name!r}"
        is_external = tensor.data_location == self.onnx.TensorProto.EXTERNAL
        if is_external or tensor.external_data:
            raise UserError(
                f"{what} lies in another file",
                why="external data names paths, which a model of unknown origin must not choose",
                remedy="onnx.save(onnx.load(path), path, save_as_external_data=False)",
            )
        dims = list(tensor.dims)
        dtype = self.element_dtype(tensor.data_type, what)
        # Bytes, at most: the elements are raw, or numbers of up to 8 bytes in one of the fields.
        numbers = sum(len(getattr(tensor, name)) for name in _NUMBER_FIELDS)
        raw_size = len(tensor.raw_data) if raw is None else len(raw)
        stored = raw_size or 8 * numbers
        # Before `to_array`, which would allocate whatever a damaged shape asks for.
        least = math.prod(dims) if raw_size else 0
        if any(dim < 0 for dim in dims) or least > stored:
            raise UserError(
                f"{what} of shape {dims} does not fit its {stored} bytes of data",
                remedy="the file is damaged or incomplete: export it again",
            )
        try:
            if raw is None:
                array = np.asarray(self.onnx.numpy_helper.to_array(tensor))
            else:
                array = np.frombuffer(raw, _little_endian(dtype)).reshape(dims)
        except Exception as error:  # whatever onnx and numpy raise for damaged data
            raise UserError(
                f"{what} of shape {dims} is damaged",
                why=str(error),
                remedy="export the model again",
            ) from error
        assert as_dtype(array.dtype) == dtype
        return array

    def element_dtype(self, code: int, what: str) -> DType:
        """Return the dtype for ONNX's number of an element type, or raise UserError."""
        try:
            return as_dtype(self.onnx.helper.tensor_dtype_to_np_dtype(code))
        except (KeyError, RefcompError, TypeError, ValueError) as error:
            known = self.onnx.TensorProto.DataType
            name = known.Name(code) if code in known.values() else str(code)
            raise UserError(
                f"{what} has the element type {name}",
                why=f"refcomp knows {' '.join(map(str, SCALAR_DTYPES))}",
                remedy="convert the model to one of these",
            ) from error

    def _add_inputs(self, stored: Mapping[str, Array]) -> None:
        for info in self.proto.input:
            if info.name in stored:
                continue  # older models list their constants among the inputs
            what = f"input {info.name!r}"
            if not info.type.HasField("tensor_type"):
                raise Unsupported(
                    f"{what} is not a tensor", remedy="export it with tensors only"
                )
            kind = info.type.tensor_type
            if not kind.HasField("shape"):
                raise UserError(
                    f"{what} has no shape", remedy="export the model with shapes"
                )
            dtype = self.element_dtype(kind.elem_type, what)
            shape = [self._dim(d, info.name, k) for k, d in enumerate(kind.shape.dim)]
            value = self.context.builder.input(info.name, dtype, shape)
            self.context.add(info.name, value)

    def _dim(self, dim: Proto, name: str, place: int) -> int | str:
        """Return extent `place` of input `name`. An unknown extent becomes a symbol of its own."""
        if not dim.HasField("dim_value"):
            return str(dim.dim_param) or f"{name!r}.extent{place}"
        if dim.dim_value < 0:
            raise UserError(
                f"extent {place} of input {name!r} is {dim.dim_value}",
                why="an extent cannot be negative",
                remedy="the file is damaged: export it again",
            )
        return int(dim.dim_value)

    def _add_node(self, node: Proto) -> None:
        is_standard = node.domain in _DOMAINS
        known = is_standard and node.op_type in CONVERTERS
        title = node.op_type if is_standard else f"{node.domain}.{node.op_type}"
        self._check_defined(node)
        try:
            if not known:
                raise Unsupported("refcomp does not support the operator")
            attributes = self._attributes(node)
            if self.lost & set(node.input):
                self.lost.update(node.output)
                return
            CONVERTERS[node.op_type].convert(
                self.context, node.input, node.output, attributes
            )
        except Unsupported as error:
            self.reasons.add(title, error.what)
            self.lost.update(filter(None, node.output))
        except UserError as error:
            error.where = error.where or f"node {node.name or node.op_type!r} ({title})"
            raise

    def _attributes(self, node: Proto) -> Attributes:
        converter = CONVERTERS[node.op_type]
        attributes = read_attributes(node, converter.attributes, self.read_tensor)
        converter.check(attributes)
        if len([name for name in node.output if name]) > converter.max_outputs:
            raise Unsupported(
                f"more than {converter.max_outputs} of its outputs are used"
            )
        return attributes

    def _check_defined(self, node: Proto) -> None:
        for name in filter(None, node.input):
            if name not in self.context.values and name not in self.lost:
                raise UserError(
                    f"node {node.name or node.op_type!r} reads {name!r}, which nothing before it "
                    "makes",
                    remedy="the file is damaged, or its nodes are out of order: export it again",
                )
        for name in filter(None, node.output):
            if name in self.context.values or name in self.lost:
                raise UserError(
                    f"two nodes of the model make {name!r}",
                    remedy="the file is damaged: export it again",
                )


def _little_endian(dtype: DType) -> np.dtype[np.generic]:
    """Return the numpy dtype of raw elements in a model."""
    native = to_numpy(dtype)
    return native if sys.byteorder == "little" else native.newbyteorder("<")


class Reasons:
    """The features of a model that refcomp lacks, collected for one error that lists all."""

    def __init__(self) -> None:
        # (operator, reason) -> number of nodes
        self._counts: Counter[tuple[str, str]] = Counter()

    def add(self, operator: str, reason: str) -> None:
        """Count one more node of `operator` that cannot be run, because of `reason`."""
        self._counts[operator, reason] += 1

    def raise_any(self) -> None:
        """Raise Unsupported that lists all reasons, the most frequent operator first."""
        if not self._counts:
            return
        lines = [
            f"{operator!r} ({count} {'node' if count == 1 else 'nodes'}): {reason}"
            for (operator, reason), count in self._counts.most_common()
        ]
        total = sum(self._counts.values())
        raise Unsupported(
            f"refcomp cannot run {total} {'node' if total == 1 else 'nodes'} of this model",
            why="\n    ".join(["", *lines]),
            remedy="export the model with other operators, or register what is missing",
        )
