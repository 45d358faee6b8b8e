"""Frontends: read models of other systems as graphs.

A frontend refuses what it cannot convert, with the name of the node and the reason.

Example::

    >>> rc.frontend.from_onnx(b"not a model")
    Traceback (most recent call last):
        ...
    refcomp.foundation.errors.UserError: this is not an ONNX model, or a damaged one...
"""

from refcomp.frontend.onnx import from_onnx, register_converter

__all__ = ["from_onnx", "register_converter"]


def __dir__() -> list[str]:
    return sorted(__all__)
