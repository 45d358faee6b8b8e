"""Kernels launched and waves run.

launch.py          code objects loaded, kernels launched
initial_state.py   registers as waves find them
program.py         instructions bound block by block, when a wave first reaches them
execute.py         waves with the smallest program counter run first
slices.py          slices of time, so that no wave starves
"""
