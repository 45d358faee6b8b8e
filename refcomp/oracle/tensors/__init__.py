"""The meaning of te by numpy: no schedule, no loop.

- `evaluate.py`: tensor expressions, straight from their definition
- `scan.py`: a scan, row by row
- `elementwise.py`: an expression at many points at once
- `arrays.py`: each operator and conversion on whole arrays
"""
