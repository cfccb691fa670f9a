"""Generate: random trials, all of them from one seed.

Entry point: ``Generator``. It never judges its trials; that its plans can be executed is a tested
law.
"""

from equipoise.adapters.targets.trial import TrialOptions
from equipoise.fuzz.generate.generator import Generator

__all__ = ["Generator", "TrialOptions"]
