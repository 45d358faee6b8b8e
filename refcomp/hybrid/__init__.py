"""Hybrid functions: loops in Python syntax, which are compiled, or run by Python.

Called with tensors, a hybrid function returns the tensor that the loops compute, as an extern
operation. Called with numpy arrays, it runs in Python. The compiler reads the source and never runs
it.

Example::

    >>> @rc.hybrid.script
    ... def outer(a, b):
    ...     c = output_tensor((a.shape[0], b.shape[0]), "float32")
    ...     for i in range(a.shape[0]):
    ...         for j in parallel(b.shape[0]):
    ...             c[i, j] = a[i] * b[j]
    ...     return c
    >>> A, B = rc.placeholder((2,), name="A"), rc.placeholder((3,), name="B")
    >>> C = outer(A, B)
    >>> print(rc.lower(rc.create_schedule(C), [A, B, C], "outer"))
    func outer(A: f32[2], B: f32[3], outer: f32[2, 3] out) {
      for i in range(2) {
        for j in range(3) parallel {
          outer[i, j] = A[i] * B[j]
        }
      }
    }
    >>> outer(np.array([1, 2], "float32"), np.array([1, 10, 100], "float32")).tolist()
    [[1.0, 10.0, 100.0], [2.0, 20.0, 200.0]]
"""

from refcomp.hybrid.script import HybridFunction, script

__all__ = ["HybridFunction", "script"]
