"""Grading by a loopback endpoint: prompts, scores, retries, going on, and a key that stays hidden."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from runtime.errors import DecdecError
from runtime.progress import JobContext
from runtime.tasks import judge_client
from runtime.tasks.judge import judge, score_of

KEY = "sk-very-secret"


class Server(ThreadingHTTPServer):
    """Answers every request by `reply(body)`: a string is a judgment, (status, headers, text) a failure."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.reply, self.seen, self.lock = lambda body: "Rating: [[5]]", [], threading.Lock()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/v1"


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            self.server.seen.append((self.path, self.headers.get("Authorization"), body))
            answer = self.server.reply(body)
        status, headers, text = (200, {}, None) if isinstance(answer, str) else answer
        if text is None:
            text = json.dumps({"choices": [{"message": {"role": "assistant", "content": answer}}]})
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    server = Server()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(judge_client, "FIRST_WAIT_S", 0.001)
    monkeypatch.setattr(judge_client, "LONGEST_WAIT_S", 0.01)
    monkeypatch.setenv("JUDGE_KEY", KEY)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


def lines(path, *documents):
    path.write_text("".join(json.dumps(document) + "\n" for document in documents))


def answer(question, *turns, model="m-awq3"):
    choices = [{"index": 0, "turns": list(turns)}]
    return {"question_id": question, "answer_id": "x", "model_id": model, "choices": choices, "tstamp": 1.0}


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    lines(
        folder / "question.jsonl",
        {"question_id": 1, "category": "writing", "turns": ["Write {answer}.", "Again."]},
        {"question_id": 2, "category": "math", "turns": ["1+1?", "2+2?"]},
        {"question_id": 3, "category": "writing", "turns": ["Unanswered", "too"]},
    )
    names = ["single-v1", "single-math-v1", "single-v1-multi-turn", "single-math-v1-multi-turn"]
    templates = [
        "Q {question} A {answer}",
        "R {ref_answer_1} Q {question} A {answer}",
        "{question_1}|{answer_1}|{question_2}|{answer_2}",
        "{ref_answer_1}|{ref_answer_2}|{question_1}|{answer_1}|{question_2}|{answer_2}|{other.__class__}{none}",
    ]
    lines(
        folder / "judge_prompts.jsonl",
        *({"name": n, "type": "single", "system_prompt": f"You are {n}.", "prompt_template": t}
          for n, t in zip(names, templates, strict=True)),
    )  # fmt: skip
    lines(folder / "reference_gpt-4.jsonl", answer(2, "two", "four", model="gpt-4"))
    lines(tmp_path / "answers.jsonl", answer(1, "a {question}", "b"), answer(2, "2", "4"))
    return folder


def grade(tmp_path, server, **args):
    given = {
        "answers": str(tmp_path / "answers.jsonl"),
        "data": str(tmp_path / "data"),
        "endpoint": server.url,
        "judge_model": "judge-1",
        "api_key_env": "JUDGE_KEY",
        "out": str(tmp_path / "judged.jsonl"),
        **args,
    }
    return judge(given, JobContext.silent())


def prompts(server):
    return {body["messages"][1]["content"] for _, _, body in server.seen}


def test_prompts_hold_questions_answers_and_references(data, tmp_path, server):
    grade(tmp_path, server)
    assert prompts(server) == {
        "Q Write {answer}. A a {question}",
        "Write {answer}.|a {question}|Again.|b",
        "R two Q 1+1? A 2",
        "two|four|1+1?|2|2+2?|4|{other.__class__}{none}",
    }
    path, authorization, body = server.seen[0]
    assert (path, authorization) == ("/v1/chat/completions", f"Bearer {KEY}")
    assert (body["model"], body["temperature"]) == ("judge-1", 0)
    assert body["messages"][0]["content"].startswith("You are single-")


