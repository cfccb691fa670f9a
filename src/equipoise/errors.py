"""Exceptions, and the stable codes of problems, reasons, refusals and faults.

    EquipoiseError
    ├── InvalidInput       a file or an argument is wrong; says where, what and how to fix it
    ├── MissingExtra       an optional part is not installed; names the extra
    ├── InternalError      a bug that was detected in time to save the case that shows it
    ├── Interrupted        the user ended the work early; results so far are printed
    └── WorldError         an outside system refused or failed
        └── Conflict       the world has changed since it was read: observe again, never force

Any other bug is an ``AssertionError``; "no good answer" is a value (``Refusal``), not an exception.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

CODES: Final[Mapping[str, str]] = {
    # Input: files, options and arguments.
    "invalid-value": "A value is not allowed at its place.",
    "absent-at-time": "An event names a host or VM that is not there at that time.",
    "contradiction": "Two statements of a file exclude each other.",
    "cycle": "Things refer to each other in a cycle.",
    "disconnected": "No path of the network connects two hosts.",
    "duplicate-key": "A mapping has a key more than once.",
    "duplicate-name": "A name is used or listed more than once.",
    "empty-value": "A file, list or mapping has nothing in it.",
    "invalid-name": "A name has characters that are not allowed, or is too long.",
    "missing-key": "A key is missing that is required here.",
    "more-problems": "The file has more problems than are listed.",
    "out-of-range": "A number, time or length is outside its range.",
    "syntax-error": "The text does not follow its language.",
    "too-large": "A file, its nesting or what it asks for exceeds a limit.",
    "unknown-key": "A key is not known here.",
    "unknown-name": "A name refers to nothing.",
    "unreadable-file": "The bytes of a file are not text in UTF-8.",
    "unsupported-feature": "The input needs something that Equipoise does not have.",
    "wrong-type": "A value has the wrong type.",
    "interrupted": "The user ended the command before it was complete.",
    "internal-error": "Equipoise detected an error of its own.",
    "missing-extra": "An optional part of Equipoise is not installed.",
    # Specification, planning and the gate.
    "no-plan": "No plan satisfies all conditions.",
    "action-in-progress": "Another action on the same VM, host or role has not ended yet.",
    "agent-pinned": "The VM is an agent of its host and never leaves it.",
    "condition-conflict": "The conditions of the problem cannot be satisfied together.",
    "copy-too-fast": "The migration is shorter than the network needs to copy the memory.",
    "declared-twice": "Two declarations have the same name.",
    "duplicate-step": "Two steps or intents have the same id.",
    "evaluation-failed": "A formula has no value in this state.",
    "final-state-missed": "The plan does not lead a VM or a host to its desired state.",
    "ft-pair-conflict": "The other VM of the fault-tolerant pair occupies the host.",
    "host-not-empty": "VMs or roles remain on a host that the action takes out of service.",
    "host-not-on": "The host is not on, or an action is switching it.",
    "invalid-argument": "A constraint does not accept this argument.",
    "invalid-function": "An installed package adds a function that the language cannot use.",
    "invalid-rule": "A rule names no constraint or gives it wrong arguments.",
    "invalid-step": "A step or an action is malformed.",
    "missing-argument": "A constraint needs an argument that is not given.",
    "moves-exceeded": "A VM would have to move more often than moves_max allows.",
    "network-overloaded": "The migrations need more bandwidth than a link or a switch has.",
    "network-too-slow": "The network cannot finish all migrations before the horizon.",
    "no-network-path": "No links lead from the source to the target.",
    "not-replaceable": "The VM is not replaceable, so it cannot be created again elsewhere.",
    "no-template": "The VM has no template from which it can be created.",
    "number-too-large": "A number exceeds what can be computed exactly.",
    "object-not-found": "The cluster has no VM, host, group or role of this name.",
    "open-actions-exceeded": "Too many actions are under way to check every order of their ends.",
    "past-horizon": "The plan would end after the horizon.",
    "prerequisite-missing": "A step waits for a step that has not succeeded or does not exist.",
    "processor-down": "The host or VM that runs the role is not up.",
    "recursive-constraint": "A constraint calls itself, directly or through others.",
    "reserved-word": "A name is a word of the language.",
    "role-held": "Another processor holds or starts a role that has a single holder.",
    "role-wrong-state": "The role already runs, or does not run, on the processor.",
    "rule-violated": "A constraint of the specification is false.",
    "rule-worsened": "A constraint that was violated before the plan would be violated more.",
    "stale-plan": "The plan was made for another version of the cluster.",
    "too-few-hosts": "Rules leave fewer hosts than other rules need.",
    "too-deeply-nested": "A formula is nested too deeply.",
    "type-mismatch": "A term has a type that its place does not allow.",
    "unknown-argument": "A constraint has no argument of this name.",
    "unknown-constraint": "No specification declares a constraint of this name.",
    "unreachable-state": "No sequence of actions leads to the desired state.",
    "unused-argument": "A constraint never uses one of its arguments.",
    "constant-formula": "A formula is always true, or always false, on every small cluster.",
    "vcpus-exceed-cores": "The VM has more vCPUs than the host has cores.",
    "wrong-state": "The VM or host is not in the state, or not on the host, that the action needs.",
    # Warnings: values that are allowed and probably wrong.
    "doubtful-host-memory": "A host has so little or so much memory that the unit is doubtful.",
    "doubtful-core-speed": "A core is so slow or so fast that the unit is doubtful.",
    "doubtful-vm-cpu": "A VM demands or reserves more CPU than its vCPUs can give.",
    "pool-below-children": "A pool reserves less than the pools and VMs in it.",
    "doubtful-vm-memory": "A VM has so little memory that the unit is doubtful.",
    "vm-exceeds-hosts": "A VM has more memory than any host may commit.",
    # Capacity, balance and power.
    "constraint-unsatisfiable": "No hosts of the empty platform satisfy the constraints of a job.",
    "search-exhausted": "The search for hosts of a job reached its limit without a result.",
    "no-capacity": "No host has enough free capacity.",
    # Moves that balance recommends.
    "balance": "The move reduces the imbalance.",
    "repair-rule": "The move repairs a broken rule or an overcommitted host.",
    "relieve-overload": "The move takes demand off a host that has too little capacity for it.",
    "evacuate": "The operator requests a state in which the host must be empty.",
    "free-capacity": "The move frees capacity for another VM.",
    # Faults and refusals of balance and placement.
    "no-target-host": "The VM needs a host or must leave its host, and no host can take it.",
    "keep-apart": "A rule keeps VMs apart that share, or would share, a host.",
    "keep-together": "A rule keeps VMs together that are on different hosts.",
    "ft-incompatible": "The hosts of a fault-tolerant pair are not compatible.",
    "over-reserved": "The reservations on a host exceed its capacity.",
    "overcommitted": "The VMs on a host have more memory or vCPUs than it may commit.",
    "host-overloaded": "The demand of the VMs on a host exceeds its capacity.",
    "out-of-cpu": "The VMs ask for more CPU than all hosts have that are on.",
    "out-of-memory": "The VMs ask for more memory than all hosts have that are on.",
    "failover-reserve": "The VM would use capacity in which lost VMs must restart.",
    "broken-rule": "A rule is broken, and no move that repairs it is known.",
    "vm-sleeping": "A host cannot be switched, because a sleeping VM cannot leave it.",
    "gate-refuses": "The gate refuses the action.",
    "admission-refused": "A pool or the cluster has too little reservation left for the VM.",
    "not-ready": "The VM cannot be placed, because it is not ready to start.",
    # Targets and moves that balance does not choose.
    "second-best": "Another host gains more.",
    "host-closed": "The host accepts no VMs.",
    "rule-forbids": "A rule forbids the host.",
    "too-few-cores": "The host has fewer cores than the VM has vCPUs.",
    "makes-scarce": "The move would overload the host.",
    "no-relief": "The host of the VM is overloaded, and no other host can take the VM.",
    "no-gain": "The move would not reduce the imbalance.",
    "cost-exceeds-benefit": "The benefit is too small for the cost and the risk.",
    "below-threshold": "The priority is below the threshold of the policy.",
    "not-selected": "The gain is too small, or the move limit is reached.",
    # VMs and hosts that balance explains.
    "moves": "The VM moves.",
    "not-running": "The VM does not run.",
    "agent": "The VM is an agent of its host and cannot move.",
    "action-running": "A running action works on the VM.",
    "recently-moved": "The VM, or one that must stay with it, moved recently.",
    "moved-often": "The VM has moved as often as it may within a day.",
    "unchanged-since-move": "The VM has moved, and neither demand nor hosts have changed since.",
    "move-back-off": "The last migration of the VM failed; the next one waits.",
    "link-back-off": "The last migrations over the link of the host failed; the next one waits.",
    "left-lately": "The VM left the host a short time ago.",
    "policy-override": "The policy excludes the VM or the host.",
    "rules-only": "The policy only repairs rules.",
    "balanced": "The imbalance is within the target.",
    "host-off": "The host is not on.",
    "evacuated": "The host is being evacuated.",
    "kept-free": "Rules keep all VMs off the host, or it has no capacity.",
    "source": "VMs leave the host.",
    "target": "VMs arrive at the host.",
    "average-load": "The load of the host is close to the mean.",
    "vms-pinned": "No VM can leave the host.",
    "no-useful-move": "No move to the host is worth its cost.",
    # Hosts that power switches.
    "sleep": "The capacity of the host is not needed.",
    "wake-busy": "Other hosts are above the target utilisation.",
    "wake-rule": "A rule stays broken without the host.",
    "wake-minimum": "Fewer hosts are on than the policy requires.",
    "wake-window": "The power policy is off now, so all hosts are on.",
    # Hosts that power does not switch.
    "power-policy-off": "The power policy is off now.",
    "stays-on": "The power policy keeps the host on.",
    "left-alone": "The power policy excludes the host.",
    "power-threshold": "The threshold of the power policy forbids standby.",
    "observing": "Demand was not observed for long enough.",
    "cooldown": "A host was woken recently.",
    "hosts-on-minimum": "Too few hosts would be on.",
    "move-limit": "The moves of one pass are used up.",
    "power-cap": "The cluster could exceed its power cap.",
    "no-power-figures": "The host has no power figures, or standby saves nothing.",
    "wake-failed": "The last wake of the host failed.",
    "state-requested": "The operator has requested a state for the host.",
    "vms-rest": "A VM of the host stays where it is for now, because it has moved or failed to.",
    "in-use": "An action or the evacuation of another host uses the host.",
    "holds-roles": "The host holds roles, or a role needs it.",
    "hosts-busy": "Hosts are, or would be, above the target utilisation.",
    "utilisation-not-low": "No host is below the target utilisation.",
    "no-benefit": "The switch would not improve the utilisation.",
    "saving-too-small": "The other hosts would draw almost as much more as the standby saves.",
    "breaks-rule": "A rule or a failover reserve needs the host.",
    "not-needed": "The host is in standby, and its capacity is not needed.",
    # Upgrade.
    "host-down": "The host of the resource is down.",
    "paused-by-command": "An administrator has paused the change set or the campaign.",
    "batch-limit": "A brake of the change set limits the batch: batch_max, canary or checkpoint.",
    "too-many-failures": "Too many attempts of the change set failed; it stops until a resume.",
    "waits-for-approval": "The change set has reached a checkpoint and waits for an approval.",
    "outside-window": "The change set waits for its maintenance window.",
    "catalog-conflict": "A request describes a version otherwise than the catalog.",
    "name-taken": "A request adds a host or resource that exists.",
    "no-start-date": "The change set names dates, and the run has no date.",
    "no-spare-host": "Taking out a further host would use capacity that is reserved.",
    "vms-running": "VMs run on the host; they must move first.",
    "vms-depend": "VMs run on hosts that depend on the resource and have no alternative.",
    "vm-moves": "The VM itself moves in step 4 of the iteration.",
    "still-needed": "Another resource still depends on the resource to be removed.",
    "replacement-not-ready": "The resource that replaces this one is not ready.",
    "sponsors-not-ready": "Too few of the resources that the new resource needs are ready.",
    "dependency-order": "Another resource of the same dependency is changed first.",
    "version-conflict": "The resource would work with an incompatible version of another one.",
    "partition-order": "Another partition of the same upgrade unit is changed first.",
    "unit-not-finished": "The upgrade unit of the resource is not finished.",
    "other-host-partition": "The host is in the new partition while the hosts are divided.",
    "peer-in-batch": "A peer, constituent or link that covers the resource is in the batch.",
    "peer-out-of-service": "A peer of the resource is out of service.",
    "protection-group-short": "The protection group would have too few members in service.",
    "constituents-short": "The aggregate would have too few constituents in service.",
    "replacement-hosts-short": "Too few hosts can carry the old and the new resource together.",
    "replacement-cycle": "The new resource is built on resources that wait for it.",
    "duplicate-set": "A change set with this id exists.",
    "unknown-set": "No change set has this id.",
    "set-ended": "The change set has ended.",
    "set-required": "The command needs the id of a change set.",
    "no-effect": "The command would change nothing.",
    "no-checkpoint": "The change set has no checkpoint that waits for an approval.",
    "unknown-resource": "The change names a resource that does not exist.",
    "duplicate-resource": "The change adds a resource that exists.",
    "unknown-dependency": "The change removes a dependency that does not exist.",
    "no-description": "The catalog does not describe the component version.",
    "threshold-too-high": "The undo threshold exceeds the number of resources of the change.",
    "complements-unbounded": "The complementary changes do not come to an end.",
    "requirement-conflict": "Two requirements of components contradict each other.",
    "duration-too-long": "One change takes longer than the change set may.",
    "window-too-short": "No maintenance window is long enough for one change.",
    "capacity-too-small": "The hosts that remain cannot run the VMs of the tenants.",
    "no-method": "No upgrade method can change the resources together.",
    "undo-commanded": "An administrator has commanded the undo of the change set.",
    "cancelled-by-command": "An administrator has cancelled the change set.",
    "too-few-operational": "Fewer resources are operational than the undo threshold requires.",
    "deadline-missed": "The change set was not complete at its deadline.",
    "set-coupled": "Another change set on the same resource is undone.",
    "lost-peer": "A peer is lost, so the resource can never be taken out.",
    "circular-wait": "The resources of the change set wait for each other.",
    "not-evacuable": "VMs cannot leave the hosts that go out of service with the resource.",
    "resource-lost": "A resource failed; its repair lets the campaign continue.",
    "vm-not-movable": "The moves of a VM have failed too often, so its host cannot change.",
    "connection-refused": "The connection was refused before the work started.",
    "attempts-exhausted": "The allowed attempts on the resource have failed.",
    "isolated-with-group": "A resource that changes together with this one is isolated.",
    "task-failed": "A task on the resource failed.",
    "task-unanswered": "The engine did not report the result of the task.",
    "unreachable": "The resource did not answer.",
    "iteration-limit": "The campaign reached its maximum number of iterations.",
    "nothing-possible": "No action is possible in this state.",
    "no-vm-left": "No VM is left to move.",
    "vm-limit-reached": "The limit of VM moves in this iteration is reached.",
    "moves-refused": "The gate refuses moves of VMs to the changed hosts.",
    "reserve-needed": "The free hosts are reserved for tenants that scale and hosts that fail.",
    "too-many-disturbed": "More VMs of an anti-affinity group moved at once than allowed.",
    "vm-unplaced": "A VM within the SLA found no host.",
    # Roles.
    "duplicate-definition": "A name is defined or listed twice.",
    "reserved-slot-name": "A slot has the name of a layout keyword.",
    "unclear-element": "An element of the layout is incomplete or contradicts itself.",
    "application-in-two-roles": "An application belongs to two roles.",
    "duplicate-pair": "A layout gives one role to one slot twice.",
    "single-role-twice": "A role with a single holder can have two holders.",
    "no-processors": "A group lists no processors, or both hosts and VMs.",
    "uncovered-role": "A role can be without a holder.",
    "coverage-lost-by-joining": "A role can lose its holder because a processor joins.",
    "list-can-be-empty": "All slots of a preference list can be empty.",
    "role-lost": "The role would lose a holder that it needs.",
    "processor-busy": "Another action runs on the processor.",
    "processor-suspected": "The processor is suspected and gets no new role.",
    "retry-later": "The last attempt failed; the next one waits.",
    "active-first": "The active role starts before its standby.",
    "single-holder": "Another processor holds the role, and the role allows one holder.",
    "roles-apart": "A role that must be apart has to leave the processor first.",
    "promotion": "The standby runs until the role that it promotes to runs.",
    "make-before-break": "The role stops after its new holder runs it.",
    # Simulation, control, journal and adapters.
    "world-failed": "An outside system refused or broke.",
    "action-interrupted": "The host or VM of a running action failed or was removed.",
    "action-lost": "An action was cancelled, and the world gave no answer.",
    "address-invalid": "The address of a journal is neither a path nor a known database URL.",
    "concurrency-limit": "The limit of concurrent actions is reached.",
    "database-busy": "Another process holds the lock of the database.",
    "database-damaged": "The file is not a database, or the database is damaged.",
    "database-failed": "The database reported an error.",
    "database-foreign": "The database holds tables of another program.",
    "database-not-found": "The database file, or its directory, does not exist.",
    "database-not-writable": "The database file cannot be opened or written.",
    "database-too-new": "A newer version of Equipoise created the database.",
    "disk-full": "The disk is full.",
    "evacuation-pointless": "The move empties a host that is not powered off now.",
    "event-invalid": "An event cannot be decoded after encoding, so it is not recorded.",
    "event-missing": "An event of the journal is missing.",
    "event-unexpected": "An event of the journal cannot follow the events before it.",
    "event-unreadable": "A line of the journal is not an event of this version.",
    "intent-conflict": "A more urgent proposal uses the same VM or host.",
    "job-too-large": "A job requests more hosts than the platform has.",
    "journal-conflict": "Another process has appended to the journal.",
    "journal-failed": "The journal could not be written, so the loop has stopped.",
    "journal-name-invalid": "The name of a journal has a character that is not allowed.",
    "journal-not-found": "The database holds no journal of this name.",
    "plan-cancelled": "The plan was cancelled before the step started.",
    "plan-not-resumable": "The gate no longer accepts the plan after a restart.",
    "plan-running": "Another plan is still being executed.",
    "prerequisite-dropped": "The intent needs another intent that was dropped.",
    "prerequisite-failed": "The step needs another step that did not succeed.",
    "proposal-incomplete": "The proposal is all-or-nothing, and one of its intents was dropped.",
    "step-blocked": "The step cannot start, and no running action can change that.",
    "world-changed": "The world has changed since it was observed.",
    "bad-plugin": "An entry point does not provide the methods of its group.",
    "too-many-changes": "The demand of a scenario changes too often for a run.",
    "trace-unreadable": "A trace cannot be read or has the wrong format.",
    "empty-trace": "A trace has no rows.",
    "unknown-column": "A trace has no column with this name, or several.",
    "not-a-number": "A cell of a trace or of a saved run is not a finite number.",
    "negative-demand": "A demand in a trace is below 0.",
    "demand-too-large": "A demand in a trace is above the limit.",
    "time-not-ascending": "The times of a trace do not increase.",
    "trace-gap": "Two times of a trace are too far apart.",
    "rolling-unsupported": "A rolling upgrade cannot execute this kind of change.",
    "cancelled": "The control loop cancelled the action.",
    "stale-epoch": "The action belongs to an earlier leader epoch.",
    "role-start-failed": "The applications of a role did not start.",
    "role-stop-failed": "The applications of a role did not stop.",
    "power-failed": "A host did not change its power state.",
    "boot-failed": "A VM did not start.",
    "migration-failed": "A migration lost its connection.",
    "injected-failure": "The campaign or scenario injects this failure.",
    "random-failure": "The failure was drawn from the seed.",
    "controller-unreachable": "The management controller or the host does not answer.",
    "controller-denied": "The user or the password is wrong, or the user lacks a right.",
    "controller-certificate": "The certificate of the management controller is not trusted.",
    "controller-unsupported": "The protocol or the controller cannot execute the command.",
    "controller-error": "The management controller answers with an error or with nonsense.",
    "power-timeout": "The host accepted the command and did not change its power in time.",
    "playbook-failed": "A step of the playbook failed, and the host answers.",
    "host-unreachable": "The host did not answer Ansible.",
    "outcome-unknown": "The run of Ansible ended before the result was known.",
    "no-playbook": "No playbook is named for the task.",
    "not-a-playbook": "A file is not a playbook for the hosts of the batch.",
    "api-unreachable": "The Kubernetes API does not answer.",
    "api-certificate": "The certificate of the Kubernetes API is not trusted.",
    "api-unauthorized": "The Kubernetes API does not accept the credentials.",
    "api-forbidden": "The user of the Kubernetes API lacks a right.",
    "api-not-found": "The Kubernetes API has no such path.",
    "api-error": "The Kubernetes API answers with an error or with nonsense.",
    # Campaigns.
    "scheduler-crashed": "The scheduler under test raised an error.",
    "scheduler-protocol": "The scheduler broke the protocol: the message names the event.",
    "scheduler-timeout": "The scheduler under test exceeded its time limit.",
    "scheduler-ended": "The scheduler ended or closed its connection before it answered.",
    "simulation-ended": "The simulation closed its connection before it said that it ends.",
    "address-not-available": "The address to listen at is taken or is not one of this machine.",
    "scheduler-deadlock": "Jobs wait, and the scheduler leaves nothing that can happen.",
    "record-ended": "The recorded exchange has no further reply, or differs from the run.",
    "scheduler-missing": "The scheduler under test is not installed on this machine.",
    "worker-not-started": "The process of a scheduler under test does not start.",
    "worker-died": "The process of a scheduler under test ended without an answer.",
    "worker-closed": "The process of a scheduler under test was closed before the question.",
    "worker-answer-invalid": "The process of a scheduler under test sent an unreadable answer.",
    "worker-question-invalid": "The process of a scheduler under test cannot read a question.",
    "over-filtering": "The scheduler rejects a correct plan.",
    "under-filtering": "The scheduler accepts or makes a wrong plan.",
    "already-violated": "The constraint is violated before the plan starts.",
    "ambiguous-value": "The scheduler interprets a value of the trial differently.",
    "empty-choice": "All weights of a choice are 0.",
    "empty-range": "The minimum of a range is above its maximum.",
    "impossible-trials": "No trial of the constraint meets the options.",
    "judged-elsewhere": "The objection is independent of the constraint of the trial.",
    "not-promised": "The scheduler makes no promise about the violated rule.",
    "unsupported-argument": "The scheduler cannot express an argument of the constraint.",
    "unsupported-cluster": "The scheduler cannot express the cluster of the trial.",
    "unsupported-constraint": "The scheduler has no equivalent of the constraint.",
    "unsupported-mode": "The scheduler does not support the mode of the constraint.",
    "unsupported-network": "The scheduler cannot express the network of the trial.",
    "unsupported-plan": "The scheduler cannot express the plan of the trial.",
    "unsupported-trial": "The scheduler cannot express the trial.",
    "unsupported-experiment": "The scheduler lacks what the experiment needs.",
    "findings-mismatch": "The file has findings of another scheduler or another version.",
    # Schedulers of Kubernetes and their clock.
    "clock-unsupported": "The system lacks what the clock of a run needs.",
    "go-build-failed": "Go could not build a program.",
    "go-missing": "Go is not installed.",
    "go-unknown": "The virtual clock does not know this version of Go.",
    # Command line and reports.
    "already-exists": "The file, folder or journal holds another result.",
    "file-not-readable": "A file cannot be read.",
    "secret-in-file": "A file has a password or token where only its source may be named.",
    "secret-missing": "The environment variable or file of a password is missing or empty.",
    "file-not-writable": "A file cannot be written.",
    "journal-mismatch": "The journal belongs to another campaign or engine.",
    "not-a-folder": "A path names a file where a folder is needed.",
    "not-a-run": "The folder is not one that 'equipoise simulate --out' wrote.",
    "table-invalid": "A table of a saved run lacks a column or has a row of another length.",
    "usage-error": "The command line has an unknown option, or lacks an argument.",
    "option-conflict": "Two options cannot be used together, or one needs another.",
}
"""Every stable code of a problem, reason, refusal or fault, with its meaning.

