"""Certificates: evidence that a schedule and the passes behind it do not change a result.

    certify(schedule, [A, B, C]).require()

The specification, which is the tensor expressions, and the loop IR to be compiled both run on small
sizes, in two algebras:

1. On elements of a prime field, and on integers modulo 2^w, they must agree to the bit: no order of
   addition excuses a difference.
2. On floats each element must lie within its error bound. Only passes that are licensed to round
   differently may change a bit.

Scans are followed row by row. Functions that statements call are replaced by stand-ins, and none of
them runs: a certificate holds whatever they do. No program may break a rule of the interpreter:
range, race, initialisation.

Only the first and the last program are compared. If they differ, or with `every_step`, each prefix
of the recorded primitives and each pass is compared, too. The certificate then names the first
faulty step and the first element that differs. It lists the iterations that wrote the element, and
missing or extra writes. Every certificate lists the inputs, algebras and programs behind it.

Reading order: bounds, certificate, trial, arguments, versions, judge, search, stand_in, schedules.
"""

from refcomp.certificates.certificate import Certificate, Difference
from refcomp.certificates.schedules import certify, certify_build, certify_function

__all__ = ["Certificate", "Difference", "certify", "certify_build", "certify_function"]
