"""Asks the filters of OpenStack Nova's scheduler. Run by Nova's own interpreter.

Many questions come at once. Those of ``admits`` name a filter, a VM and the hosts that it might be
put on; those of ``place`` the filters besides the usual ones, the hosts, and requests for VMs:

    {"filter": "ComputeFilter", "vm": {"id": "v"}, "hosts": [{"id": "h"}]} -> {"passes": [true]}
    {"filters": [], "hosts": [{"id": "h"}], "requests": [{"vm": {"id": "v"}, "vms": ["v", "w"]}]}
        -> {"placed": {"v": "h", "w": "h"}}

What may be told besides, and what holds if it is not:

    vm      project (none), image (its own), properties {} of the image, flavor ("flavor"),
            extra_specs {} of the flavor, hints {} as lists of words; hints that name VMs: vm_hints;
            vcpus (1), memory_mib (1)
    hosts   service ("up", "down" or "disabled"), ip, aggregates [] of metadata, capabilities {},
            instances [] with id, vm_state ("active"), task_state (none), vcpus and memory_mib (0);
            vcpus and memory_mib (0), at which only the weighers look
    config  options {} of the group filter_scheduler, which are as Nova has them afterwards; an
            image is called as the VM that has it, if that says nothing else
    group   policy, members, hosts, and max_server_per_host if there is one; stands in a request if
            there are requests

The VMs of one request are alike, and Nova finds a host for all of them or for none; those of the
next one come when they are there. Nobody looks whether there is room: that is what Placement does,
which is not there.

A filter that breaks has crashed in that question only; a question that cannot even be put is a
mistake of the one who asks, and leaves the whole line without an answer. Nothing is remembered
between questions: all that a filter could write into is made anew.

It uses private names of the pinned version. Never import this module from ours.
"""

from __future__ import annotations  # Nova's objects are there only once they are registered

import datetime
import logging
import uuid
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

warnings.simplefilter("ignore")

import nova.conf  # noqa: E402  (it warns of Eventlet)
from answering import normalised, serve  # noqa: E402
from nova import objects  # noqa: E402
from nova.compute.stats import Stats  # noqa: E402
from nova.exception import NoValidHost  # noqa: E402
from nova.pci.stats import PciDeviceStats  # noqa: E402
from nova.scheduler.filters import HostFilterHandler  # noqa: E402
from nova.scheduler.host_manager import HostManager, HostState, ReadOnlyDict  # noqa: E402
from nova.scheduler.manager import SchedulerManager  # noqa: E402
from nova.scheduler.weights import HostWeightHandler  # noqa: E402
from oslo_utils import timeutils  # noqa: E402

CONF = nova.conf.CONF
GROUP = "filter_scheduler"
NAMES = uuid.UUID("5d4b3a52-9f0c-4c8e-8f5f-0d7f0c1c9a10")
SILENCE = datetime.timedelta(days=1)
"""Since when nobody has heard of a host that is down; Nova waits for a minute."""

FLAVOR = {
    "flavor": "name",
    "vcpus": "vcpus",
    "memory_mib": "memory_mb",
    "extra_specs": "extra_specs",
}
"""What is told of a VM that Nova has in its flavour, and how it is called there."""
WRITABLE = (dict, list, set)
Entry = dict[str, Any]


def admits(questions: list[Entry]) -> Entry:
    """Answer each question by itself."""
    return {"answers": [_answer(question) for question in questions]}


def _answer(question: Entry) -> Entry:
    asked = _filter(question["filter"])
    with _configured(question.get("config", {})):
        request = _request(question["vm"], question.get("group"))
        hosts = [_host(one) for one in question["hosts"]]
        try:
            return {"passes": [bool(asked.host_passes(host, request)) for host in hosts]}
        except (Exception, SystemExit) as error:
            return {"crash": normalised(error, "nova")}


def place(questions: list[Entry]) -> Entry:
    """Answer each question by itself."""
    return {"answers": [_place(question) for question in questions]}


