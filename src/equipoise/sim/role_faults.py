"""How roles fail in the simulated world: foretold so many times, or by chance."""

from __future__ import annotations

from equipoise.model.action import RoleAction, StartRole
from equipoise.model.quantity import ProcessorId, RoleId
from equipoise.model.story.physics import RolePhysics
from equipoise.model.story.unrest import RoleStartsFail
from equipoise.sim.chance import Dice


class RoleFaults:
    """The starts that are foretold to fail, or to hang."""

    def __init__(self) -> None:
        self._left: dict[tuple[ProcessorId, RoleId | None, bool], int] = {}

    def foretell(self, fault: RoleStartsFail) -> None:
        """From now on so many starts fail."""
        key = fault.processor, fault.role, fault.hang
        self._left[key] = self._left.get(key, 0) + fault.times

    def hangs(self, action: RoleAction) -> bool:
        """Whether an action never ends by itself."""
        return self._strikes(action, hang=True)

    def failure(self, action: RoleAction, physics: RolePhysics | None, dice: Dice) -> str:
        """Why an action fails; nothing if it does not."""
        if self._strikes(action, hang=False):
            return "the applications did not start"
        if physics is None:
            return ""
        starting = isinstance(action, StartRole)
        pct = physics.start_failed_pct if starting else physics.stop_failed_pct
        if dice.roll() * 100 >= pct:
            return ""
        return f"the applications did not {'start' if starting else 'stop'}"

    def _strikes(self, action: RoleAction, *, hang: bool) -> bool:
        if not isinstance(action, StartRole):
            return False
        for role in (action.role, None):
            key = action.processor, role, hang
            if self._left.get(key, 0) > 0:
                self._left[key] -= 1
                return True
        return False
