"""Generate: trials by chance, all of them from one seed.

Enter by ``Generator``. Never judges what it makes; that its plans can be carried out is a law.
"""

from equipoise.fuzz.generate.generator import Generator
from equipoise.fuzz.generate.options import Options

__all__ = ["Generator", "Options"]
