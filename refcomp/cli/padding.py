"""The text of machine code without what fills up memory behind a function.

Assemblers align functions, and GPUs read ahead: behind the last instruction of a function stand
s_code_end, s_nop or zeros that no wave runs. Needs text of llvm-objdump for AMD GPUs.
"""

import re

_INSTRUCTION = re.compile(r"\t(\S+) .*// [0-9A-F]+: ")
_PADDING = re.compile(r"\t(?:s_code_end|s_nop|v_illegal|\.long)\b|\t+\.{3}$")
_COMMENT = re.compile(r";")
# What no wave runs beyond, unless it jumps there.
_ENDS = re.compile(r"s_endpgm|s_branch|s_setpc_b64|s_trap")


def without_padding(text: str) -> str:
    """Return the text without the padding at the end of each function."""
    kept: list[str] = []
    pending: list[str] = []  # padding, unless another instruction of the function follows
    is_ended = False
    for line in text.splitlines(keepends=True):
        if is_ended and (_PADDING.match(line) or (pending and _COMMENT.match(line))):
            pending.append(line)
            continue
        if match := _INSTRUCTION.match(line):
            kept += pending
            is_ended = bool(_ENDS.match(match[1]))
        pending = []
        kept.append(line)
    return "".join(kept)
