"""Mutation testing: wrong programs, made on purpose, and the comparisons that kill them.

A mutant comes from one small change of loop IR, of the compiler's own functions, or of the
templates that spell the output. The mutation score of a comparison is the share of wrong mutants
that it kills.

Reading order: mutant, then for loop IR: mutations, subjects, trial, score; for the compiler: edits,
child, compiler; for templates: spellings, operations, expected_results, host_runs, outputs,
machine.
"""
