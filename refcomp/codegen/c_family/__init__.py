"""Statements and expressions -> any dialect of C, spelled by templates/c_family/.

function.py       what printing one kernel needs: its text, names, types and operands
statements.py     one function for each class of statement
expressions.py    one function for each class of expression
"""
