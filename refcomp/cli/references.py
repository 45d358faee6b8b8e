"""References: the values that the arrays of a foreign backend may have.

A reference is a te program, an ONNX model, or loop-IR text. In programs and models every tensor has
a name, and each of its elements an error bound. If the backend also gives intermediate tensors, the
wrong operation can be found. Loop IR determines each rounding, so that only one value is right.

Raises Unsupported for scalar arguments, and for loop IR with functions that are not exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from refcomp.cli.arrays import Arrays
from refcomp.cli.interpretation import in_order, interpret_text
from refcomp.cli.programs import load_program
from refcomp.codegen.signature import signature_of
from refcomp.foundation.artifacts import TensorParam
from refcomp.foundation.errors import Unsupported, UserError
from refcomp.foundation.names import UniqueNames
from refcomp.frontend.onnx import from_onnx
from refcomp.graph.dims import Symbols, expr_to_dim
from refcomp.graph.graph import Graph, Value
from refcomp.graph.infer import node_to_te, value_to_placeholder
from refcomp.ir.expr import Call, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.intrinsics import INTRINSICS
from refcomp.ir.rewrite import variables_in, walk
from refcomp.oracle.compare import judge_bounded
from refcomp.oracle.floats.error_bounds import Bounded, Licence, bound_errors
from refcomp.runtime.device import HostArray
from refcomp.te.operation import Operation, PlaceholderOp, reachable_operations
from refcomp.te.tensor import Tensor


@dataclass(frozen=True, slots=True)
class TensorReference:
    """Tensor expressions, under the names of the backend's arrays."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    tensors: Mapping[str, Tensor]  # all tensors by name, producers first
    constants: Mapping[Tensor, HostArray] = field(default_factory=dict)
    # operation -> its description in messages, such as `stage C, at matmul.py:9`
    labels: Mapping[Operation, str] = field(default_factory=dict)

    @property
    def symbols(self) -> dict[str, Var]:
        """The variables in the shapes of all tensors, by unique names."""
        names = UniqueNames(first=2)  # n, n_2, n_3
        dims = (dim for tensor in self.tensors.values() for dim in tensor.shape)
        found = dict.fromkeys(var for dim in dims for var in variables_in(dim))
        return {names.take(var.name): var for var in found}

    @property
    def params(self) -> list[TensorParam]:
        """The inputs."""
        return self._params(self.inputs)

    @property
    def results(self) -> list[TensorParam]:
        """The tensors that a backend may give: outputs and intermediate tensors."""
        return self._params(
            name
            for name, tensor in self.tensors.items()
            if name not in self.inputs and not isinstance(tensor.op, PlaceholderOp)
        )

    def _params(self, tensors: Iterable[str]) -> list[TensorParam]:
        names = {var: name for name, var in self.symbols.items()}
        params = []
        for name in tensors:
            tensor = self.tensors[name]
            shape = tuple(expr_to_dim(dim, names) for dim in tensor.shape)
            params.append(TensorParam(name, tensor.dtype, shape))
        return params

    def bounds(
        self,
        inputs: Arrays,
        names: Sequence[str],
        licence: Licence,
        sizes: Mapping[str, int],
    ) -> dict[str, Bounded]:
        """Return the legal values of the named tensors.

        Args:
            inputs: all inputs by name, with the shapes that `sizes` give.
            names: the tensors.
            licence: the freedom of the evaluation.
            sizes: symbol -> size in elements.
        """
        found = bound_errors(
            [self.tensors[name] for name in names],
            self._feeds(inputs),
            self._scalars(sizes),
            licence,
        )
        return dict(zip(names, found, strict=True))

    def _scalars(self, sizes: Mapping[str, int]) -> dict[Var, int]:
        return {var: sizes[name] for name, var in self.symbols.items() if name in sizes}

    def suspects(
        self,
        inputs: Arrays,
        results: Arrays,
        licence: Licence,
        sizes: Mapping[str, int],
    ) -> list[str]:
        """Return the labels of the operations among which a wrong operation is; empty if none is.

        Each result is judged on the inputs and the other results, in producer order. The suspects
        are the operations that compute the first wrong result from these. Arguments as for
        `bounds`.
        """
        feeds = self._feeds(inputs)
        scalars = self._scalars(sizes)
        given = {self.tensors[name]: array for name, array in results.items()}
        for name, tensor in self.tensors.items():
            if name not in results:
                continue
            others = feeds | {t: array for t, array in given.items() if t is not tensor}
            (bounded,) = bound_errors([tensor], others, scalars, licence)
            if not judge_bounded(results[name], bounded).agrees:
                return self._labels(tensor, others)
        return []

    def _feeds(self, inputs: Arrays) -> dict[Tensor, HostArray]:
        feeds = dict(self.constants)
        feeds.update({self.tensors[name]: inputs[name] for name in self.inputs})
        return feeds

    def _labels(self, tensor: Tensor, given: Mapping[Tensor, HostArray]) -> list[str]:
        """Return the labels of the operations between the given tensors and `tensor`."""
        needed = {tensor.op}
        order = reachable_operations(needed)
        for op in reversed(order):
            # Consumers are visited first, so all uses of an operation are known at its visit.
            if op in needed:
                needed.update(t.op for t in op.inputs if t not in given)
        return list(dict.fromkeys(self.labels[op] for op in order if op in needed))


