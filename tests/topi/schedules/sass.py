"""Opcodes, loops and counts of NVIDIA's machine code, as nvdisasm prints it."""

import re
from collections import Counter


def parsed(text):
    """Return opcodes in order, and for each loop the numbers of its first and last one."""
    opcodes, labels, jumps = [], {}, []
    for line in text.splitlines():
        if label := re.match(r"\s*(\.L_x?_?\w+):", line):
            labels[label[1]] = len(opcodes)
        elif found := re.match(r"\s+/\*\w+\*/\s+(?:\{\s*)?(?:@!?U?P\w+ )?(\S+)(.*)", line):
            opcodes.append(found[1].rstrip(";"))
            if found[1] == "BRA" and (target := re.search(r"\((\.L\w+)\)", found[2])):
                jumps.append((target[1], len(opcodes) - 1))
    loops = [(labels[t], end) for t, end in jumps if labels.get(t, end) < end]
    return opcodes, loops


def counts(opcodes):
    return Counter(opcode.replace(".CONSTANT", "") for opcode in opcodes)
