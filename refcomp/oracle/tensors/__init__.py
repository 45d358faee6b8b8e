"""The meaning of te by numpy: no schedule, no loop.

- `evaluate.py`: tensor expressions, straight from their definition
- `scan.py`: a scan, row by row
- `lane_axes.py`: tensors of vectors as tensors of scalars with one more axis
- `rebuilt_operations.py`: operations of te rebuilt from rewritten expressions
- `elementwise.py`: an expression at many points at once
- `arrays.py`: each operator and conversion on whole arrays
"""
