"""Well-known networks of symbols, with random parameters, for tests and measurements.

Each module has `get_symbol`, which returns a network, and `get_workload`, which returns it with
random parameters. Reading order: initializers.py, workload.py, blocks.py, then the networks.

Example::

    >>> net, params = rc.graph.testing.mlp.get_workload(batch_size=2)
    >>> graph, lib, params = rc.graph.build(net, "interp", {"data": (2, 1, 28, 28)}, params=params)
    >>> executor = rc.graph.executor.create(graph, lib)
    >>> executor.set_input(**params)
    >>> (probabilities,) = executor.run(data=np.ones((2, 1, 28, 28), "float32"))
    >>> probabilities.shape
    (2, 10)
"""

from refcomp.graph.testing import (
    dcgan,
    densenet,
    dqn,
    inception_v3,
    lstm,
    mlp,
    mobilenet,
    resnet,
    squeezenet,
    vgg,
)
from refcomp.graph.testing.initializers import (
    ConstantInitializer,
    Initializer,
    NormalInitializer,
    UniformInitializer,
    Xavier,
    initializer_named,
)
from refcomp.graph.testing.workload import create_workload, random_parameters

# fmt: off
__all__ = [
    "create_workload", "random_parameters",
    "Initializer", "ConstantInitializer", "UniformInitializer", "NormalInitializer", "Xavier",
    "initializer_named",
    "mlp", "resnet", "vgg", "mobilenet", "squeezenet", "inception_v3", "densenet", "dcgan", "dqn",
    "lstm",
]
# fmt: on
