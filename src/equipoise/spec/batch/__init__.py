"""Many cases judged at once: every figure is an array with the cases along its last axis.

A formula costs one array operation where it would have cost one step per case, so the price of
Python is paid once for thousands of cases. Enter by ``Batch``.
"""

from equipoise.spec.batch.cases import Case, Cases, Unbatchable
from equipoise.spec.batch.judge import Batch, Verdicts

__all__ = ["Batch", "Case", "Cases", "Unbatchable", "Verdicts"]
