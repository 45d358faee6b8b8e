"""Facts that several passes ask for; nothing here changes a function.

access_ranges.py      which indices are proved to lie within their dimension
thread_conflicts.py   which threads of a group may touch one element
lane_conflicts.py     which lanes of vectorized code may touch one element
index_equations.py    what an equation between indices forces
loop_guards.py        the conditions of a loop that hold in one range of its iterations
sharing.py            which subexpressions are evaluated more than once
"""
