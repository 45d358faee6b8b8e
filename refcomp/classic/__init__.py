"""Classic names: flat aliases for programs that were written for TVM 0.5 and 0.6, or NNVM.

Each alias is an object of refcomp, under its classic name. A classic name that would hide another
meaning is left out. Its AttributeError says what to write instead.

- `names/`: the table of all names, which table.py reads
- namespace.py: the namespaces of aliases
- `operators/`: operators of topi that take attributes in order, or under other names
- networks.py, executors.py: networks of NNVM, and what runs them
- sessions.py: sessions of this process
- functions.py: other functions of this kind
- options.py: `build_config`
- methods.py: classic attributes, which are added to refcomp's classes
- programs.py: programs that differ or are refused, and tutorials
- page.py: the page MIGRATION.md

Example::

    >>> from refcomp import classic as tvm
    >>> A = tvm.placeholder((4,), name="A")
    >>> B = tvm.compute(A.shape, lambda i: A[i] + 1.0, name="B")
    >>> f = tvm.build(tvm.create_schedule(B.op), [A, B], "interp")
    >>> a, b = tvm.nd.array(np.ones(4, "float32")), tvm.nd.empty((4,))
    >>> f(a, b)
    >>> print(b.asnumpy())
    [2. 2. 2. 2.]
    >>> tvm.topi.nn.relu is rc.topi.relu, tvm.nnvm.sym.dense is rc.sym.dense
    (True, True)
    >>> tvm.topi.transpose(A, (0,)).shape
    (4,)
    >>> tvm.register_intrin_rule
    Traceback (most recent call last):
        ...
    AttributeError: module 'refcomp.classic' has no attribute 'register_intrin_rule': write ...
"""

from typing import Any

from refcomp.classic.methods import add_classic_attributes
from refcomp.classic.namespace import look_up, make_namespaces, public_names

__all__ = public_names(__name__)
globals().update(make_namespaces())
add_classic_attributes()


def __getattr__(name: str) -> Any:
    """Return an alias, and keep it."""
    value = globals()[name] = look_up(__name__, name)
    return value


def __dir__() -> list[str]:
    return __all__
