from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from metaforge.approvals.faults import NotClaimable, NotDecidable, UnknownApproval
from metaforge.approvals.holders import Holder
from metaforge.approvals.ledger import SqlLedger
from metaforge.approvals.model import Approver, Entry, Kind, Request, Route, State, later
from metaforge.approvals.port import EndState
from metaforge.approvals.showing import shown_arguments
from metaforge.approvals.wire import entry_from, entry_json
from metaforge.core.clock import utc_now
from metaforge.core.errors import InvalidArguments
from metaforge.store.database import Database
from metaforge.tools.context import Caller, ServiceClaims, Trust

from .conftest import MakeRequest

ANN = Approver("ann", True, "dashboard")
BEN = Approver("ben", False, "cli")
ROBOT = Approver("local:dashboard", False, "agent", "ann", "helper-bot")
LATER = "2999-01-01T00:00:00.000Z"


@pytest.fixture
def entry(ledger: SqlLedger, make_request: MakeRequest) -> Entry:
    return ledger.open(make_request())


@pytest.fixture
def inline(ledger: SqlLedger, make_request: MakeRequest) -> Entry:
    return ledger.open(make_request(route=Route.ELICITATION))


def test_an_entry_is_there_for_every_process_before_anyone_is_asked(
    ledger: SqlLedger, make_request: MakeRequest, database_url: str, tmp_path: Path
) -> None:
    request = make_request()
    opened = ledger.open(request)
    other = Database(database_url, tmp_path)
    try:
        assert SqlLedger(other, Holder(tmp_path)).get(request.approval_id) == opened
    finally:
        other.close()
    assert (opened.request, opened.state, opened.on_dashboard) == (request, State.AWAITING, True)


def test_opening_the_same_entry_again_gives_the_one_that_is_there(ledger: SqlLedger, entry: Entry) -> None:
    assert ledger.open(entry.request) == entry
    assert ledger.verify().entries == 1


def test_an_approval_id_of_another_call_is_refused(ledger: SqlLedger, entry: Entry) -> None:
    with pytest.raises(InvalidArguments, match="taken by another call"):
        ledger.open(replace(entry.request, call_id="another"))


def test_a_digest_that_is_not_that_of_the_arguments_is_refused(ledger: SqlLedger, make_request: MakeRequest) -> None:
    with pytest.raises(InvalidArguments, match="nothing was held"):
        ledger.open(replace(make_request(), arguments={"name": "other"}))


def test_approved_claimed_and_completed(ledger: SqlLedger, entry: Entry) -> None:
    approved = ledger.decide(entry.approval_id, "approve", ANN, "fine")
    assert approved.state is State.APPROVED
    assert approved.decision is not None
    assert (approved.decision.approver, approved.decision.reason, approved.edited) == (ANN, "fine", False)
    assert ledger.claim(entry.approval_id, approved.digest).state is State.RUNNING
    assert ledger.end(entry.approval_id, State.COMPLETED).state is State.COMPLETED
    assert ledger.get(entry.approval_id).decision == approved.decision
    assert ledger.verify().sound


def test_a_rejected_call_cannot_run(ledger: SqlLedger, entry: Entry) -> None:
    rejected = ledger.decide(entry.approval_id, "reject", ANN, "too heavy")
    assert (rejected.state, rejected.decision and rejected.decision.reason) == (State.REJECTED, "too heavy")
    with pytest.raises(NotClaimable, match="is not approved") as refused:
        ledger.claim(entry.approval_id, entry.digest)
    assert refused.value.data["code"] == "not_approved"


def test_changed_arguments_are_what_is_approved_and_nothing_else(ledger: SqlLedger, entry: Entry) -> None:
    approved = ledger.decide(entry.approval_id, "approve", ANN, arguments={"name": "Drone", "mass_kg": 1.2})
    assert approved.edited
    assert approved.arguments == {"name": "Drone", "mass_kg": 1.2}
    assert approved.digest != entry.digest
    with pytest.raises(NotClaimable, match="allows another call"):
        ledger.claim(entry.approval_id, entry.digest)
    assert ledger.claim(entry.approval_id, approved.digest).state is State.RUNNING


def test_arguments_sent_back_unchanged_are_no_change(ledger: SqlLedger, entry: Entry) -> None:
    approved = ledger.decide(entry.approval_id, "approve", ANN, arguments={"mass_kg": 1.50, "name": "Drone"})
    assert not approved.edited
    assert approved.digest == entry.digest


