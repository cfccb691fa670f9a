"""Runs the filters of OpenStack Nova's scheduler. Nova's own interpreter runs this script.

A line has many questions. Those of ``admits`` name a filter, a VM and candidate hosts. Those of
``place`` name the filters beside the default ones, the hosts and requests for VMs:

    {"filter": "ComputeFilter", "vm": {"id": "v"}, "hosts": [{"id": "h"}]} -> {"passes": [true]}
    {"filters": [], "hosts": [{"id": "h"}], "requests": [{"vm": {"id": "v"}, "vms": ["v", "w"]}]}
        -> {"placed": {"v": "h", "w": "h"}}

Optional fields, with their defaults in brackets:

    vm      project (none), image (its own), properties {} of the image, flavor ("flavor"),
            extra_specs {} of the flavor, hints {} as lists of words; hints that name VMs: vm_hints;
            vcpus (1), memory_mib (1)
    hosts   service ("up", "down" or "disabled"), ip, aggregates [] of metadata, capabilities {},
            instances [] with id, vm_state ("active"), task_state (none), vcpus and memory_mib (0);
            vcpus and memory_mib (0), which only the weighers read
    config  options {} of the group filter_scheduler, for this question only; the default image of a
            VM has the name of the VM
    group   policy, members, hosts, and optionally max_server_per_host; it is part of a request if
            there are requests

The VMs of one request are equal, and Nova finds a host for all of them or for none. The VMs of the
next request are placed after them. Capacity is not checked: Placement does that, and it is not part
of the test.

A filter that raises has crashed in that question only. A question that cannot be read is a bug of
the caller and leaves the whole line without an answer. No state is kept between questions: every
object that a filter could change is created for each question.

This script uses private names of the pinned version. No module of Equipoise imports it.
"""

from __future__ import annotations  # Nova's objects exist only after their registration

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
from equipoise_worker import normalised, serve  # noqa: E402
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
"""The age of the last report of a host that is down; Nova's limit is one minute."""

FLAVOR = {
    "flavor": "name",
    "vcpus": "vcpus",
    "memory_mib": "memory_mb",
    "extra_specs": "extra_specs",
}
"""The fields of a VM that are part of its flavour in Nova, with their names there."""
WRITABLE = (dict, list, set)
Entry = dict[str, Any]


def admits(questions: list[Entry]) -> Entry:
    """Answer each question independently."""
    return {"answers": [_answer(question) for question in questions]}


def _answer(question: Entry) -> Entry:
    tested = _filter(question["filter"])
    with _configured(question.get("config", {})):
        request = _request(question["vm"], question.get("group"))
        hosts = [_host(record) for record in question["hosts"]]
        try:
            return {"passes": [bool(tested.host_passes(host, request)) for host in hosts]}
        except (Exception, SystemExit) as error:
            return {"crash": normalised(error, "nova")}


def place(questions: list[Entry]) -> Entry:
    """Answer each question independently."""
    return {"answers": [_place(question) for question in questions]}


def _place(question: Entry) -> Entry:
    scheduler = _scheduler(tuple(question["filters"]))
    hosts = {host["id"]: {**host} for host in question["hosts"]}
    placed: dict[str, str] = {}
    with _configured(question.get("config", {})):
        for request in question["requests"]:
            vms, model = request["vms"], request["vm"]
            spec = _request(model, request.get("group"), count=len(vms))
            states = [_weighed(_host(host), host) for host in hosts.values()]
            uuids = [_uuid(vm) for vm in vms]
            try:
                selections = scheduler._legacy_find_hosts(None, len(vms), spec, states, 0, uuids)
            # Not an error: the VMs of this request stay unplaced, and the next request is
            # independent.
            except NoValidHost:
                continue
            except (Exception, SystemExit) as error:
                return {"crash": normalised(error, "nova")}
            for vm, (chosen, *_) in zip(vms, selections, strict=True):
                placed[vm] = chosen.service_host
                hosts[chosen.service_host].setdefault("instances", []).append({**model, "id": vm})
    return {"placed": placed}


@cache
def _scheduler(names: tuple[str, ...]) -> SchedulerManager:
    """Nova's scheduler without its clients of other services: the caller provides the hosts."""
    manager = HostManager.__new__(HostManager)
    manager.filter_handler = HostFilterHandler()
    manager.enabled_filters = [
        _filter(name) for name in dict.fromkeys((*CONF.filter_scheduler.enabled_filters, *names))
    ]
    manager.weight_handler = HostWeightHandler()
    names_of_weighers = CONF.filter_scheduler.weight_classes
    weighers = manager.weight_handler.get_matching_classes(names_of_weighers)
    manager.weighers = [weigher() for weigher in weighers]
    scheduler = SchedulerManager.__new__(SchedulerManager)
    scheduler.host_manager = manager
    return scheduler


@cache
def _classes() -> dict[str, type]:
    return {cls.__name__: cls for cls in HostFilterHandler().get_all_classes()}


@cache
def _filter(name: str) -> Any:
    """One instance for all questions, as in Nova's scheduler, which creates it at its start."""
    return _classes()[name]()


@contextmanager
def _configured(options: Entry) -> Iterator[None]:
    changed = []
    try:
        for name, value in options.items():
            is_images = name == "isolated_images"
            nova_value = [_uuid(image) for image in value] if is_images else value
            CONF.set_override(name, nova_value, group=GROUP)
            changed.append(name)
        yield
    finally:
        for name in changed:
            CONF.clear_override(name, group=GROUP)


@cache
def _uuid(name: str) -> str:
    """The UUID for a name of a trial; Nova identifies VMs and images by UUIDs only."""
    return str(uuid.uuid5(NAMES, name))


