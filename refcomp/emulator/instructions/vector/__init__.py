"""Vector instructions: rows of the tables bound to registers, and what no row can express.

binding.py       a row of a table bound to an instruction's operands
dpp.py           instructions whose first source comes from another lane
cross_lane.py    lanes that read each other's registers; permlane.py as RDNA has it
comparisons.py   comparisons that write EXEC
mixed.py         instructions whose modifiers give the types of operands
dots.py          sums of products of numbers side by side in a register
pairs.py         two instructions in one (VOPD)
"""
