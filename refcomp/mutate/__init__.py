"""Mutation testing: wrong programs, made on purpose, and the comparisons that kill them.

A mutant comes from one small change of loop IR, of the compiler's own functions, or of the
templates that spell the output. The mutation score of a comparison is the share of wrong mutants
that it kills.

Reading order:

- mutant.py: mutants and their verdicts
- mutations.py, subjects.py, trial.py, loop_ir.py: mutants of loop IR
- edits.py, child.py, compiler.py: mutants of the compiler
- spellings.py, operations.py, expected_results.py, host_runs.py, outputs.py, templates.py: mutants
  of templates
"""
