"""Translation of hot PTX kernels to code of this host, as LLVM IR that a tool compiles.

The interpreter stays the definition, except for the payload and sign of an f64 NaN. PTX is the code
of one thread, and threads do not depend on each other between barriers. So a kernel becomes a
function that runs one thread until the thread waits for its block, waits for its warp, or ends. It
keeps the registers that live there in the thread's frame, and goes on from there when it is called
again. Blocks run one after the other.

*Checks*: each access lies in one allocation and is aligned. In a watched run, bits that nothing
wrote are looked for where they are loaded, and a register that may be unwritten where it is read.
A loop that never ends exceeds a number of instructions. Data races and profiles are interpreted.
*Trouble*: where a check fails, what the block wrote is taken back, and the interpreter runs that
block and the following ones of its batch. So all findings have one source. A kernel that is often
in trouble is interpreted from then on.
*Not translated*: a kernel with an instruction that is missing here is interpreted as a whole.
`TranslationCounts.refused` names the instruction. Accesses that order memory are missing on
purpose: kernels with them wait for other threads in loops, and their threads must take turns.

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
