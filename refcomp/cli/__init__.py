"""The command line: one file for each command. `refcomp --help` lists them.

Reading order: group.py (finds a command, and reports its failure), outcomes.py (exit codes),
streams.py (input and output), then any command.
"""

from refcomp.cli.group import main

__all__ = ["main"]
