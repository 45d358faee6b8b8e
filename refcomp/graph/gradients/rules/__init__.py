"""Rules for the gradients of common operators, by family; each is written in graph operators.

`RULES` maps the name of an operator to its rule. All other operators are left to `vjp`.
"""

from refcomp.graph.gradients.pullback import Rule
from refcomp.graph.gradients.rules import (
    broadcast,
    convolutions,
    elementwise,
    losses,
    movement,
    normalizations,
    pools,
    products,
    reductions,
    sparse,
)

RULES: dict[str, Rule] = {
    **elementwise.RULES,
    **broadcast.RULES,
    **reductions.RULES,
    **movement.RULES,
    **products.RULES,
    **convolutions.RULES,
    **pools.RULES,
    **normalizations.RULES,
    **losses.RULES,
    **sparse.RULES,
}
