"""Tensor expressions: what to compute, without saying how."""
