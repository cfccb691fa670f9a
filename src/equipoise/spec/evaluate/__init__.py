"""Evaluation of formulas on one case: compiled closures, incremental parts, explanations."""
