"""The scheduling primitives, one small file per family.

Each primitive is a function of a Stage, the call's `Provenance` and its arguments. It makes all
checks before it changes the stage, so a primitive that is refused has no effect. The methods of
`refcomp.schedule.stage_schedule` document arguments, results and errors.
"""
