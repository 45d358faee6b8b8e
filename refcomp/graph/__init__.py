"""Graphs: operators on tensors of symbolic shapes, the passes over them, and the executor."""
