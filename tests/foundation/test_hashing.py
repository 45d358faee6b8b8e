"""The hash is SHA-256, whichever code computes it."""

import hashlib

import pytest

from refcomp.foundation.hashing import sha256


@pytest.mark.parametrize("size", [0, 3, 1 << 20, (1 << 20) + 1])
def test_little_and_much_data_have_the_hash_of_hashlib(size):
    data = bytes(k % 251 for k in range(size))
    assert sha256(data).hexdigest() == hashlib.sha256(data).hexdigest()
    assert sha256(data).digest() == hashlib.sha256(data).digest()
