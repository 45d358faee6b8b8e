from refcomp.oracle.lockstep.choice import LEAST_THREADS, Choice


def test_each_run_has_plans_of_its_own():
    one, two = Choice(LEAST_THREADS), Choice(1)
    assert one.plans is not two.plans
    assert one.least > two.least
