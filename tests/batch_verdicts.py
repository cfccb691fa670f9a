"""Verdicts on many cases: as arrays where the formula allows it, else case by case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from equipoise.spec.batch.cases import Unbatchable
from equipoise.spec.batch.judge import CHUNK_CASES, BatchVerdicts, CaseBatch, broken_ms_of
from equipoise.spec.requirement import Case, Requirement
from equipoise.spec.specification import Specification

Arguments = Mapping[str, Any]


def judge_cases(
    specification: Specification,
    name: str,
    cases: Sequence[Case],
    arguments: Sequence[Arguments],
    *,
    continuous: bool,
) -> BatchVerdicts:
    """Judge any number of cases by a constraint: as arrays where possible, else one by one."""
    chunks = []
    for first in range(0, len(cases), CHUNK_CASES):
        chunk, given = cases[first : first + CHUNK_CASES], arguments[first : first + CHUNK_CASES]
        try:
            verdicts = CaseBatch(chunk).judge(specification, name, given, continuous=continuous)
            chunks.append(verdicts.broken_ms)
        except Unbatchable:
            requirements = [
                Requirement(specification, name, values, continuous) for values in given
            ]
            chunks.append(np.array(list(map(broken_ms_of, requirements, chunk)), np.int64))
    broken_ms = np.concatenate([np.empty(0, np.int64), *chunks])
    return BatchVerdicts(broken_ms < 0, broken_ms)
