"""Run a model by ONNX Runtime, and return every value that it computes.

Needs the optional packages `onnx` and `onnxruntime`. The optimizations of ONNX Runtime are off, so
that each node computes what the model says, and no value is optimized away.
"""

from __future__ import annotations

from collections.abc import Mapping

from refcomp.foundation.errors import ToolchainError, UserError
from refcomp.graph.graph import Array


def run_onnx_runtime(model: bytes, feeds: Mapping[str, Array]) -> dict[str, Array]:
    """Return the outputs of all nodes of a model, by name, and its inputs.

    Args:
        model: the bytes of a model file, which `from_onnx` reads.
        feeds: name of an input -> its array.

    Raises:
        UserError: a package is not installed.
        ToolchainError: ONNX Runtime refuses the model or the inputs.
    """
    try:
        import onnx  # noqa: PLC0415  optional
        import onnxruntime  # noqa: PLC0415
    except ImportError as error:
        raise UserError(
            f"comparing with ONNX Runtime needs the package {error.name}, which is not installed",
            remedy='pip install "refcomp[onnx,bench]", or compare with --against evaluate',
        ) from error
    proto = onnx.ModelProto.FromString(model)
    outputs = {output.name for output in proto.graph.output}
    names = [name for node in proto.graph.node for name in node.output if name]
    for name in names:
        if name not in outputs:
            proto.graph.output.append(onnx.ValueInfoProto(name=name))
    options = onnxruntime.SessionOptions()
    levels = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = levels.ORT_DISABLE_ALL
    options.log_severity_level = 3  # errors only
    try:
        session = onnxruntime.InferenceSession(
            proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        arrays = session.run(names, dict(feeds))
    except Exception as error:  # its classes share no base but Exception
        raise ToolchainError(
            "ONNX Runtime does not run the model",
            stderr=str(error),
            remedy="compare with --against evaluate",
        ) from error
    return dict(feeds) | dict(zip(names, arrays, strict=True))
