"""SHA-256 without OpenSSL for small data.

To import `hashlib` takes 3 ms, since it loads OpenSSL. That is more than all hashes of a build from
the cache take. The module `random` of the standard library avoids it in the same way.
"""

from __future__ import annotations

from typing import Protocol

try:
    from _sha256 import sha256 as _sha256_of_little  # type: ignore[import-not-found]
except ImportError:  # another version of Python
    from hashlib import sha256 as _sha256_of_little

# Bytes. OpenSSL takes a fifth of the time for each, so that it pays off for more than these.
_LITTLE = 1 << 20


class Hash(Protocol):
    """The part of a hash object of `hashlib` that refcomp uses."""

    def digest(self) -> bytes: ...

    def hexdigest(self) -> str: ...


def sha256(data: bytes) -> Hash:
    """Return the SHA-256 hash of `data`."""
    if len(data) <= _LITTLE:
        made: Hash = _sha256_of_little(data)
        return made
    import hashlib  # noqa: PLC0415  (see above)

    return hashlib.sha256(data)