def test_scores_are_means_by_turn_and_category(data, tmp_path, server):
    scores = {"Q Wr": "[[8]]", "Writ": "[[6.5]]", "R tw": "Rating: [[3]]", "two|": "no rating"}
    server.reply = lambda body: scores[body["messages"][1]["content"][:4]]
    result = grade(tmp_path, server)
    assert result["turns"] == [5.5, 6.5]
    assert result["score"] == pytest.approx((8 + 6.5 + 3) / 3)
    assert result["categories"] == [
        {"category": "writing", "first": 8.0, "second": 6.5},
        {"category": "math", "first": 3.0, "second": None},
    ]
    assert (result["judged"], result["without_score"]) == (4, 1)
    kept = [json.loads(line) for line in (tmp_path / "judged.jsonl").read_text().splitlines()]
    assert {(k["question_id"], k["turn"], k["score"]) for k in kept} == {
        (1, 1, 8),
        (1, 2, 6.5),
        (2, 1, 3),
        (2, 2, -1),
    }
    assert {tuple(k["judge"]) for k in kept if k["question_id"] == 2} == {
        ("judge-1", "single-math-v1"),
        ("judge-1", "single-math-v1-multi-turn"),
    }
    server.seen.clear()
    assert grade(tmp_path, server) == result
    assert not server.seen


@pytest.mark.parametrize(
    ("text", "score"),
    [("Rating: [[7]]", 7), ("[[8.5]] or [[2]]", 8.5), ("I give [6].", 6), ("ten", -1), ("[[x]] [4]", 4)],
)
def test_the_rating_is_found_as_fastchat_finds_it(text, score):
    assert score_of(text) == score


def test_passing_failures_are_tried_again(data, tmp_path, server):
    failures = [(429, {"Retry-After": "0"}, "busy"), (503, {}, "down"), (200, {}, '{"choices": []}')]
    server.reply = lambda body: failures.pop() if failures else "[[4]]"
    assert grade(tmp_path, server)["score"] == 4
    assert len(server.seen) == 7


def test_a_refusal_ends_at_once_and_what_was_judged_stays(data, tmp_path, server):
    server.reply = lambda body: "[[4]]" if "Again" in str(body) else (401, {}, f"wrong key {KEY}")
    with pytest.raises(DecdecError, match="status 401: wrong key") as caught:
        grade(tmp_path, server)
    assert KEY not in caught.value.sentence
    assert len(server.seen) <= 4


def test_a_server_that_stays_away_is_given_up(data, tmp_path, server):
    server.reply = lambda body: (500, {}, "no")
    with pytest.raises(DecdecError, match="did not judge: status 500"):
        grade(tmp_path, server)
    server.server_close()
    with pytest.raises(DecdecError, match="did not judge"):
        grade(tmp_path, server)


def test_a_redirect_is_not_followed(data, tmp_path, server):
    server.reply = lambda body: (302, {"Location": server.url}, "elsewhere")
    with pytest.raises(DecdecError, match="status 302"):
        grade(tmp_path, server)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({"endpoint": "file:///etc/passwd"}, "no http"),
        ({"endpoint": "https://"}, "no http"),
        ({"api_key_env": "NO_SUCH_VARIABLE"}, "NO_SUCH_VARIABLE is not set"),
    ],
)
def test_impossible_endpoints_are_refused(data, tmp_path, server, args, words):
    with pytest.raises(DecdecError, match=words):
        grade(tmp_path, server, **args)


def test_missing_references_and_prompts_are_refused(data, tmp_path, server):
    (data / "reference_gpt-4.jsonl").unlink()
    with pytest.raises(DecdecError, match="no reference answer to question 2"):
        grade(tmp_path, server)
    lines(tmp_path / "answers.jsonl", answer(1, "a", "b"))
    lines(data / "judge_prompts.jsonl")
    with pytest.raises(DecdecError, match="no judge prompt single-v1"):
        grade(tmp_path, server)
    lines(tmp_path / "answers.jsonl", answer(1, "a", "b"), answer(3, "a", "b", model="other"))
    with pytest.raises(DecdecError, match="several models"):
        grade(tmp_path, server)


def test_without_a_key_none_is_sent_and_the_key_is_nowhere_on_disk(data, tmp_path, server):
    grade(tmp_path, server, api_key_env=None, out=None)
    assert {authorization for _, authorization, _ in server.seen} == {None}
    assert (tmp_path / "answers.judge-1.judgments.jsonl").exists()
    grade(tmp_path, server)
    assert not any(KEY.encode() in path.read_bytes() for path in tmp_path.rglob("*.jsonl"))