def test_changed_arguments_without_a_canonical_form_decide_nothing(ledger: SqlLedger, entry: Entry) -> None:
    with pytest.raises(InvalidArguments, match="2\\^53"):
        ledger.decide(entry.approval_id, "approve", ANN, arguments={"count": 2**60})
    assert ledger.get(entry.approval_id).state is State.AWAITING


def test_an_approval_is_used_once(ledger: SqlLedger, entry: Entry) -> None:
    ledger.decide(entry.approval_id, "approve", ANN)
    ledger.claim(entry.approval_id, entry.digest)
    with pytest.raises(NotClaimable, match="has run or is running") as refused:
        ledger.claim(entry.approval_id, entry.digest)
    assert refused.value.data["code"] == "already_claimed"
    ledger.end(entry.approval_id, State.FAILED, "ccx ended with status 201")
    with pytest.raises(NotClaimable):
        ledger.claim(entry.approval_id, entry.digest)


def test_a_second_decision_names_the_first(ledger: SqlLedger, entry: Entry) -> None:
    ledger.decide(entry.approval_id, "reject", ANN)
    with pytest.raises(NotDecidable, match="already rejected by ann") as refused:
        ledger.decide(entry.approval_id, "approve", BEN)
    assert (refused.value.status, refused.value.data["code"]) == (409, "already_decided")


@pytest.mark.parametrize("state", [State.TIMED_OUT, State.CANCELED])
def test_a_call_that_stopped_waiting_cannot_be_approved(ledger: SqlLedger, entry: Entry, state: EndState) -> None:
    ended = ledger.end(entry.approval_id, state, "the client went away")
    assert (ended.state, ended.ended_reason) == (state, "the client went away")
    with pytest.raises(NotDecidable, match=f"ended as {state.value}: the client went away") as refused:
        ledger.decide(entry.approval_id, "approve", ANN)
    assert (refused.value.status, refused.value.data["code"]) == (409, "ended")
    assert ledger.get(entry.approval_id).state is state


def test_a_decision_that_came_first_stands_against_the_end_of_the_window(ledger: SqlLedger, entry: Entry) -> None:
    ledger.decide(entry.approval_id, "approve", ANN)
    assert ledger.end(entry.approval_id, State.TIMED_OUT, "late").state is State.APPROVED


def test_an_approved_call_that_nobody_waits_for_is_canceled_and_never_runs(ledger: SqlLedger, entry: Entry) -> None:
    ledger.decide(entry.approval_id, "approve", ANN)
    assert ledger.end(entry.approval_id, State.CANCELED, "the client went away").state is State.CANCELED
    with pytest.raises(NotClaimable):
        ledger.claim(entry.approval_id, entry.digest)


def test_nothing_completes_that_never_ran(ledger: SqlLedger, entry: Entry) -> None:
    assert ledger.end(entry.approval_id, State.COMPLETED).state is State.AWAITING
    ledger.decide(entry.approval_id, "approve", ANN)
    assert ledger.end(entry.approval_id, State.COMPLETED).state is State.APPROVED


def test_after_its_window_an_entry_takes_no_decision(
    database: Database, holder: Holder, make_request: MakeRequest
) -> None:
    now = utc_now()
    ledger = SqlLedger(database, holder, clock=lambda: now)
    entry = ledger.open(make_request(created_at=now, window_seconds=100))
    now = later(entry.request.expires_at, -0.001)
    assert ledger.get(entry.approval_id).state is State.AWAITING
    now = entry.request.expires_at
    with pytest.raises(NotDecidable, match=r"window of 100 s is over") as refused:
        ledger.decide(entry.approval_id, "approve", ANN)
    assert refused.value.data["code"] == "window_closed"


def test_an_inline_question_is_answered_in_the_client_until_it_opens_on_the_dashboard(
    ledger: SqlLedger, inline: Entry
) -> None:
    assert not inline.on_dashboard
    with pytest.raises(NotDecidable, match=r"on the screen in claude-code 2\.1\.332") as refused:
        ledger.decide(inline.approval_id, "approve", BEN)
    assert (refused.value.status, refused.value.data["code"]) == (409, "answer_in_client")
    assert ledger.show_on_dashboard(inline.approval_id).on_dashboard
    assert ledger.decide(inline.approval_id, "approve", BEN).state is State.APPROVED


