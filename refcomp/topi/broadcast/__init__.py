"""Operators of two tensors that work element by element, with numpy's broadcasting."""
