"""ONNX: read models as graphs.

Reading order: reading.py (bytes and their limits), element_types.py, tensors.py and weights.py
(stored constants), attributes.py, node.py (a node as a converter sees it), registry.py,
broadcasting.py (shapes of operands), conversions.py (between element types). Then converters/ (one
file for each family of operators), functions.py, parts.py (nodes that compute a value),
output_types.py, scope.py (names of values), nodes.py (converts nodes), deferred.py (nodes that a
run converts). Last, string_codes.py (numbers for strings), refusals.py, importer.py (`from_onnx`),
peer.py (ONNX Runtime).
"""

from refcomp.frontend.onnx.importer import from_onnx
from refcomp.frontend.onnx.registry import register_converter

__all__ = ["from_onnx", "register_converter"]