def test_an_inline_question_takes_the_clients_answer(ledger: SqlLedger, inline: Entry) -> None:
    answered = ledger.decide(inline.approval_id, "reject", Approver("bob", True, "elicitation"), inline=True)
    assert answered.state is State.REJECTED


def test_an_entry_that_ended_does_not_open_on_the_dashboard(ledger: SqlLedger, inline: Entry) -> None:
    ledger.end(inline.approval_id, State.TIMED_OUT)
    assert not ledger.show_on_dashboard(inline.approval_id).on_dashboard


def test_a_decision_that_is_a_persons_is_refused_to_an_agent(
    database: Database, holder: Holder, ledger: SqlLedger, make_request: MakeRequest
) -> None:
    entry = ledger.open(make_request(kind=Kind.HUMAN_AUTHORITY))
    with pytest.raises(NotDecidable, match="an agent cannot take it") as refused:
        ledger.decide(entry.approval_id, "approve", ROBOT)
    assert (refused.value.status, refused.value.data["code"]) == (403, "human_authority_required")
    allowing = SqlLedger(database, holder, agents_may_decide=True)
    assert allowing.decide(entry.approval_id, "approve", ROBOT).state is State.APPROVED


def test_an_agent_cannot_approve_its_own_call(ledger: SqlLedger, make_request: MakeRequest) -> None:
    entry = ledger.open(make_request(caller=Caller("helper-bot", Trust.REMOTE)))
    with pytest.raises(NotDecidable, match="its own call") as refused:
        ledger.decide(entry.approval_id, "approve", ROBOT)
    assert refused.value.status == 403


@pytest.mark.parametrize("caller", ["anonymous", "local", "api-key"])
def test_an_agent_approves_no_call_that_may_be_its_own_and_may_reject_it(
    ledger: SqlLedger, make_request: MakeRequest, caller: str
) -> None:
    entry = ledger.open(make_request(caller=Caller(caller, Trust.UNTRUSTED)))
    with pytest.raises(NotDecidable, match="nobody can tell whose this one is"):
        ledger.decide(entry.approval_id, "approve", ROBOT)
    assert ledger.decide(entry.approval_id, "reject", ROBOT, "no").state is State.REJECTED


def test_an_unknown_id_is_told(ledger: SqlLedger) -> None:
    for ask in (
        lambda: ledger.get("run_nothing"),
        lambda: ledger.decide("run_nothing", "approve", ANN),
        lambda: ledger.claim("run_nothing", ""),
        lambda: ledger.end("run_nothing", State.CANCELED),
        lambda: ledger.show_on_dashboard("run\x00nothing"),
    ):
        with pytest.raises(UnknownApproval, match="There is no approval run"):
            ask()


def test_a_decision_of_another_kind_is_refused(ledger: SqlLedger, entry: Entry) -> None:
    with pytest.raises(InvalidArguments, match="approve or reject, not 'maybe'"):
        ledger.decide(entry.approval_id, "maybe", ANN)  # type: ignore[arg-type]


def test_lists_are_newest_first_by_status_and_project_and_go_on_where_they_stopped(
    ledger: SqlLedger, make_request: MakeRequest
) -> None:
    made = [ledger.open(make_request(project_id=f"p{number % 2}")).approval_id for number in range(6)]
    ledger.decide(made[0], "approve", ANN)
    ledger.end(made[1], State.CANCELED)

    def ids(**asked: object) -> list[int]:
        return [made.index(each.approval_id) for each in ledger.entries(**asked)]  # type: ignore[arg-type]

    assert ids() == [5, 4, 3, 2]
    assert ids(status="decided") == [1, 0]
    assert ids(status="all") == [5, 4, 3, 2, 1, 0]
    assert ids(status="all", project_id="p1") == [5, 3, 1]
    assert ids(status="all", limit=2) == [5, 4]
    assert ids(status="all", limit=3, before=made[4]) == [3, 2, 1]
    assert ids(status="pending", before="run_nothing") == []


