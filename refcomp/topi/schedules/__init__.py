"""Schedules of operators, one file per kind of target."""
