"""Functions at the host level -> LLVM IR, spelled by templates/llvm/; module.py is the door."""
