"""Schedules: how a computation is carried out, kept as data."""
