"""Certificates: that a schedule and the passes behind it left the result of a computation alone.

    certify(schedule, [A, B, C]).require()

What was asked for, the tensor expressions, and the loop IR that is to be compiled are both run on
small sizes, in two algebras:

1. On elements of a prime field, and integers modulo 2^w, they must agree to the bit: no order of
   adding up can excuse a difference.
2. On floats each element must lie within its error bound, and no pass may change a bit but those
   that are licensed to round in another way.

Scans are followed row by row. Functions that statements call have stand-ins: a certificate holds
whatever they do, and none of them is run. Nothing on the way may break a rule of the interpreter:
range, race, initialisation. The first and the last program are compared; only where they differ, or
with `every_step`, each prefix of the recorded primitives and each pass. The first guilty one is
named, with the first element that differs, the iterations that wrote it, and the writes that are
missing or extra. A certificate says which inputs, algebras and programs it rests on.

Reading order: bounds, certificate, trial, arguments, versions, judge, search, stand_in, schedules.
"""

from refcomp.certificates.certificate import Certificate, Difference
from refcomp.certificates.schedules import certify, certify_build, certify_function

__all__ = ["Certificate", "Difference", "certify", "certify_build", "certify_function"]
