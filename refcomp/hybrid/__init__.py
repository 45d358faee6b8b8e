"""Hybrid functions: loops in Python syntax, which are compiled, or run by Python.

    @refcomp.hybrid.script
    def outer(a, b):
        c = output_tensor((a.shape[0], b.shape[0]), "float32")
        for i in range(a.shape[0]):
            for j in parallel(b.shape[0]):
                c[i, j] = a[i] * b[j]
        return c

Called with tensors, it returns the tensor that the loops compute, as an extern operation. Called
with numpy arrays, it runs in Python. The compiler reads the source and never runs it.
"""

from refcomp.hybrid.script import HybridFunction, script

__all__ = ["HybridFunction", "script"]