@dataclass(frozen=True, slots=True)
class LoopReference:
    """A function of the loop IR. What the interpreter computes is the only right result."""

    func: PrimFunc
    params: list[TensorParam]
    results: list[TensorParam]

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the outputs."""
        return tuple(param.name for param in self.results)

    def bounds(
        self,
        inputs: Arrays,
        _names: Sequence[str],
        _licence: Licence,
        sizes: Mapping[str, int],
    ) -> dict[str, Bounded]:
        """Return the legal values of all outputs: one for each element."""
        # The interpreter writes the outputs in place.
        arrays = {name: array.copy() for name, array in inputs.items()}
        pairs = zip(signature_of(self.func).symbols, self.func.symbols, strict=True)
        symbols = {var: sizes[name] for name, var in pairs if name in sizes}
        interpret_text(
            self.func, [arrays[param.name] for param in self.params], symbols
        )
        found = {}
        for param in self.results:
            value = arrays[param.name]
            zeros = np.zeros(value.shape)
            # The value is exact: the error is 0, and inputs are not amplified (condition 1).
            found[param.name] = Bounded(
                dtype=param.dtype,
                value=value.astype(np.longdouble) if param.dtype.is_float else value,
                error=zeros,
                doubtful=zeros != 0,
                condition=zeros + 1,
            )
        return found

    def suspects(
        self,
        _inputs: Arrays,
        _results: Arrays,
        _licence: Licence,
        _sizes: Mapping[str, int],
    ) -> list[str]:
        """Return the function: only te has parts that can be judged one by one."""
        return [f"function {self.func.name}"]


Reference = TensorReference | LoopReference


def load_reference(given: str) -> Reference:
    """Return the computation `given`: SCRIPT.py[:NAME], MODEL.onnx, a text file, or - for stdin.

    Raise UserError unless it is one function.
    """
    if given.endswith(".onnx"):
        return reference_of(from_onnx(given))
    pieces = load_program(given).pieces
    if len(pieces) != 1:
        raise UserError(
            f"{given} holds {len(pieces)} functions",
            why="arrays are compared with the results of one function",
            remedy="name a function that returns one",
        )
    (piece,) = pieces
    # Bounds follow from tensor expressions, which text of loop IR does not have.
    if piece.schedule is None:
        return _of_loops(piece.func)
    return _of_tensors(piece.args)


def _of_tensors(args: Sequence[Tensor | Var]) -> TensorReference:
    given = [arg for arg in args if isinstance(arg, Tensor)]
    operations = reachable_operations(arg.op for arg in given)
    tensors: dict[str, Tensor] = {}
    for op in operations:
        for tensor in op.outputs:
            tensors.setdefault(tensor.name, tensor)
    # If two tensors have one name, the argument takes it: a backend must name the arguments.
    tensors |= {arg.name: arg for arg in given}
    inputs = [arg.name for arg in given if isinstance(arg.op, PlaceholderOp)]
    outputs = [arg.name for arg in given if not isinstance(arg.op, PlaceholderOp)]
    labels = {op: f"stage {op.name}, at {op.line}" for op in operations}
    reference = TensorReference(tuple(inputs), tuple(outputs), tensors, labels=labels)
    # The option --symbol gives their values.
    sizes = set(reference.symbols.values())
    for arg in args:
        if not isinstance(arg, Tensor) and arg not in sizes:
            raise Unsupported(
                f"argument {arg.name} is not a tensor",
                why="only computations on tensors are judged",
                remedy="make it a tensor of one element",
            )
    return reference


def reference_of(graph: Graph) -> TensorReference:
    """Return the tensors of a model, by their names in the model."""
    symbols = Symbols()
    made: dict[Value, Tensor] = {}
    for value in (*graph.inputs, *graph.constants):
        made[value] = value_to_placeholder(value, symbols)
    labels: dict[Operation, str] = {}
    for node in graph.nodes:
        fresh = node_to_te(node, made)
        for op in reachable_operations(tensor.op for tensor in fresh.values()):
            # Operations of earlier nodes are reachable, too. They keep their labels.
            labels.setdefault(op, f"node {node.name} ({node.operator})")
        made |= fresh
    constants = {made[value]: array for value, array in graph.constants.items()}
    named = {v.name: tensor for v, tensor in made.items() if tensor not in constants}
    return TensorReference(
        inputs=tuple(value.name for value in graph.inputs),
        outputs=tuple(value.name for value in graph.outputs),
        tensors=named,
        constants=constants,
        labels=labels,
    )


def _of_loops(func: PrimFunc) -> LoopReference:
    calls = {node.name for node in walk(func.body) if isinstance(node, Call)}
    inexact = sorted(
        name for name in calls if name in INTRINSICS and INTRINSICS[name].ulp
    )
    params = [
        param for param in signature_of(func).params if isinstance(param, TensorParam)
    ]
    if inexact or len(params) != len(func.params):
        what = f"calls {', '.join(inexact)}" if inexact else "takes scalar arguments"
        raise Unsupported(
            f"{func.name} {what}",
            why="arrays are compared with results of loop IR bit for bit, without scalar arguments",
            remedy="give the tensor expressions that it was lowered from",
        )
    results = [param for param in params if param.is_output]
    return LoopReference(in_order(func), params, results)
