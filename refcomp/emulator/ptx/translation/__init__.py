"""Translation of hot PTX kernels to code of this host, as LLVM IR that a tool compiles.

The interpreter stays the definition, except for the payload and sign of an f64 NaN. PTX is the code
of one thread, and threads do not depend on each other between barriers. So a kernel becomes a
function that runs one thread until the thread waits for its block, waits for its warp, or ends.
Then the function keeps the live registers in the thread's frame and returns. The next call goes on
from there. Blocks run one after the other. A thread that loops for long gives way to others, and so
does a warp whose threads meet in a loop.

- *Checks*: each access lies in one allocation and is aligned. A watched run also looks for
  undefined bits when they are loaded, and for unwritten registers when they are read. A loop that
  never ends exceeds a number of instructions. Data races and profiles need the interpreter.
- *Trouble*: if a check fails, the writes of the block are undone. The interpreter runs this block
  and the following ones of its batch. So all findings come from the interpreter. A kernel that is
  often in trouble is interpreted from then on.
- *Not translated*: a kernel is always interpreted if an instruction of it is missing here, or is
  malformed. `TranslationCounts.refused` names the instruction. Accesses that order memory are
  missing on purpose. Kernels with such accesses wait for other threads in loops, so that no thread
  may run alone for long.

refusal.py      the reason why a kernel is not translated
texts.py        the texts of instructions and of the functions around kernels
flow.py         blocks of a function, and where registers live
emitter.py      lines of text, values of registers, operands
conversions.py  conversions
values.py       instructions on values
accesses.py     loads and stores, with their checks
atomics.py      atomic updates
warps.py        instructions that threads of a warp do together
printer.py      the function of a kernel
engine.py       compiling kernels, and running blocks by them
"""
