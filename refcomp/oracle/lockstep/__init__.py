"""Runs threads, or the iterations of loops, in step: each statement for all at once, by numpy.

What this gives is what the plain interpreter gives, to the bit, only sooner. It says nothing about
wrong programs: where a rule may be broken, or the order of threads could show in the result, it
raises `Doubt`, what was written is put back, and the plain interpreter runs the kernel or the loops
from their beginning. So each finding is told in one way, by the plain one, which also is the oracle
of this room.

Run in step are kernels, thread for thread, and nests of loops on the host whose iterations seem to
touch different elements, iteration for iteration; whether they do is checked at each access. Left
to the plain interpreter are kernels and loops that call functions of the host, regions, few
threads or iterations, and those of which a run in step has raised Doubt once.

A loop in which each thread folds values into one element, such as a sum, has these values all at
once, and folds them in order.

Read in this order: `interpret` (the door), `launch` (the shortcut), `plans`, `groups`, `touches`,
`elements`, `threads`, `expressions`, `folds`, `statements`.
"""