The code is part of the value and of ``--json``; the sentence beside it may change.
"""


class EquipoiseError(Exception):
    """The base class of all exceptions of this package."""

    code: str = "internal-error"
    """A key of ``CODES``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputProblem:
    """One error in an input: the place, the error, and the fix."""

    key: str
    """The path of the value, e.g. ``vms[3].memory_mib``; empty for the document as a whole."""
    what: str
    """The error, with the value found."""
    cure: str = ""
    """The fix: what to write instead, or what to do."""
    line: int | None = None
    """The line, counted from 1; unknown for values that are not from a file."""
    column: int | None = None
    """The column, counted from 1; unknown for most formats."""
    excerpt: str = ""
    """The text of the line, with a caret under the place."""
    code: str = "invalid-value"
    """A key of ``CODES``."""

    def __str__(self) -> str:
        column = f", column {self.column}" if self.column is not None else ""
        place = f"line {self.line}{column}: " if self.line is not None else ""
        key = f"{self.key}: " if self.key else ""
        cure = f" ({self.cure})" if self.cure else ""
        excerpt = "".join(f"\n    {line}" for line in self.excerpt.splitlines())
        return f"{place}{key}{self.what}{cure}{excerpt}"


class InvalidInput(EquipoiseError):
    """A file, an option or an argument is wrong. The exception carries all its problems."""

    def __init__(self, source: str, problems: Iterable[InputProblem]) -> None:
        self.source = source
        self.problems = tuple(problems)
        assert self.problems, "an InvalidInput needs at least one problem"
        self.code = self.problems[0].code
        super().__init__(str(self))

    @classmethod
    def of(
        cls, source: str, what: str, *, code: str, cure: str = "", key: str = ""
    ) -> InvalidInput:
        """Return the exception with one problem, which is of the document as a whole by default."""
        return cls(source, [InputProblem(key=key, what=what, cure=cure, code=code)])

    def __str__(self) -> str:
        return "\n".join(f"{self.source}: {problem}" for problem in self.problems)


class MissingExtra(EquipoiseError):
    """An optional part of Equipoise is not installed."""

    code = "missing-extra"

    def __init__(self, extra: str, needed_for: str) -> None:
        self.extra = extra
        super().__init__(f"{needed_for} needs an optional part: pip install 'equipoise[{extra}]'")


class InternalError(EquipoiseError):
    """Equipoise detected an error of its own, and saved the input that shows it."""


class Interrupted(EquipoiseError):
    """The user ended the command early. The results so far are already printed."""

    code = "interrupted"


class WorldError(EquipoiseError):
    """An outside system refused or failed: a database, a host, a network."""

    code = "world-failed"

    def __init__(self, message: str, *, code: str | None = None) -> None:
        if code is not None:
            self.code = code
        super().__init__(message)


class Conflict(WorldError):
    """The world has changed since it was read: observe again, never force the change."""

    code = "world-changed"
