#!/usr/bin/env python3
"""Loops in Python syntax, which are compiled from their source, or run by Python as they stand.

They express computations that are not an element-by-element formula. The example drops boxes that
overlap a better one, the last step of an object detector. Needs LLVM's tools. Exit code: 1 when
Python and machine code disagree.
"""

# ruff: noqa: F821 (the words of hybrid functions)

import sys

import numpy as np

import refcomp as rc

THRESHOLD = 0.5


@rc.hybrid.script
def suppress(boxes):
    """Keep the boxes (left, top, right, bottom; best first) that overlap no better kept box."""
    keep = output_tensor((boxes.shape[0],), "int32")
    for i in range(boxes.shape[0]):
        keep[i] = 1
        mine = (boxes[i, 2] - boxes[i, 0]) * (boxes[i, 3] - boxes[i, 1])
        for j in range(i):
            if keep[j] == 1:
                width = min(boxes[i, 2], boxes[j, 2]) - max(boxes[i, 0], boxes[j, 0])
                height = min(boxes[i, 3], boxes[j, 3]) - max(boxes[i, 1], boxes[j, 1])
                both = max(width, 0.0) * max(height, 0.0)
                other = (boxes[j, 2] - boxes[j, 0]) * (boxes[j, 3] - boxes[j, 1])
                if both > THRESHOLD * (mine + other - both):
                    keep[i] = 0
    return keep


def main() -> int:
    """Compile it between two computes, run it, and compare with Python; return the exit code."""
    n = rc.var("n")
    corners = rc.placeholder((n, 4), name="corners")
    scaled = rc.compute((n, 4), lambda i, k: corners[i, k] * 2.0, name="scaled")
    keep = suppress(scaled)
    count = rc.reduce_axis((0, n), "count")
    total = rc.compute((1,), lambda _: rc.sum(keep[count], axis=count), name="total")
    s = rc.create_schedule(total)
    func = rc.lower(s, [corners, keep, total], name="suppress")
    print(rc.print_func(func))
    random = np.random.default_rng(0)
    least = random.integers(0, 20, (40, 2))
    boxes = np.concatenate([least, least + random.integers(5, 12, (40, 2))], 1).astype(np.float32)
    kept, number = np.zeros(40, np.int32), np.zeros(1, np.int32)
    rc.build(func)(boxes, kept, number)
    by_python = suppress(boxes * 2)
    agree = bool((kept == by_python).all() and number[0] == by_python.sum())
    print(f"kept {number[0]} of 40 boxes; the same by Python: {agree}")
    return int(not agree)


if __name__ == "__main__":
    sys.exit(main())
