"""The ground floor: whatever every room may use, and nothing that belongs to one room.

Start with these files:

    errors.py         the four kinds of failure, each with what, where, why and what to do
    tracebacks.py     tracebacks that show the user's own frames only
    records.py        dataclasses that are made quickly
    hashing.py        SHA-256 without OpenSSL
    snippets.py       lines of the user's sources, quoted with a mark below them
    dtype.py          data types: kind, width and lanes
    target.py         what to compile for, parsed from a text
    options.py        build options: what a user permits or requests
    artifacts.py      what rooms pass on: Source, Binary, Signature
    cache.py          results on disk, found by the hash of their inputs
    provenance.py     the line of the user's program that is calling
    names.py          names in generated text: sanitized and unique
    registry.py       Python functions that compiled code calls by name
    elf.py            ELF files, read by pyelftools within limits
    amd_metadata.py   the kernels of a code object, and their arguments
    compute_capability.py  the versions of NVIDIA's architectures
"""
