"""Names for the numbers in a constraint, and what is wrong with those that stand for nothing."""

from __future__ import annotations

from equipoise.model.files.btrplace import form
from equipoise.model.files.btrplace.deadline import milliseconds
from equipoise.model.files.btrplace.names import our_resource
from equipoise.model.files.btrplace.places import Places
from equipoise.model.files.btrplace.views import Views, find_unknown_node
from equipoise.model.files.findings import Findings
from equipoise.model.files.words import Path


class Speech:
    """Says names for numbers, and finds those that stand for nothing."""

    def __init__(self, places: Places, views: Views, found: Findings) -> None:
        self.path: Path = ()
        """Of the constraint that is being read."""
        self._places, self._views, self._found = places, views, found
        self._named: dict[form.Numbers, tuple[str, ...]] = {}
        self._packed: dict[form.Groups, tuple[tuple[str, ...], ...]] = {}

    def vm(self, number: int, *key: str | int) -> str:
        """The name of a VM."""
        name = self._places.vms.get(number)
        if name is None:
            cure = "list it in readyVMs, or demand a state of it"
            self._find(key or ("vm",), f"there is no VM {number}", cure)
        return name or ""

    def vms(self, numbers: form.Numbers, *key: str | int) -> tuple[str, ...]:
        """The names of VMs, each once."""
        path = key or ("vms",)
        names = [self.vm(one, *path, place) for place, one in enumerate(numbers)]
        return tuple(dict.fromkeys(names))

    def queue(self, numbers: form.Numbers) -> tuple[str, ...]:
        """The names of VMs in an order, so that none can come twice."""
        if len(set(numbers)) < len(numbers):
            self._find(("vms",), "the list names a VM twice", "every VM once")
        return self.vms(numbers)

    def host(self, number: int, *key: str | int) -> str:
        """The name of a node."""
        name = self._places.hosts.get(number)
        if name is None:
            find_unknown_node(number, (*self.path, *(key or ("node",))), self._found)
        return name or ""

    def hosts(self, numbers: form.Numbers, *key: str | int) -> tuple[str, ...]:
        """Names for nodes; those of the same nodes are the same value, for there may be many."""
        known = self._named.get(numbers)
        if known is None:
            path = key or ("nodes",)
            found = len(self._found)
            names = [self.host(one, *path, place) for place, one in enumerate(numbers)]
            known = tuple(dict.fromkeys(names))
            if len(self._found) == found:  # what is wrong is to be told each time
                self._named[numbers] = known
        return known

    def vm_groups(self, groups: form.Groups, key: str) -> tuple[tuple[str, ...], ...]:
        """The names of VMs in groups that share nothing."""
        self._check_apart(groups, key, "VM")
        named = [self.vms(group, key, place) for place, group in enumerate(groups)]
        return tuple(dict.fromkeys(named))

    def host_groups(self, groups: form.Groups, key: str) -> tuple[tuple[str, ...], ...]:
        """The names of nodes in groups that share nothing."""
        known = self._packed.get(groups)
        if known is None:
            found = len(self._found)
            self._check_apart(groups, key, "node")
            named = [self.hosts(group, key, place) for place, group in enumerate(groups)]
            known = tuple(dict.fromkeys(named))
            if len(self._found) == found:
                self._packed[groups] = known
        return known

    def resource(self, name: str) -> str:
        """What a resource is called here."""
        known = self._views.resources
        if name not in known:
            self._found.add_unknown((*self.path, "rc"), "resource", name, known)
        return our_resource(name)

    def by(self, timestamp: int | str) -> int:
        """The millisecond of the plan that a timestamp stands for."""
        answer = milliseconds(timestamp)
        if isinstance(answer, int):
            return answer
        self._find(("timestamp",), answer.what, answer.cure)
        return 0

    def check_overbooked(self, one: form.Overbook) -> None:
        """Find a ratio with which a node would have more than there can be."""
        view = self._views.resources.get(one.resource)
        if view is None:
            return
        has = view.nodes.get(one.node, view.default_capacity)
        if has * one.ratio > form.AMOUNT_MAX:
            what = f"{one.ratio} times {has} is more than {form.AMOUNT_MAX}"
            self._find(("ratio",), what, f"at most {form.AMOUNT_MAX / has:g}")

    def _check_apart(self, groups: form.Groups, key: str, noun: str) -> None:
        """Find groups that overlap. Equal ones count once there, for they are kept in a set."""
        first: dict[int, int] = {}
        for place, group in enumerate(dict.fromkeys(groups)):
            for number in set(group):
                if first.setdefault(number, place) != place:
                    what = f"the {noun} {number} is in two groups"
                    self._find((key,), what, "groups share nothing")
                    return

    def _find(self, key: Path, what: str, cure: str) -> None:
        self._found.add((*self.path, *key), what, cure)