def _place(question: Entry) -> Entry:
    scheduler = _scheduler(tuple(question["filters"]))
    hosts = {host["id"]: {**host} for host in question["hosts"]}
    placed: dict[str, str] = {}
    with _configured(question.get("config", {})):
        for request in question["requests"]:
            vms, told = request["vms"], request["vm"]
            spec = _request(told, request.get("group"), count=len(vms))
            states = [_weighed(_host(host), host) for host in hosts.values()]
            uuids = [_uuid(vm) for vm in vms]
            try:
                found = scheduler._legacy_find_hosts(None, len(vms), spec, states, 0, uuids)
            except NoValidHost:
                continue
            except (Exception, SystemExit) as error:
                return {"crash": normalised(error, "nova")}
            for vm, (chosen, *_) in zip(vms, found, strict=True):
                placed[vm] = chosen.service_host
                hosts[chosen.service_host].setdefault("instances", []).append({**told, "id": vm})
    return {"placed": placed}


@cache
def _scheduler(names: tuple[str, ...]) -> SchedulerManager:
    """Nova's scheduler without what it would ask others: it is given the hosts."""
    manager = HostManager.__new__(HostManager)
    manager.filter_handler = HostFilterHandler()
    manager.enabled_filters = [
        _filter(name) for name in dict.fromkeys((*CONF.filter_scheduler.enabled_filters, *names))
    ]
    manager.weight_handler = HostWeightHandler()
    usual = CONF.filter_scheduler.weight_classes
    manager.weighers = [one() for one in manager.weight_handler.get_matching_classes(usual)]
    scheduler = SchedulerManager.__new__(SchedulerManager)
    scheduler.host_manager = manager
    return scheduler


@cache
def _classes() -> dict[str, type]:
    return {one.__name__: one for one in HostFilterHandler().get_all_classes()}


@cache
def _filter(name: str) -> Any:
    """One for all questions, as in Nova's scheduler, which makes it when it starts."""
    return _classes()[name]()


@contextmanager
def _configured(options: Entry) -> Iterator[None]:
    told = []
    try:
        for name, value in options.items():
            images = name == "isolated_images"
            CONF.set_override(name, [_uuid(one) for one in value] if images else value, group=GROUP)
            told.append(name)
        yield
    finally:
        for name in told:
            CONF.clear_override(name, group=GROUP)


@cache
def _uuid(name: str) -> str:
    """Names are ours, and Nova knows VMs and images by numbers only."""
    return str(uuid.uuid5(NAMES, name))


def _host(told: Entry) -> HostState:
    host = HostState(told["id"], told["id"], _uuid("cell"))
    host.uuid = _uuid(told["id"])
    host.host_ip = told.get("ip", "192.0.2.1")
    host.service = _service(told.get("service", "up"))
    host.aggregates = [
        objects.Aggregate(id=n, name=f"a{n}", hosts=[told["id"]], metadata=metadata)
        for n, metadata in enumerate(told.get("aggregates", ()))
    ]
    host.metrics = _anew(_no_metrics())
    host.supported_instances = []
    host.allocation_candidates = [{"mappings": {}}]
    stats = Stats()  # counts as the compute service of the host does
    for instance in told.get("instances", ()):
        host.instances[_uuid(instance["id"])] = None
        stats.update_stats_for_instance(_instance(instance))
    # These are the lines of HostState.update that read what the compute service has counted.
    host.num_instances = int(stats.get("num_instances", 0))
    host.num_io_ops = int(stats.get("io_workload", 0))
    stats.update(told.get("capabilities", {}))
    host.stats = stats
    return host


@cache
def _no_metrics() -> objects.MonitorMetricList:
    return objects.MonitorMetricList(objects=[])


def _weighed(host: HostState, told: Entry) -> HostState:
    """A host with what the weighers look at besides."""
    there = told.get("instances", ())
    host.vcpus_total = told.get("vcpus", 0)
    host.vcpus_used = sum(one.get("vcpus", 0) for one in there)
    host.total_usable_ram_mb = told.get("memory_mib", 0)
    host.free_ram_mb = host.total_usable_ram_mb - sum(one.get("memory_mib", 0) for one in there)
    host.cpu_allocation_ratio = CONF.initial_cpu_allocation_ratio
    host.ram_allocation_ratio = CONF.initial_ram_allocation_ratio
    host.disk_allocation_ratio = CONF.initial_disk_allocation_ratio
    host.hypervisor_version = 1
    host.pci_stats = PciDeviceStats(objects.NUMATopology(cells=[]))
    return host


