"""Translation of hot PTX kernels to code of this host, as LLVM IR that a tool compiles.

The interpreter defines all results, except for the payload and sign of an f64 NaN. PTX is the code
of one thread, and threads do not depend on each other between barriers. So a kernel becomes a
function that runs one thread until the thread waits for its block, waits for its warp, or ends.
Then the function stores the live registers in the thread's frame and returns. The next call resumes
the thread. Blocks run one after the other. A thread that loops for long yields to others, and so
does a warp whose threads synchronize in a loop.

- *Checks*: each access lies in one allocation and is aligned. A watched run also looks for
  undefined bits when they are loaded, and for unwritten registers when they are read. A loop that
  never ends exceeds a number of instructions. Data races and profiles need the interpreter.
- *Bailing out*: if a check fails, the writes of the block are undone. The interpreter runs this
  block and the following ones of its batch. So all findings come from the interpreter. A kernel
  that often bails out is interpreted from then on.
- *Not translated*: a kernel is always interpreted if one of its instructions is not translated, or
  is malformed. `TranslationCounts.refused` names the instruction. Accesses that order memory are
  not translated on purpose. Kernels with such accesses wait for other threads in loops, so that no
  thread may run alone for long.

refusal.py      the reason why a kernel is not translated
texts.py        the texts of instructions and of the functions around kernels
flow.py         blocks of a function, and the registers that are live in them
emitter.py      lines of text, values of registers, operands
conversions.py  conversions
values.py       instructions on values
accesses.py     loads and stores, with their checks
atomics.py      atomic updates
warps.py        instructions that threads of a warp execute together
printer.py      the function of a kernel
engine.py       compiling kernels, and running blocks by them
"""
