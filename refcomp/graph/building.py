"""Build a network of symbols, in the classic style: a graph, a module and parameters.

    graph, lib, params = refcomp.graph.build(net, "llvm", shape={"data": (1, 8)}, params=params)

Parameters that are given become constants, which passes fold and pack. So the parameters that are
returned may have other names and shapes. Parameters that are not given stay inputs of the graph,
and are copied in each run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from refcomp.foundation.dtype import as_dtype
from refcomp.foundation.errors import UserError
from refcomp.foundation.near_misses import advise
from refcomp.foundation.records import record
from refcomp.foundation.target import Target, target_or_current, with_host
from refcomp.graph.compile import compile_graph
from refcomp.graph.compiled import CompiledGraph, without_weights
from refcomp.graph.constants import aligned
from refcomp.graph.graph import Array, Graph
from refcomp.graph.optimize import STEPS
from refcomp.graph.params import host_arrays
from refcomp.graph.symbol.symbol import Symbol
from refcomp.graph.weights import inputs_to_constants
from refcomp.runtime.arrays.ndarray import NDArray, from_numpy
from refcomp.runtime.module import Module

# Pass -> the least level at which it runs. Other passes run at level 3.
_LEVELS = {
    "remove_dead_nodes": 0,
    "remove_identities": 0,
    "simplify_inference": 0,
    "fuse_operators": 1,
    "fold_constants": 2,
    "merge_equal_nodes": 2,
}
# Optional pass -> the pass before which it runs if it is added, as OPTIONAL_STEPS asks.
_OPTIONAL = {
    "convert_quantized": "fold_constants",
    "mixed_precision": "simplify_inference",
}
MAX_LEVEL = 3


@record
class GraphConfig:
    """The options of `refcomp.graph.build`.

    Attributes:
        opt_level: 0 removes what has no effect, 1 also fuses operators, 2 also folds constants, 3
            also folds scales into weights and chooses layouts.
        add_pass: the names of passes that run although their level is higher, or although they are
            optional.
    """

    opt_level: int = MAX_LEVEL
    add_pass: tuple[str, ...] = ()

    def passes(self) -> list[str]:
        """Return the names of the passes that run, in order."""
        names: list[str] = []
        for step in STEPS:
            for optional, before in _OPTIONAL.items():
                is_new = optional in self.add_pass and optional not in names
                if before == step.name and is_new:
                    names.append(optional)
            level = _LEVELS.get(step.name, MAX_LEVEL)
            if level <= self.opt_level or step.name in self.add_pass:
                names.append(step.name)
        return names


_CONFIG: ContextVar[GraphConfig | None] = ContextVar("graph_config", default=None)


@contextmanager
def build_config(
    opt_level: int = MAX_LEVEL, add_pass: str | Sequence[str] = ()
) -> Iterator[GraphConfig]:
    """Set the options of `refcomp.graph.build` in a scope.

    Args:
        opt_level: 0 removes what has no effect, 1 also fuses operators, 2 also folds constants, 3
            also folds scales into weights and chooses layouts. Without a scope it is 3.
        add_pass: the name, or the names, of passes that run although their level is higher, or
            although they are optional: `convert_quantized`, `mixed_precision`.

    Raises:
        UserError: the level is not 0 to 3, or a pass is unknown.

    Source: NNVM, nnvm.compiler.build_config.

    Example::

        >>> with rc.graph.build_config(opt_level=1, add_pass=["fold_constants"]) as config:
        ...     print(config.passes()[-1], "fold_constants" in config.passes())
        fuse_operators True
    """
    if type(opt_level) is not int or not 0 <= opt_level <= MAX_LEVEL:
        raise UserError(
            f"opt_level cannot be {opt_level!r}", remedy=f"give 0 to {MAX_LEVEL}"
        )
    added = [add_pass] if isinstance(add_pass, str) else add_pass
    known = [*(step.name for step in STEPS), *_OPTIONAL]
    for name in added if isinstance(added, Sequence) else [added]:
        if name not in known:
            raise UserError(
                f"no graph pass is called {name!r}",
                remedy=advise(name, known, f"passes: {', '.join(known)}"),
            )
    token = _CONFIG.set(config := GraphConfig(opt_level, tuple(added)))
    try:
        yield config
    finally:
        _CONFIG.reset(token)


def build(
    net: Symbol | Graph,
    target: Target | str | None = None,
    shape: Mapping[str, object] | None = None,
    dtype: str | Mapping[str, object] = "float32",
    params: Mapping[str, object] | None = None,
    target_host: Target | str | None = None,
    layout: str | Mapping[str, str] | None = None,
) -> tuple[CompiledGraph, Module | None, dict[str, NDArray]]:
    """Compile a network of symbols to a graph, a module and parameters.

    Args:
        net: the symbol; or a graph, whose inputs say shapes and dtypes themselves.
        target: what to compile for; see `refcomp.build`.
        shape: name of an input -> its shape. Operators determine the shapes of parameters.
        dtype: the dtype of the inputs; or name of a variable -> its dtype.
        params: name of a parameter -> its array. They become constants of the graph. None leaves
            all parameters inputs of the graph.
        target_host: what the host's part is compiled for, `"llvm"`. It is accepted for the sake of
            classic programs. Its option `-system-lib` is that of the target.
        layout: accepted for the sake of classic programs: attributes of operators say layouts.

    Returns:
        The compiled graph, the module with its functions, and the weights that the compiled graph
        needs: pass them to `set_input(**params)`. They are not those that were given: passes fold
        and pack them. Weights of at most 8 elements are part of the graph. The module is None if
        the graph computes nothing.

    Raises:
        UserError: a parameter or an input is unknown or missing, or an operator does not take such
            shapes.
        Unsupported: the target cannot express an operator.
        ToolchainError: a tool is missing or fails.

    Source: NNVM, nnvm.compiler.build.

    Example::

        >>> net = rc.sym.dense(rc.sym.Variable("x"), units=3, name="fc")
        >>> net = rc.sym.softmax(net, name="probabilities")
        >>> weights = {"fc_weight": np.ones((3, 4), "f4"), "fc_bias": np.zeros(3, "f4")}
        >>> shape = {"x": (1, 4)}
        >>> graph, lib, params = rc.graph.build(net, "interp", shape=shape, params=weights)
        >>> list(graph.json())[:1], list(params)
        (['{'], ['fc_weight'])
        >>> executor = rc.graph.executor.create(graph, lib, rc.cpu())
        >>> executor.set_input(**params)
        >>> (probabilities,) = executor.run(x=np.ones((1, 4), "float32"))
        >>> probabilities.shape
        (1, 3)
    """
    if not isinstance(layout, str | Mapping | None):
        raise UserError(
            f"{layout!r} is not a layout", remedy='give a text such as "NCHW"'
        )
    chosen = with_host(target_or_current(target), target_host)
    arrays = {} if params is None else host_arrays(params)
    if isinstance(net, Graph):
        graph = inputs_to_constants(net, arrays) if arrays else net
    else:
        graph = _graph_of(net, shape, dtype, arrays, params is not None)
    config = _CONFIG.get() or GraphConfig()
    module = compile_graph(graph, chosen, config.passes())
    symbol = net if isinstance(net, Symbol) else None
    compiled, weights = without_weights(module, symbol)
    made = {name: from_numpy(aligned(elements)) for name, elements in weights.items()}
    return compiled, module.module, made


def _graph_of(
    net: object,
    shape: Mapping[str, object] | None,
    dtype: str | Mapping[str, object],
    arrays: Mapping[str, Array],
    are_params_given: bool,
) -> Graph:
    """Return the graph of a symbol, with its parameters as constants."""
    if not isinstance(net, Symbol):
        raise UserError(
            f"a {type(net).__name__} is not a network",
            remedy="pass a symbol, such as refcomp.symbol.softmax returns, or a graph",
        )
    shapes = _checked_shapes(shape)
    names = net.list_input_names()
    _check_params(names, shapes, arrays, net, are_params_given)
    shapes = {**shapes, **{name: array.shape for name, array in arrays.items()}}
    if isinstance(dtype, Mapping):
        dtypes = dict(dtype)
    else:
        dtypes = {name: as_dtype(dtype) for name in shapes if name in names}
        stated = net.attr_dict()
        for name in [name for name in dtypes if "__dtype__" in stated.get(name, {})]:
            del dtypes[name]
    dtypes |= {name: array.dtype for name, array in arrays.items()}
    return net.to_graph(shapes, dtypes, arrays)


def _checked_shapes(shape: object) -> dict[str, object]:
    if shape is None:
        return {}
    if not isinstance(shape, Mapping):
        raise UserError(
            f"{shape!r} does not give the shapes of inputs by name",
            remedy='pass a dict: {"data": (1, 3, 224, 224)}',
        )
    return dict(shape)


def _check_params(
    names: Sequence[str],
    shapes: Mapping[str, object],
    arrays: Mapping[str, Array],
    net: Symbol,
    are_params_given: bool,
) -> None:
    """Raise UserError for parameters that no variable has, and for variables without a value."""
    unused = [name for name in arrays if name not in names]
    if unused:
        raise UserError(
            f"the network has no parameters {', '.join(map(repr, unused))}",
            remedy=advise(unused[0], names, f"variables: {', '.join(names)}"),
        )
    both = [name for name in arrays if name in shapes]
    if both:
        raise UserError(
            f"{', '.join(map(repr, both))} are inputs with a shape, and parameters, too",
            remedy="give the shapes of inputs only",
        )
    if not are_params_given:
        return
    stated = net.attr_dict()
    missing = [
        name
        for name in names
        if name not in arrays
        and name not in shapes
        and "__shape__" not in stated.get(name, {})
    ]
    if missing:
        raise UserError(
            f"no parameters are given for {', '.join(map(repr, missing))}",
            remedy="add them to params, or give their shapes if they are inputs",
        )
