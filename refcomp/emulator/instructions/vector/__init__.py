"""Vector instructions: rows of the tables bound to registers, and what no row can say.

binding.py       a row of a table bound to an instruction's operands
dpp.py           the first source comes from another lane
cross_lane.py    lanes read each other's registers; permlane.py as RDNA has it
comparisons.py   comparisons that choose which lanes run on
mixed.py         operands whose types stand in the modifiers
dots.py          sums of products of numbers side by side in a register
pairs.py         two instructions in one (VOPD)
"""
