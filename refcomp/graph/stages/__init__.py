"""Stages: run graphs with control operators, and with shapes that only a run determines.

Such a graph is cut into stages. A stage of operators on tensors is a graph without control, and is
compiled as any other; the stages between are control operators. Shapes and attributes that a run
meets are compiled for when they are met, and the result is kept.

Reading order: stages.py (how a graph is cut), segments.py (nodes compiled for the shapes of a run),
executor.py.
"""
