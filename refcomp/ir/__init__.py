"""The loop IR: nodes, their text form, traversals, comparison and verification."""

from refcomp.ir import printer as printer  # gives nodes their repr

# Gives expressions their Python operators.
from refcomp.ir import (
    promotion as promotion,
)
