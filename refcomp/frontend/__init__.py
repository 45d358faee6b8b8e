"""Frontends: models of other systems become graphs.

    from refcomp import frontend

    graph = frontend.from_onnx("model.onnx")

What cannot be converted is refused with the node's name and the reason.
"""

from refcomp.frontend.onnx import from_onnx

__all__ = ["from_onnx"]


def __dir__() -> list[str]:
    return sorted(__all__)
