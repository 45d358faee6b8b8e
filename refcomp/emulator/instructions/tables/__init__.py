"""The tables of instructions, by mnemonic. A row is a function of typed arrays.

floats.py        vector arithmetic on floats; conversions.py between types
unfused.py       products and sums that round twice
integers.py      vector arithmetic on integers; bytewise.py on the bytes of registers
packed.py        operations on both halves of registers
scalar.py        scalar instructions
"""
