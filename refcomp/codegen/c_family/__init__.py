"""Statements and expressions -> any dialect of C, spelled by templates/c_family/.

    function.py       state of one kernel: its text, names, types and operands
    statements.py     one function for each class of statement
    expressions.py    one function for each class of expression
    memory.py         loads and stores
    conversions.py    casts, and the form of values in memory

A dialect has a module that prints kernels and their parameters: `refcomp/codegen/opencl/` is the
example. It has a folder of templates, too, with at least these macros and tables:

- Types and vectors: `vector`, `vector_of`, `lane`, `mask_of`, `not_lanes`, `choose_lanes`,
  `pick_lanes`.
- Conversions: `reinterpret`, `convert`, `saturate`, `float_of_bits`, `half_of_bits`,
  `half_from_bits`, `half_to_bits`.
- Functions: `function_prefix`, `least`, `greatest`, `remainder`, `atomic_update`,
  `place_in_subgroup`.
- Kernels: `kernel`, `kernel_of_size`, `value_param`, `shared_param`, `shared_pointer`.
- Memory: `load_lanes`, `store_lanes`, `array`, `shared_array`, `buffer_param`, `prefetch`,
  `barrier`.
- Tables of types: `type`, `lanes`, `lane_names`, `literal_suffix`, `least`, `scope`,
  `thread_index`.
- Tables of functions: `maths`, `reinterpreted`, `atomic`, `compare_exchange`, `subgroup`.
- Tables of names: `extension`, `pragmas`, `reserved`.
"""
