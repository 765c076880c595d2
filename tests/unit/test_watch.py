"""Alerts: what befalls most of a host's pages is told once, and its end too."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from salticus.crawl.alerts import KINDS, WINDOW, Watch
from salticus.types import Alert, Observation, Status

HOST = "a.example"


def seen(status: str, at: int = 0, fault: str | None = None) -> Observation:
    return Observation(1, 1, at, "policy", 1.0, status, fault=fault)


def test_a_layout_change_is_raised_once_and_told_to_be_over() -> None:
    watch = Watch()
    told = [watch.see(HOST, seen("lost", at, "no price")) for at in range(6)]
    assert [len(some) for some in told] == [0, 0, 1, 0, 0, 0]
    assert told[2] == (Alert(HOST, "layout", 2, "no price"),)
    later = [alert for at in range(6, 30) for alert in watch.see(HOST, seen("ok", at))]
    assert [(alert.kind, alert.over) for alert in later] == [("layout", True)]


def test_one_certificate_is_enough_and_one_lost_page_is_not() -> None:
    watch = Watch()
    assert len(watch.see(HOST, seen("certificate"))) == 1
    assert watch.see("b.example", seen("lost")) == ()


def test_a_page_that_fails_among_many_that_do_not_is_its_own_affair() -> None:
    watch = Watch()
    for _ in range(20):
        told = [watch.see(HOST, seen(status)) for status in ("lost", "ok", "ok")]
        assert not any(told)


def test_a_third_of_the_pages_that_cannot_be_read_is_an_alert() -> None:
    watch = Watch()
    statuses = ["broken", "ok", "ok"] * 16
    told = [alert for status in statuses for alert in watch.see(HOST, seen(status))]
    assert [(alert.kind, alert.over) for alert in told] == [("broken", False)]


def test_hosts_are_judged_apart() -> None:
    watch = Watch()
    told = [watch.see(f"{number}.example", seen("blocked")) for number in range(50)]
    assert not any(told)


def test_an_alert_of_an_earlier_run_is_told_to_be_over() -> None:
    watch = Watch()
    watch.restore([(HOST, "blocked")])
    assert watch.see(HOST, seen("blocked")) == (), "it is known already"
    told = [alert for _ in range(30) for alert in watch.see(HOST, seen("ok"))]
    assert [(alert.kind, alert.over) for alert in told] == [("blocked", True)]


@given(st.lists(st.sampled_from([status.label for status in Status]), max_size=80))
def test_alerts_begin_and_end_in_turn(statuses: list[str]) -> None:
    watch = Watch()
    lasting: set[str] = set()
    for at, status in enumerate(statuses):
        for alert in watch.see(HOST, seen(status, at)):
            assert (alert.kind in lasting) == alert.over
            (lasting.discard if alert.over else lasting.add)(alert.kind)
    for at in range(WINDOW + 1):
        for alert in watch.see(HOST, seen("ok", at)):
            lasting.discard(alert.kind)
    assert not lasting
    assert not watch._past, "a host that is well costs nothing"


def test_every_kind_is_of_a_status() -> None:
    assert KINDS.keys() <= {status.label for status in Status}
