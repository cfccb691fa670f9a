"""Documents of advice: the JSON of ``recommend``, ``place`` and ``whatif``, and their rows.

Enter by ``recommend_document`` and its siblings. Never decides and never runs a pass.
"""

from equipoise.documents.advice.document import (
    place_document,
    recommend_document,
    whatif_document,
    with_plan,
)
from equipoise.documents.advice.rows import (
    ActionRow,
    BeforeAfter,
    MoveRow,
    PlaceDocument,
    RecommendationRow,
    RecommendDocument,
    TotalsRow,
    WhatIfDocument,
)

__all__ = [
    "ActionRow",
    "BeforeAfter",
    "MoveRow",
    "PlaceDocument",
    "RecommendDocument",
    "RecommendationRow",
    "TotalsRow",
    "WhatIfDocument",
    "place_document",
    "recommend_document",
    "whatif_document",
    "with_plan",
]
