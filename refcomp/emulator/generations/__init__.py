"""The emulated GPUs, and nothing but their differences.

- generation.py: one record for each GPU
- gfx11.py: names and instructions that only RDNA3 has
- memory_order.py: how groups see each other's writes
- wait_counters.py: the counters that s_waitcnt waits for
- wait_states.py: how many instructions must separate two others
"""