def _instance(told: Entry) -> Entry:
    return {
        "uuid": _uuid(told["id"]),
        "vm_state": told.get("vm_state", "active"),
        "task_state": told.get("task_state"),
        "os_type": None,
        "project_id": None,
    }


def _service(state: str) -> ReadOnlyDict:
    heard = timeutils.utcnow(with_timezone=True)
    return ReadOnlyDict(
        {
            "disabled": state == "disabled",
            "disabled_reason": None,
            "forced_down": False,
            "last_seen_up": heard - SILENCE if state == "down" else heard,
        }
    )


def _request(vm: Entry, group: Entry | None, count: int = 1) -> objects.RequestSpec:
    """A request with every field that the filters could ask for: an unset one would be fetched."""
    hints = {key: list(words) for key, words in vm.get("hints", {}).items()}
    hints |= {key: [_uuid(one) for one in vms] for key, vms in vm.get("vm_hints", {}).items()}
    return _anew(
        _usual_request(),
        instance_uuid=_uuid(vm["id"]),
        image=_image(vm),
        flavor=_flavor(vm),
        **{"project_id": vm["project"]} if "project" in vm else {},
        **{"num_instances": count} if count > 1 else {},
        **{"instance_group": _group(group)} if group is not None else {},
        **{"scheduler_hints": hints} if hints else {},
    )


def _anew(usual: Any, **told: Any) -> Any:
    """Another object with the same values, but for some: Nova checks each value that is set, and to
    let it check all of them anew would take most of the time.

    What can be written into is copied, so that nothing that happens to one is seen in another.
    """
    made = object.__new__(type(usual))
    for name, value in vars(usual).items():
        made.__dict__[name] = value.copy() if isinstance(value, WRITABLE) else value
    for name, value in told.items():
        setattr(made, name, value)
    return made


@cache
def _usual_request() -> objects.RequestSpec:
    """What requests have if nothing else is told."""
    return objects.RequestSpec(
        project_id=None,
        user_id=None,
        availability_zone=None,
        num_instances=1,
        numa_topology=None,
        pci_requests=None,
        ignore_hosts=None,
        force_hosts=None,
        force_nodes=None,
        requested_destination=None,
        retry=None,
        limits=None,
        instance_group=None,
        scheduler_hints={},
        is_bfv=False,
        requested_resources=[],
    )


def _image(vm: Entry) -> objects.ImageMeta:
    told = vm.get("properties")
    # Reads what it knows and passes over the rest, as Nova does with every image.
    properties = objects.ImageMetaProps.from_dict(told) if told else _anew(_no_properties())
    return _anew(_usual_image(vm.get("image", vm["id"])), properties=properties)


@cache
def _usual_image(name: str) -> objects.ImageMeta:
    return objects.ImageMeta(id=_uuid(name))


@cache
def _no_properties() -> objects.ImageMetaProps:
    return objects.ImageMetaProps()


def _flavor(vm: Entry) -> objects.Flavor:
    return _anew(_usual_flavor(), **{FLAVOR[key]: vm[key] for key in FLAVOR.keys() & vm.keys()})


@cache
def _usual_flavor() -> objects.Flavor:
    sizes = {"vcpus": 1, "memory_mb": 1, "root_gb": 0, "ephemeral_gb": 0, "swap": 0}
    return objects.Flavor(id=1, flavorid="1", name="flavor", extra_specs={}, **sizes)


def _group(told: Entry) -> objects.InstanceGroup:
    limit = told.get("max_server_per_host")
    group = objects.InstanceGroup(
        uuid=_uuid("group"),
        policy=told["policy"],
        members=[_uuid(one) for one in told["members"]],
        hosts=list(told["hosts"]),
        rules={} if limit is None else {"max_server_per_host": str(limit)},
    )
    # Of the two filters one reads the policy and the other the policies of old; Nova fills in both.
    group.policies = [told["policy"]]
    return group


def main() -> None:
    """Set Nova up, without any of its services, and answer."""
    logging.disable(logging.CRITICAL)
    objects.register_all()
    CONF([], project="nova", default_config_files=[])
    serve("nova", admits=admits, place=place)


if __name__ == "__main__":
    main()