def test_secrets_are_whole_while_an_entry_is_open_and_gone_when_it_ended(
    ledger: SqlLedger, make_request: MakeRequest, database: Database
) -> None:
    arguments = {"name": "x", "api_key": "s3cret", "url": "https://bob:hunter2@host/"}
    entry = ledger.open(make_request(arguments=arguments))
    edited = {"name": "y", "api_key": "[redacted]", "url": "https://bob:[redacted]@host/"}
    approved = ledger.decide(entry.approval_id, "approve", ANN, arguments=edited)
    assert approved.arguments == arguments | {"name": "y"}
    ledger.claim(entry.approval_id, approved.digest)
    ledger.end(entry.approval_id, State.COMPLETED)
    with database.transaction(write=False) as transaction:
        everything = str(transaction.rows("select * from approvals")) + str(
            transaction.rows("select * from approval_events")
        )
    assert "[redacted]" in everything
    assert "s3cret" not in everything
    assert "hunter2" not in everything
    assert "s3cret" not in "".join(ledger.export())
    assert ledger.get(entry.approval_id).arguments == edited
    assert ledger.verify().sound


def test_long_arguments_are_whole_for_their_call_and_short_for_everybody_else(
    ledger: SqlLedger, make_request: MakeRequest, database: Database
) -> None:
    arguments = {"name": "x", "content": "y" * 3_000_000, "api_key": "s3cret"}
    request = make_request(arguments=arguments)
    ledger.open(request)
    assert ledger.get(request.approval_id).request == request
    (listed,) = ledger.entries()
    assert listed.request.arguments == shown_arguments(arguments)
    approved = ledger.decide(request.approval_id, "approve", ANN, arguments={**shown_arguments(arguments), "name": "z"})
    assert approved.arguments == arguments | {"name": "z"}
    assert ledger.get(request.approval_id).arguments == arguments | {"name": "z"}
    claimed = ledger.claim(request.approval_id, approved.digest)
    assert claimed.arguments == arguments | {"name": "z"}
    ledger.end(request.approval_id, State.COMPLETED)
    with database.transaction(write=False) as transaction:
        kept = transaction.rows("select * from approvals") + transaction.rows("select * from approval_events")
    assert len(str(kept)) < 50_000
    assert ledger.verify().sound


def test_heads_are_the_ids_of_entries_newest_first_with_their_last_events(
    ledger: SqlLedger, make_request: MakeRequest
) -> None:
    one, two, three = (ledger.open(make_request(project_id=project)) for project in ("p", "q", "p"))
    decided = ledger.decide(two.approval_id, "reject", ANN, "no")
    assert list(ledger.heads().items()) == [(three.approval_id, three.seq), (one.approval_id, one.seq)]
    assert ledger.heads("decided") == {two.approval_id: decided.seq}
    assert ledger.heads("all", "q") == {two.approval_id: decided.seq}
    assert list(ledger.heads("all", limit=2)) == [three.approval_id, two.approval_id]


def test_entries_keep_every_character_and_number(ledger: SqlLedger, make_request: MakeRequest) -> None:
    arguments = {"text": "Ä\u2028\u0000\n💡'\"%s?", "numbers": [0.1, -1e-9, 9007199254740991, 1e300], "none": None}
    caller = Caller("service:1", Trust.SERVICE, "w\nx", service=ServiceClaims("run-1", "design"))
    request = make_request(
        arguments=arguments, caller=caller, change={"now": {"a": 1}, "after": {"a": 2}, "pictures": ["ab" * 32]}
    )
    ledger.open(request)
    found = ledger.get(request.approval_id)
    assert found.request == request
    assert entry_from(entry_json(found)) == found
    assert ledger.verify().sound


def test_events_follow_each_other_whatever_they_are_about(ledger: SqlLedger, make_request: MakeRequest) -> None:
    made = [ledger.open(make_request(route=Route.ELICITATION)) for _ in range(3)]
    for each in reversed(made):
        ledger.show_on_dashboard(each.approval_id)
        ledger.decide(each.approval_id, "approve", ANN)
    import json

    lines = [json.loads(line) for line in ledger.export()]
    assert [line["seq"] for line in lines] == list(range(1, 10))
    assert all(after["prev_hash"] == before["hash"] for before, after in pairwise(lines))


def test_a_commit_is_told_before_the_method_returns_and_a_refusal_without_change_is_not(
    database: Database, holder: Holder, make_request: MakeRequest
) -> None:
    told: list[str] = []
    ledger = SqlLedger(database, holder, nudge=lambda: told.append("now"))
    request: Request = make_request()
    ledger.open(request)
    ledger.decide(request.approval_id, "approve", ANN)
    ledger.claim(request.approval_id, request.digest)
    ledger.end(request.approval_id, State.COMPLETED)
    assert len(told) == 4
    ledger.end(request.approval_id, State.FAILED)
    assert len(told) == 4
