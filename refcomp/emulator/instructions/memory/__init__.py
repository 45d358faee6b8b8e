"""Loads, stores and atomics.

loads_and_stores.py   the general way: any lanes, any addresses, checked
global_words.py       a shorter way for whole words of the device's memory
shared_words.py       a shorter way for whole words of shared memory
atomics.py            updates in the order of waves and lanes
"""