def _host(record: Entry) -> HostState:
    host = HostState(record["id"], record["id"], _uuid("cell"))
    host.uuid = _uuid(record["id"])
    host.host_ip = record.get("ip", "192.0.2.1")
    host.service = _service(record.get("service", "up"))
    host.aggregates = [
        objects.Aggregate(id=n, name=f"a{n}", hosts=[record["id"]], metadata=metadata)
        for n, metadata in enumerate(record.get("aggregates", ()))
    ]
    host.metrics = _copy_with(_no_metrics())
    host.supported_instances = []
    host.allocation_candidates = [{"mappings": {}}]
    stats = Stats()  # the counters of the compute service of the host
    for instance in record.get("instances", ()):
        host.instances[_uuid(instance["id"])] = None
        stats.update_stats_for_instance(_instance(instance))
    # HostState.update sets these two fields from the counters of the compute service.
    host.num_instances = int(stats.get("num_instances", 0))
    host.num_io_ops = int(stats.get("io_workload", 0))
    stats.update(record.get("capabilities", {}))
    host.stats = stats
    return host


@cache
def _no_metrics() -> objects.MonitorMetricList:
    return objects.MonitorMetricList(objects=[])


def _weighed(host: HostState, record: Entry) -> HostState:
    """Add what the weighers read to a host."""
    instances = record.get("instances", ())
    host.vcpus_total = record.get("vcpus", 0)
    host.vcpus_used = sum(vm.get("vcpus", 0) for vm in instances)
    host.total_usable_ram_mb = record.get("memory_mib", 0)
    host.free_ram_mb = host.total_usable_ram_mb - sum(vm.get("memory_mib", 0) for vm in instances)
    host.cpu_allocation_ratio = CONF.initial_cpu_allocation_ratio
    host.ram_allocation_ratio = CONF.initial_ram_allocation_ratio
    host.disk_allocation_ratio = CONF.initial_disk_allocation_ratio
    host.hypervisor_version = 1
    host.pci_stats = PciDeviceStats(objects.NUMATopology(cells=[]))
    return host


def _instance(record: Entry) -> Entry:
    return {
        "uuid": _uuid(record["id"]),
        "vm_state": record.get("vm_state", "active"),
        "task_state": record.get("task_state"),
        "os_type": None,
        "project_id": None,
    }


def _service(state: str) -> ReadOnlyDict:
    now = timeutils.utcnow(with_timezone=True)
    return ReadOnlyDict(
        {
            "disabled": state == "disabled",
            "disabled_reason": None,
            "forced_down": False,
            "last_seen_up": now - SILENCE if state == "down" else now,
        }
    )


def _request(vm: Entry, group: Entry | None, count: int = 1) -> objects.RequestSpec:
    """A request with every field that filters may read: Nova would fetch an unset one."""
    hints = {key: list(words) for key, words in vm.get("hints", {}).items()}
    hints |= {key: [_uuid(name) for name in vms] for key, vms in vm.get("vm_hints", {}).items()}
    return _copy_with(
        _default_request(),
        instance_uuid=_uuid(vm["id"]),
        image=_image(vm),
        flavor=_flavor(vm),
        **{"project_id": vm["project"]} if "project" in vm else {},
        **{"num_instances": count} if count > 1 else {},
        **{"instance_group": _group(group)} if group is not None else {},
        **{"scheduler_hints": hints} if hints else {},
    )


def _copy_with(template: Any, **changes: Any) -> Any:
    """A copy of an object with some changed values.

    Nova validates every value that is set, which would take most of the time: so only the changes
    are set. Mutable values are copied, so that no change is visible in another question.
    """
    copied = object.__new__(type(template))
    for name, value in vars(template).items():
        copied.__dict__[name] = value.copy() if isinstance(value, WRITABLE) else value
    for name, value in changes.items():
        setattr(copied, name, value)
    return copied


@cache
def _default_request() -> objects.RequestSpec:
    """The default request."""
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
    given = vm.get("properties")
    # As for every image in Nova, unknown properties are ignored.
    properties = objects.ImageMetaProps.from_dict(given) if given else _copy_with(_no_properties())
    return _copy_with(_default_image(vm.get("image", vm["id"])), properties=properties)


@cache
def _default_image(name: str) -> objects.ImageMeta:
    return objects.ImageMeta(id=_uuid(name))


@cache
def _no_properties() -> objects.ImageMetaProps:
    return objects.ImageMetaProps()


def _flavor(vm: Entry) -> objects.Flavor:
    return _copy_with(
        _default_flavor(), **{FLAVOR[key]: vm[key] for key in FLAVOR.keys() & vm.keys()}
    )


@cache
def _default_flavor() -> objects.Flavor:
    sizes = {"vcpus": 1, "memory_mb": 1, "root_gb": 0, "ephemeral_gb": 0, "swap": 0}
    return objects.Flavor(id=1, flavorid="1", name="flavor", extra_specs={}, **sizes)


def _group(record: Entry) -> objects.InstanceGroup:
    limit = record.get("max_server_per_host")
    group = objects.InstanceGroup(
        uuid=_uuid("group"),
        policy=record["policy"],
        members=[_uuid(member) for member in record["members"]],
        hosts=list(record["hosts"]),
        rules={} if limit is None else {"max_server_per_host": str(limit)},
    )
    # One filter reads the policy, the other one the older field policies; Nova fills in both.
    group.policies = [record["policy"]]
    return group


def main() -> None:
    """Configure Nova without its services, and answer questions."""
    logging.disable(logging.CRITICAL)
    objects.register_all()
    CONF([], project="nova", default_config_files=[])
    serve("nova", admits=admits, place=place)


if __name__ == "__main__":
    main()
