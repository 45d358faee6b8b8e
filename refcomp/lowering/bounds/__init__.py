"""Bounds inference: the loops that each stage runs, consumers before producers.

- infer_stages.py: the bounds of all stages of a schedule
- regions.py: the part of an attached stage that is needed at a time
- ranges.py: all values that an index takes while some of its loops run
- kernels.py: stages that run together on a GPU, and the threads that they share
"""
