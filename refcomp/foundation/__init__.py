"""What every room may use: errors, dtypes, targets, options, caches, names; no room's ideas.

errors.py         the four kinds of failure, each with what, where, why and what to do
dtype.py          kinds, widths and lanes of types
target.py         what to compile for, read from a text
options.py        build options: what a user licenses
artifacts.py      what rooms hand over: Source, Binary, Signature
cache.py          content-addressed results on disk
provenance.py     which line of the user's program is calling
elf.py            ELF files, read by pyelftools, whatever is in them
amd_metadata.py   what code objects tell of their kernels
names.py          names in generated text: made harmless, and made unique
registry.py       Python functions that compiled code calls by name
"""
