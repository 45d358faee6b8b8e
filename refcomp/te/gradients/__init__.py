"""Gradients of tensor expressions: each is a tensor expression again, which schedules may optimize.

Reading order: elements.py (adjoints of the reads of one expression), preimages.py (which iterations
read an element), gradient.py (`gradient`, which goes through a graph of computes).
"""
