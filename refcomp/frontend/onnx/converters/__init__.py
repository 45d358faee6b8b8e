"""Converters of ONNX operators, one file for each family. Importing the package registers all.

A converter is a function with the decorator `converter("NAME", since=VERSION)`. It gets an
`OnnxNode`, adds nodes by `node.make`, and returns the value of the output, or a list of values.
What it must know before it can add nodes, such as a shape that is an input, it asks for by
`node.known`, `node.integers` or `node.extents`. If only a run knows it, the node is converted then.
"""

from importlib import import_module
from pkgutil import iter_modules

for _family in iter_modules(__path__):
    import_module(f"{__name__}.{_family.name}")
