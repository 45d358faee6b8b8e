"""The GPUs that are emulated, and nothing but how they differ.

generation.py      one record for each GPU
gfx11.py           what RDNA3 has of its own
memory_order.py    how groups learn of each other's writes
wait_counters.py   the counters that s_waitcnt waits for
wait_states.py     how many instructions must lie between two
"""
