"""Losses of predicted classes."""

from __future__ import annotations

from refcomp.frontend.onnx.node import OnnxNode
from refcomp.frontend.onnx.registry import converter
from refcomp.graph.graph import Value
from refcomp.topi.operator import Attribute


def _attributes(node: OnnxNode) -> dict[str, Attribute]:
    """Return the attributes of a loss. A target out of range is ignored in any case."""
    attributes: dict[str, Attribute] = {
        "reduction": str(node.attributes.get("reduction", "mean"))
    }
    ignored = node.attributes.get("ignore_index")
    if ignored is not None:
        attributes["ignore_index"] = int(ignored)
    return attributes


@converter("NegativeLogLikelihoodLoss", since=12)
def negative_log_likelihood_loss(node: OnnxNode) -> Value:
    """Convert NegativeLogLikelihoodLoss of any version."""
    operands = [node.required(0), node.required(1), node.input(2)]
    return node.make_fitting("nll_loss", operands, **_attributes(node))


@converter("SoftmaxCrossEntropyLoss", since=12)
def softmax_cross_entropy_loss(node: OnnxNode) -> list[Value]:
    """Convert SoftmaxCrossEntropyLoss of any version; its logarithms are shared if used."""
    scores, labels, weights = node.required(0), node.required(1), node.input(2)
    attributes = _attributes(node)
    if not node.is_used(1):
        operands = [scores, labels, weights]
        return [node.make_fitting("cross_entropy", operands, **attributes)]
    logarithms = node.make("log_softmax", [scores], axis=1)
    loss = node.make_fitting("nll_loss", [logarithms, labels, weights], **attributes)
    return [loss, logarithms]
