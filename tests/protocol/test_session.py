"""Questions of one client: open, answered, withdrawn, late."""

from metaforge.protocol.session import REMEMBERED_WITHDRAWN_COUNT, Arrival, Session


def test_an_answer_goes_to_whoever_waits_for_it_and_only_once():
    session = Session("abc")
    question = session.ask("elicitation/create", {"message": "?"}, "waiter")

    assert question["id"] == "elicit-abc-1"
    assert session.receive({"id": question["id"], "result": {}}) == (Arrival.ANSWER, "waiter")
    assert session.receive({"id": question["id"], "result": {}}) == (Arrival.STRAY, None)


def test_a_withdrawn_question_tells_the_client_and_makes_its_answer_late():
    session = Session("abc")
    question = session.ask("elicitation/create", {}, "waiter")

    notice = session.withdraw(question["id"], "window ended")

    assert notice is not None
    assert notice["method"] == "notifications/cancelled"
    assert notice["params"] == {"requestId": question["id"], "reason": "window ended"}
    assert session.receive({"id": question["id"], "result": {}}) == (Arrival.LATE, None)
    assert session.withdraw(question["id"], "again") is None


def test_an_answered_question_cannot_be_withdrawn():
    session = Session("abc")
    question = session.ask("elicitation/create", {}, "waiter")
    session.receive({"id": question["id"], "result": {}})

    assert session.withdraw(question["id"], "too late") is None


def test_only_the_last_withdrawn_questions_are_remembered():
    session = Session("abc")
    for _ in range(REMEMBERED_WITHDRAWN_COUNT + 1):
        session.withdraw(session.ask("elicitation/create", {}, "w")["id"], "x")

    assert session.receive({"id": "elicit-abc-1", "result": {}})[0] is Arrival.STRAY
    assert session.receive({"id": "elicit-abc-2", "result": {}})[0] is Arrival.LATE


def test_an_answer_without_an_id_is_a_stray():
    assert Session("abc").receive({"id": None, "error": {}}) == (Arrival.STRAY, None)
