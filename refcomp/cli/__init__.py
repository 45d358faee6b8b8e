"""The command line: thin, one file per command; `refcomp --help` lists them.

Reading order: group.py (the commands, how they are found and how they fail), outcomes.py (exit
codes), streams.py (what comes in and goes out), then any command.
"""

from refcomp.cli.group import main

__all__ = ["main"]
