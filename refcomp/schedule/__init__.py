"""Schedules: how a computation is carried out, kept as data."""

from refcomp.schedule.auto_inline import AutoInlineElemWise, AutoInlineInjective

__all__ = ["AutoInlineElemWise", "AutoInlineInjective"]
