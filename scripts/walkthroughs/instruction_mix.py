#!/usr/bin/env python3
"""The vector instructions in the main loop of an AMD GPU's kernel: used by other walkthroughs.

A vector unit issues one instruction at a time. So the share of multiply-adds among the vector
instructions of the main loop bounds how much of the GPU's peak the kernel can reach, if it waits
for nothing. The other instructions move registers, compute addresses or clear sums.
"""

import os
import re
import sys
from collections import Counter

sys.path.append(os.path.abspath(f"{__file__}/../../.."))

from benchmarks.rates import save_chart

# The kinds of vector instructions, by the beginnings of their names. The first that fits counts.
KINDS = {
    "multiply matrices": r"v_(mfma|wmma|smfmac)",
    "multiply and add": r"v_(pk_|dual_)?(fma|fmac|fmamk|fmaak|mac|dot)",
    "move registers": r"v_(dual_|pk_)?(mov|accvgpr|perm|cndmask|alignbit|bfi|pack|readlane|swap)",
    "compute addresses": r"v_(dual_)?(add|addc|sub|lsh|and|or|xor|mad_u|mul_|bfe|ashr|alignb)",
    "something else": r"v_",
}
_VECTOR = re.compile(r"^\s+(v_\w+).*// ([0-9A-F]{12,16}):")
_BRANCH = re.compile(r"^\s+s_c?branch\w* .*// ([0-9A-F]{12,16}): .*<\S+?(?:\+0x([0-9a-f]+))?>")
_KERNEL = re.compile(r"^([0-9a-f]{16}) <")


def main_loop(assembly):
    """Return the names of the vector instructions of the loop that has most of them.

    A loop lies between a branch and its target before it. Without a loop, the whole kernel counts.
    `assembly` is what `get_source("asm")` returns.
    """
    begin, places, loops = 0, [], []
    for line in assembly.splitlines():
        if found := _KERNEL.match(line):
            begin = int(found[1], 16)
        if found := _VECTOR.match(line):
            places.append((int(found[2], 16), found[1]))
        if found := _BRANCH.match(line):
            loops.append((begin + int(found[2] or "0", 16), int(found[1], 16)))
    bodies = [[name for place, name in places if first <= place < last] for first, last in loops]
    return max(bodies, key=len, default=[]) or [name for _, name in places]


def kind_of(name):
    """Return what an instruction of that name is for, one of KINDS."""
    return next(kind for kind, pattern in KINDS.items() if re.match(pattern, name))


def print_mix(title, assembly):
    """Print a line for each kind of vector instruction of the main loop, most frequent first.

    Return the percentage of these instructions that multiply and add.
    """
    names = main_loop(assembly)
    kinds = Counter(map(kind_of, names))
    print(f"{title}: {len(names)} vector instructions in the main loop")
    for kind, count in kinds.most_common():
        print(f"{count:6} {count / len(names):6.1%}  {kind:18} {_examples(names, kind)}")
    return 100 * (kinds["multiply matrices"] + kinds["multiply and add"]) / len(names)


def print_products(title, assembly, kind):
    """Print how many vector instructions of the main loop are of a kind; return the percentage."""
    names = main_loop(assembly)
    count = sum(kind_of(name) == kind for name in names)
    print(f"{title:17} {count:3} of {len(names):3} vector instructions: {_examples(names, kind)}")
    return 100 * count / len(names)


def _examples(names, kind):
    of_kind = Counter(name for name in names if kind_of(name) == kind)
    return ", ".join(name for name, _ in of_kind.most_common(3))


def draw_shares(path, shares):
    """Draw the percentages of multiply-adds as bars into a PNG file, if one is named."""
    save_chart(path, "% of the main loop's vector instructions that multiply", shares)


if __name__ == "__main__":
    print(__doc__)
