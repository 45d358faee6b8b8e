"""Prints how long the refcomp on PYTHONPATH compiles a program to text.

    compile_seconds.py CASE SIZE COUNT

The JSON on stdout has the processor seconds, the median of COUNT compilations; the digest of the
text; and the folder of that refcomp. `earlier` runs this file with the folder of one commit after
the other on PYTHONPATH, so it uses only names that both have.
"""

from __future__ import annotations

import gc
import hashlib
import json
import statistics
import sys
from time import process_time

import refcomp
from benchmarks.lowering.corners import describe_corners
from benchmarks.lowering.product import describe_product
from benchmarks.lowering.workload import chain_of_stages, compile_to_text, unrolled_bodies

_CASES = {
    "stages": chain_of_stages,
    "unrolled": unrolled_bodies,
    "product": lambda size: describe_product(size, size, size),
    "pipeline": lambda size: describe_corners(size, 16 * size // 9),
}
_SMALL = {"stages": 10, "unrolled": 10, "product": 64, "pipeline": 64}


def main(case: str, size: int, count: int) -> None:
    """Compile a program of this size `count` times, and print the JSON."""
    with refcomp.build_options(contract=True):
        compile_to_text(*_CASES[case](_SMALL[case]))  # loads templates and modules
        seconds = []
        for _ in range(count):
            gc.collect()
            gc.disable()
            start = process_time()
            text = compile_to_text(*_CASES[case](size))
            seconds.append(process_time() - start)
            gc.enable()
    digest = hashlib.sha256(text.encode()).hexdigest()
    result = {"seconds": statistics.median(seconds), "digest": digest, "from": refcomp.__file__}
    print(json.dumps(result))


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
