"""What must hold once everything is over: every accepted question answered exactly once, seen whole, and
nothing counted twice."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from engine.events import Transcript, fold
from tests.cluster.cluster import Cluster
from tests.cluster.load import Question
from tests.e2e.kit.transcripts import check_numbers
from tests.fakes.answers import answer_text

CUT_OFF: Final = {"lost", "released"}
"""How the ledger calls a request whose worker died or had to stop."""


def check_all(cluster: Cluster, questions: Sequence[Question]) -> None:
    check_rows(cluster, questions)
    for question in questions:
        check_seen(question)
    check_ledger(cluster, questions)
    check_sums(cluster)


def check_rows(cluster: Cluster, questions: Sequence[Question]) -> None:
    """Each question is stored once, has one turn, and that has one answer, which is whole."""
    turns = cluster.query("SELECT id, question_id, status, attempt FROM chats_turn")
    assert {(str(pk), str(asked)) for pk, asked, *_ in turns} == {
        (question.turn_id, question.message_id) for question in questions
    }
    assert Counter(status for *_, status, _ in turns) == {"completed": len(questions)}
    messages = cluster.query("SELECT turn_id, role, content FROM chats_chatmessage")
    by_turn = Counter((str(turn_id), role) for turn_id, role, _ in messages)
    assert len(messages) == 2 * len(questions)
    assert set(by_turn.values()) == {1}
    answers = {str(turn_id): text for turn_id, role, text in messages if role == "assistant"}
    for question in questions:
        assert answers[question.turn_id] == answer_text(question.tokens), question


def check_seen(question: Question) -> None:
    """The viewer saw numbers without a hole, and in the end the whole answer, once."""
    check_numbers(question.events)
    seen: Transcript = fold(question.events)
    assert [m["content"] for m in seen.messages] == [answer_text(question.tokens)], question
    assert seen.text == {}
    assert question.events[-1].event == "turn.completed"


def check_ledger(cluster: Cluster, questions: Sequence[Question]) -> None:
    """One call that went well for each turn; others only for attempts that were cut off."""
    rows = cluster.query(
        "SELECT u.turn_id, array_agg(u.outcome), max(t.attempt) FROM providers_usagerecord u"
        " LEFT JOIN chats_turn t ON t.id = u.turn_id WHERE u.kind = 'chat' GROUP BY 1"
    )
    assert {str(turn_id) for turn_id, *_ in rows} == {q.turn_id for q in questions}
    for turn_id, outcomes, attempts in rows:
        assert outcomes.count("ok") == 1, (turn_id, outcomes)
        assert set(outcomes) - {"ok"} <= CUT_OFF, (turn_id, outcomes)
        assert len(outcomes) <= attempts + outcomes.count("released"), (turn_id, outcomes, attempts)


def check_sums(cluster: Cluster) -> None:
    """Budgets, assistants and turns have counted what the ledger has, and nothing is reserved."""
    ledger = _sums(
        cluster,
        "SELECT organization_id, sum(prompt_tokens + completion_tokens) FROM providers_usagerecord"
        " WHERE kind = 'chat' GROUP BY 1",
    )
    budgets = _sums(
        cluster,
        "SELECT b.organization_id, sum(c.used) FROM providers_budgetcounter c"
        " JOIN providers_budget b ON b.id = c.budget_id GROUP BY 1",
    )
    assistants = _sums(
        cluster,
        "SELECT organization_id, sum(total_token_usage) FROM assistants_assistant GROUP BY 1"
        " HAVING sum(total_token_usage) > 0",
    )
    assert budgets == assistants == ledger
    assert cluster.query("SELECT sum(reserved) FROM providers_budgetcounter") == [(0,)]
    assert cluster.query("SELECT count(*) FROM providers_budgetreservation") == [(0,)]


def _sums(cluster: Cluster, sql: str) -> dict[Any, int]:
    return {owner: int(total) for owner, total in cluster.query(sql)}


def count_calls(cluster: Cluster) -> dict[str, int]:
    """Return how many calls ended how."""
    sql = "SELECT outcome, count(*) FROM providers_usagerecord WHERE kind = 'chat' GROUP BY 1"
    return dict(cluster.query(sql))


def database_bytes(cluster: Cluster) -> int:
    """Return the size of all tables with their indexes."""
    return int(cluster.query("SELECT pg_database_size('amber')")[0][0])


def stream_bytes(cluster: Cluster) -> int:
    """Return what one answer's events take in Redis, on average; they expire after ten minutes."""
    with cluster.redis.connect() as client:
        sizes = [
            client.memory_usage(key, samples=0) or 0 for key in client.scan_iter("amber:turn:*")
        ]
    return round(sum(sizes) / len(sizes)) if sizes else 0
