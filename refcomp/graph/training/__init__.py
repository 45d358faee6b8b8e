"""Training: one step as a graph, from a batch and the parameters to the parameters after it.

Reading order::

    optimizers.py      `Sgd` and `Adam`: updates of a parameter, as nodes of a graph
    step.py            `training_step`: loss, gradients and updates in one graph
    trainer.py         `Trainer`, which keeps parameters and states between steps

All numbers are computed by compiled kernels. Sums are added up in an order that depends on shapes
and schedules only: runs agree bit by bit, for any number of threads.
"""
