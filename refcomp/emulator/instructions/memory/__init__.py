"""Loads, stores and atomics.

loads_and_stores.py   the general way: any lanes, any addresses, checked
global_words.py       a fast way for whole words of the device's memory
shared_words.py       a fast way for whole words of shared memory
atomics.py            updates in the order of waves and lanes
scalar_loads.py       loads of scalar registers
anywhere.py           accesses whose memory is known only when they run
flat.py, buffers.py   such accesses: by flat addresses, and by descriptors of buffers
direct_loads.py       loads that go to shared memory, not to registers
"""
