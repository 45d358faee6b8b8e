"""Arrays on devices, and the checks of a call's arguments.

ndarray.py            NDArray, a compact row-major array on a device
dlpack.py             capsules by which libraries share memory of devices
cuda_interface.py     the dict by which libraries share memory of NVIDIA GPUs
cuda_array.py         arrays that share memory by such a dict
entry_checks.py       the checks of each call's arguments against a signature
argument_rules.py     the rules for arrays, each with its message
scalars.py            the rules for numbers
entry_conditions.py   the conditions on sizes
access_status.py      the array to which compiled code reports wrong indices
"""
