"""The scheduling primitives, one small file per family.

Each is a function of a Stage, the call's `Provenance` and its arguments; it checks what it needs
before it changes the stage, so that a refused primitive leaves no trace.
"""
