"""Many cases judged at once: every figure is an array with the cases along its last axis.

A formula costs one array operation where it would have cost one step per case, so the price of
Python is paid once for thousands of cases. Enter by ``judge_cases``, or by ``Batch`` to judge the
same cases by several constraints.
"""

from equipoise.spec.batch.cases import Cases, Unbatchable
from equipoise.spec.batch.judge import Batch, Verdicts, judge_cases

__all__ = ["Batch", "Cases", "Unbatchable", "Verdicts", "judge_cases"]
