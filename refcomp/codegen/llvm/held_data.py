"""Print a file of LLVM IR that holds bytes, such as the code of kernels for a device.

Ensures: the symbols `refcomp_device_code` and `refcomp_device_code_size` are the bytes and their
number, as 64 bits.
"""

from refcomp.codegen.spelling import load_spelling


def print_held_data(data: bytes, *, triple: str, layout: str) -> str:
    """Return the text of a file with `data`, for a machine and its data layout."""
    say = load_spelling("llvm").macros
    header = say.header(layout=layout, triple=triple)
    text = "".join(f"\\{byte:02x}" for byte in data)
    return str(header + say.held_data(length=len(data), text=text))
