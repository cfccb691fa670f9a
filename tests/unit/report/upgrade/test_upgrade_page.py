"""The page of a campaign: everything decided is on it, and nothing in it can break it."""

from __future__ import annotations

from equipoise.model.event import Event
from equipoise.model.quantity import HostId, ResourceId, TenantId, VmId
from equipoise.model.upgrade import event as past
from equipoise.model.upgrade.request import SetId
from equipoise.model.upgrade.work import BatchId, TaskBatch, TaskKind, UpgradeTask, VertexId
from equipoise.report.upgrade.compare import compare_method
from equipoise.report.upgrade.history import campaign_history
from equipoise.report.upgrade.page import ROWS_MAX, upgrade_page
from equipoise.report.upgrade.penalties import campaign_penalties
from upgrade_campaigns import campaign, moving


def campaign_events() -> list[Event]:
    task = UpgradeTask(resource=ResourceId("h3"), vertex=VertexId("h3"), host=HostId("h3"))
    batch = TaskBatch(id=BatchId("1"), stages=((task,),))
    waits = past.Elimination(rule=1, reason="VMs <b>run</b> on it", vertices=(VertexId("h1"),))
    return [
        past.CampaignStarted(at_ms=0, campaign=campaign({"a": [1, 2], "b": [1]})),
        past.IterationStarted(at_ms=0, iteration=1),
        past.BatchDecided(at_ms=0, iteration=1, z=1, batch=(VertexId("h3"),), eliminated=(waits,)),
        past.BatchStarted(at_ms=0, batch=batch),
        past.TaskFailed(at_ms=40_000, batch=BatchId("1"), resource=ResourceId("h3"),
                        kind=TaskKind.APPLY, reason="disk & co"),
        past.BatchEnded(at_ms=40_000, batch=BatchId("1")),
        past.VmBatchDecided(at_ms=40_000, iteration=1, v=4, wanted=2, size=1, reason="no room"),
        *moving(1, 40_000, {"a1": 3}),
        past.ScalingAnswered(at_ms=61_000, tenant=TenantId("a"), added={VmId("a9"): HostId("h4")}),
        past.SetEnded(at_ms=61_000, set=SetId("s"), outcome=past.SetOutcome.UNDONE, reason="why"),
        past.IterationEnded(at_ms=61_000, iteration=1, paused="no tenant scales in"),
        past.CampaignEnded(at_ms=61_000, status=past.CampaignStatus.PAUSED),
    ]  # fmt: skip


def test_iterations_reasons_tenants_and_failures_are_on_the_page() -> None:
    page = upgrade_page(campaign_history(campaign_events()))
    for words in (
        "Changed: h3.",
        "VMs &lt;b&gt;run&lt;/b&gt; on it",
        "1: VMs and hosts in use",
        "apply of h3 failed: disk &amp; co",
        "1 of 2 VMs moved (V is 4): no room.",
        "a1 to h3",
        "The upgrade pauses: no tenant scales in.",
        "set s undone: why",
        "2 to 3",
        "small &lt;&amp;&gt;",
    ):
        assert words in page, words
    assert "<b>run" not in page
    assert "http" not in page.replace("http-equiv", "")


def test_a_campaign_without_batches_has_a_page() -> None:
    empty = [past.CampaignStarted(at_ms=0, campaign=campaign({}))]
    page = upgrade_page(campaign_history(empty))
    assert "The campaign has no batch." in page
    assert "The cluster has no tenants." in page


def test_very_many_iterations_share_lanes() -> None:
    history = campaign_events()[:1]
    for number in range(1, ROWS_MAX + 5):
        at_ms = number * 100_000
        history.append(past.IterationStarted(at_ms=at_ms, iteration=number))
        history += moving(number, at_ms, {"a1": 3})
    page = upgrade_page(campaign_history(history))
    assert f"iteration {ROWS_MAX + 4}" not in page
    assert f'id="iteration-{ROWS_MAX + 4}"' in page


def test_others_are_compared_where_there_are_any() -> None:
    course = campaign_history(campaign_events())
    line = compare_method("rolling by 2", [campaign_penalties(course)] * 2)
    assert "rolling by 2" in upgrade_page(course, [line])
    assert "Compared with" not in upgrade_page(course)
    assert line.runs == 2
    assert line.duration_s == 61.0
    assert line.document.to_json_object()["violations"] == {"min": 0.0, "max": 1.0}
