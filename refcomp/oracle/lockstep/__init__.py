"""Lockstep: threads, or iterations of loops, execute each statement together, by numpy.

The results are those of the plain interpreter, to the bit, but come sooner. Lockstep has nothing to
say about wrong programs. Where a rule may be broken, or the order of threads could show in the
result, it raises `BailOut`. Then what was written is restored, and the plain interpreter runs the
kernel or the loops from the beginning. So each error is reported by the plain interpreter, which is
also the oracle of this wing.

Two things run in lockstep: the threads of kernels, and the iterations of loop nests on the host
that seem to access different elements. Whether they do is checked at each access. The plain
interpreter runs what calls functions of the host, parallel regions, few threads or iterations, and
what has bailed out once.

A loop in which each thread folds values into one element, such as a sum, computes these values all
at once, and folds them in order.

Read in this order: `interpret` (the door), `launch` (the shortcut), `plans`, `groups`,
`shadow_memory`, `elements`, `threads`, `expressions`, `folds`, `statements`.
"""
