"""Analyses that several passes use. They never change a function.

- access_ranges.py: the indices that are proved to lie within their dimension
- constant_extents.py: the constant extent of a loop that is written out
- scope_facts.py: what loops, lets and conditions say about integers inside of them
- thread_conflicts.py: the threads of a group that may touch one element
- lane_conflicts.py: the lanes of vectorized code that may touch one element
- index_equations.py: the consequences of an equation between indices
- loop_guards.py: the conditions that hold in one range of a loop's iterations
- shared_places.py: the allocations of shared memory in a kernel
- sharing.py: the subexpressions that are evaluated more than once
- spread_conditions.py: statements rewritten to leave room for barriers
"""
