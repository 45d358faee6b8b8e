"""The passes that run over a graph before it is compiled, in order, each with its reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from refcomp.foundation.options import current_options
from refcomp.graph.graph import Graph
from refcomp.graph.passes.choose_layout import choose_layout
from refcomp.graph.passes.fold_batch_norm import fold_batch_norm
from refcomp.graph.passes.fold_constants import fold_constants
from refcomp.graph.passes.fuse_operators import fuse_operators
from refcomp.graph.passes.pack_matrices import pack_matrices
from refcomp.graph.passes.remove_identities import remove_identities
from refcomp.graph.verify import verify_graph

GraphPass = Callable[[Graph], Graph]


@dataclass(frozen=True, slots=True)
class GraphStep:
    """A pass, and the reason for its place."""

    function: GraphPass
    reason: str  # for its place


STEPS = (
    GraphStep(remove_identities, "first: other passes look for adjacent nodes"),
    GraphStep(fold_constants, "batch norms fold only if their inputs are constants"),
    GraphStep(
        fold_batch_norm, "before choose_layout: it handles one layout of weights"
    ),
    GraphStep(choose_layout, "before fuse_operators, which hides nodes in subgraphs"),
    GraphStep(pack_matrices, "leaves a transpose of constants, as choose_layout does"),
    GraphStep(fold_constants, "packs weights: the transposes above are of constants"),
    GraphStep(fuse_operators, "last: it hides nodes in subgraphs"),
)


# Folding constants may overflow or divide by zero. It must not warn, as a run does not.
@np.errstate(all="ignore")
def optimize(graph: Graph) -> Graph:
    """Return a graph with the same outputs after all passes: operators are fused, constants folded.

    The graph is verified before the first pass, and after each pass that changed it. Nodes that a
    pass kept are not verified again, unless the build option `verify_steps` asks for it.

    Args:
        graph: any graph.

    Example::

        >>> builder = rc.graph.GraphBuilder("net")
        >>> x = builder.input("x", "float32", ("N",))
        >>> net = builder.finish([builder.node("relu", [builder.node("tanh", [x])])])
        >>> print(rc.graph.optimize(net))
        graph net(x: f32[N]) -> (relu) {
          relu: f32[N] = fused(x)
            graph tanh_relu(x: f32[N]) -> (relu) {
              tanh: f32[N] = tanh(x)
              relu: f32[N] = relu(tanh)
            }
        }
    """
    options = current_options()
    verify_graph(graph)
    for step in STEPS:
        changed = step.function(graph)
        if changed is not graph:
            verify_graph(changed, () if options.verify_steps else graph.nodes)
        graph = changed
    return graph
