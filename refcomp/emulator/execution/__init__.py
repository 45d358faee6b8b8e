"""Launches of kernels, and the execution of their waves.

- launch.py: loads code objects and launches kernels
- initial_state.py: sets the registers with which waves begin
- program.py: binds instructions block by block, when a wave first reaches them
- execute.py: runs the waves with the smallest program counter first
- slices.py: gives waves time slices, so that none starves
"""
