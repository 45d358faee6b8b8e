"""The passes that run over a graph before it is compiled, in order, each with its reason."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.foundation.near_misses import advise
from refcomp.foundation.options import current_options
from refcomp.foundation.target import Target, as_target
from refcomp.graph.graph import Graph, spell
from refcomp.graph.passes.block_channels import block_channels
from refcomp.graph.passes.cancel_layout_changes import cancel_layout_changes
from refcomp.graph.passes.choose_layout import choose_layout
from refcomp.graph.passes.convert_quantized import convert_quantized
from refcomp.graph.passes.fold_batch_norm import fold_batch_norm
from refcomp.graph.passes.fold_constants import fold_constants
from refcomp.graph.passes.fold_scale_axis import fold_scale_axis
from refcomp.graph.passes.fuse_operators import fuse_operators
from refcomp.graph.passes.merge_equal_nodes import merge_equal_nodes
from refcomp.graph.passes.mixed_precision import mixed_precision
from refcomp.graph.passes.pack_matrices import pack_matrices
from refcomp.graph.passes.remove_dead_nodes import remove_dead_nodes
from refcomp.graph.passes.remove_identities import remove_identities
from refcomp.graph.passes.simplify_inference import simplify_inference
from refcomp.graph.passes.use_winograd import use_winograd
from refcomp.graph.passes.widen_products import widen_products
from refcomp.graph.stages.stages import has_stages
from refcomp.graph.verify import verify_graph


class Rounding(StrEnum):
    """A way in which a pass may change results."""

    NONE = "no bit changes"
    ROUNDS = "results differ by rounding"
    NARROWS = "results differ by rounding, and large numbers overflow"


@dataclass(frozen=True, slots=True)
class GraphStep:
    """A pass, and the reason for its place.

    Attributes:
        function: the pass: from a graph, and a target if it needs one, to a graph.
        reason: why it has its place.
        rounding: how it may change results. Sums in another order round differently, too.
        needs_target: True if the pass depends on what the graph is compiled for.
    """

    function: Callable[..., Graph]
    reason: str
    rounding: Rounding = Rounding.NONE
    needs_target: bool = False

    @property
    def name(self) -> str:
        return self.function.__name__

    def apply(self, graph: Graph, target: Target | str = "llvm") -> Graph:
        """Return what the pass makes of `graph`, which is compiled for `target`."""
        if self.needs_target:
            return self.function(graph, target)
        return self.function(graph)


STEPS = (
    GraphStep(remove_dead_nodes, "first: no other pass looks at dead nodes"),
    GraphStep(remove_identities, "other passes look for adjacent nodes"),
    GraphStep(fold_constants, "batch norms fold only if their inputs are constants"),
    GraphStep(merge_equal_nodes, "a value with one reader can be folded and fused"),
    GraphStep(
        fold_batch_norm,
        "before block_channels: it handles one layout of weights",
        Rounding.ROUNDS,
    ),
    GraphStep(
        fold_scale_axis, "before block_channels, for the same reason", Rounding.ROUNDS
    ),
    GraphStep(
        simplify_inference, "takes the batch norms that no layer took", Rounding.ROUNDS
    ),
    GraphStep(
        widen_products,
        "before block_channels and pack_matrices, which lay out weights of f32",
        needs_target=True,
    ),
    GraphStep(
        block_channels,
        "before choose_layout, which takes the convolutions that have no blocks",
        Rounding.ROUNDS,
        needs_target=True,
    ),
    GraphStep(
        use_winograd,
        "after block_channels, whose convolutions it takes; fold_constants follows",
        Rounding.ROUNDS,
        needs_target=True,
    ),
    GraphStep(
        choose_layout,
        "before fuse_operators, which hides nodes in subgraphs",
        Rounding.ROUNDS,
    ),
    GraphStep(cancel_layout_changes, "choose_layout adds transposes that may meet"),
    GraphStep(
        pack_matrices,
        "leaves nodes of constants, as choose_layout does",
        Rounding.ROUNDS,
        needs_target=True,
    ),
    GraphStep(fold_constants, "packs weights: the nodes above are of constants"),
    GraphStep(fuse_operators, "last: it hides nodes in subgraphs"),
)
# Passes that run only if they are chosen by name, since they round differently.
OPTIONAL_STEPS = (
    GraphStep(
        convert_quantized,
        "before fold_constants, which computes the weights that are dequantized",
        Rounding.ROUNDS,
    ),
    GraphStep(
        mixed_precision,
        "after fold_batch_norm and fold_scale_axis, which scale no narrow weights",
        Rounding.NARROWS,
    ),
)
# Passes after which no other may run.
_LAST = ("fuse_operators",)
_LOG = logging.getLogger("refcomp.graph")


def optimize(
    graph: Graph,
    passes: Sequence[str] | None = None,
    target: Target | str = "llvm",
) -> Graph:
    """Return a graph with the same outputs after all passes: operators are fused, constants folded.

    The graph is verified before the first pass, and after each pass that changed it. Nodes that a
    pass kept are not verified again, unless the build option `verify_steps` asks for it. A graph
    with control operators stays: its stages are optimized when they are compiled.

    The logger `refcomp.graph` reports at DEBUG each pass that changed the graph.

    Args:
        graph: any graph.
        passes: the names of the passes to run, in order; None for STEPS. Those of OPTIONAL_STEPS
            run only if they are named. Each pass works in any order, but for `fuse_operators`,
            which is the last one.
        target: what the graph will be compiled for; see `build`. Layouts depend on it.

    Raises:
        UserError: a pass is unknown, or stands behind `fuse_operators`; or the target is unknown.

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
        >>> rc.graph.optimize(net, ["remove_identities"]) is net
        True
    """
    return _apply_passes(graph, passes, target)


def optimized_steps(
    graph: Graph,
    passes: Sequence[str] | None = None,
    target: Target | str = "llvm",
) -> list[tuple[str, Graph]]:
    """Return the name of each pass that changes the graph, in order, and what it makes of it.

    Args:
        graph: any graph.
        passes: the names of the passes to run, as for `optimize`.
        target: what the graph will be compiled for.

    Raises:
        UserError: as for `optimize`.

    Example::

        >>> text = "graph g(x: f32[2]) -> (y) { d: f32[2] = exp(x) y: f32[2] = relu(x) }"
        >>> for name, changed in rc.graph.optimized_steps(rc.graph.parse_graph(text)):
        ...     print(name, changed)
        remove_dead_nodes graph g(x: f32[2]) -> (y) {
          y: f32[2] = relu(x)
        }
    """
    steps: list[tuple[str, Graph]] = []
    _apply_passes(graph, passes, target, steps)
    return steps


# Folding constants may overflow or divide by zero. It must not warn, as a run does not.
@np.errstate(all="ignore")
def _apply_passes(
    graph: Graph,
    passes: Sequence[str] | None,
    target: Target | str,
    log: list[tuple[str, Graph]] | None = None,
) -> Graph:
    """Return what the passes make of a graph, and append each step to a log.

    Without a log, weights that only a graph between two passes has do not live longer than it.
    """
    options = current_options()
    verify_graph(graph)
    chosen = _chosen(passes)
    as_target(target)  # refused even if no pass needs it
    if has_stages(graph):
        return graph
    for step in chosen:
        changed = step.apply(graph, target)
        if changed is graph:
            continue
        verify_graph(changed, () if options.verify_steps else graph.nodes)
        before, after = len(graph.nodes), len(changed.nodes)
        name = spell(graph.name)
        _LOG.debug("%s: %d nodes -> %d in %s", step.name, before, after, name)
        if log is not None:
            log.append((step.name, changed))
        graph = changed
    return graph


def _chosen(passes: Sequence[str] | None) -> list[GraphStep]:
    """Return the passes of these names."""
    if passes is None:
        return list(STEPS)
    if isinstance(passes, str) or not isinstance(passes, Sequence):
        raise UserError(
            f"passes are given as {passes!r}", remedy='give a list: ["fold_constants"]'
        )
    steps = (*STEPS, *OPTIONAL_STEPS)
    known = {step.name: step for step in steps}
    for place, name in enumerate(passes):
        if name not in known:
            raise UserError(
                f"no graph pass is called {name!r}",
                remedy=advise(str(name), known, f"passes: {', '.join(known)}"),
            )
        later = passes[place + 1 :]
        if name in _LAST and set(later) - set(_LAST):
            raise UserError(
                f"the graph pass {later[0]} stands behind {name}",
                why="it would not see the nodes in the subgraphs of fused nodes",
                remedy=f"let {name} be the last pass",
            )
    return [known[name] for name in passes]
