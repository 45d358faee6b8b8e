"""Names of the classic API that belong to no operator: `contrib.sparse`, for sparse matrices.

Random numbers and sorting are operators: `topi.random_uniform` and its kin, `topi.argsort`.

Example::

    >>> rc.contrib.sparse.array(np.eye(3))
    CSRNDArray(shape=(3, 3), dtype=float64, stored=3, device=cpu:0)
"""

from refcomp.contrib import sparse

__all__ = ["sparse"]
