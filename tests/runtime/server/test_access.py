"""Who is let in: by key, by the name the server is called, and by the page that asks."""

import pytest

from runtime.errors import DecdecError
from runtime.server import Access
from tests.runtime.server.conftest import ask

KEY = "sk-local-7f3a"


def decide(access, method="POST", path="/v1/chat/completions", host="127.0.0.1:8484", **headers):
    given = {"host": host, **headers}
    raw = [(name.encode(), value.encode("latin-1")) for name, value in given.items() if value is not None]
    scope = {"type": "http", "method": method, "path": path, "headers": raw}
    refusal = access.stranger(scope) or access.keyless(scope)
    return refusal and (refusal.status, refusal.code)


@pytest.mark.parametrize(
    ("host", "known"),
    [
        ("127.0.0.1:8484", True), ("127.0.0.1", True), ("localhost:1", True), ("LOCALHOST", True),
        ("[::1]:8484", True), ("127.1.2.3:80", True), ("mybox:8484", True),
        ("evil.example", False), ("localhost.evil.example:8484", False), ("127.0.0.1.evil.example", False),
        ("evil.example@127.0.0.2.nip.io", False), ("192.168.0.7:8484", False), ("0.0.0.0:8484", False),
        ("[::1", False), ("", False), (None, False),
    ],
)  # fmt: skip
def test_on_loopback_only_names_of_this_machine_are_answered(host, known):
    local = Access(hosts=frozenset({"mybox"}))
    assert decide(local, host=host) == (None if known else (403, "host_refused"))
    assert decide(Access(hosts=None), host=host) is None


@pytest.mark.parametrize(
    ("origins", "origin", "known"),
    [
        ([], "http://localhost:3000", False), ([], "null", False), ([], "", False), ([], None, True),
        (["http://localhost:3000"], "http://localhost:3000", True),
        (["http://localhost:3000"], "http://localhost:3001", False),
        (["http://localhost:3000"], "https://localhost:3000", False),
        (["*"], "https://anything.example", True), (["null"], "null", True),
    ],
)  # fmt: skip
def test_web_pages_are_let_in_by_origin(origins, origin, known):
    access = Access(origins=frozenset(origins))
    assert decide(access, origin=origin) == (None if known else (403, "origin_refused"))


@pytest.mark.parametrize(
    ("authorization", "known"),
    [
        (f"Bearer {KEY}", True), (f"bearer {KEY}", True), (f"Bearer  {KEY} ", True),
        ("Bearer sk-local-7f3b", False), (f"Bearer {KEY}x", False), (f"Basic {KEY}", False), (KEY, False),
        ("Bearer", False), ("Bearer é", False), ("", False), (None, False),
    ],
)  # fmt: skip
def test_the_key_opens_all_but_the_probe(authorization, known):
    access = Access(KEY)
    assert decide(access, authorization=authorization) == (None if known else (401, "invalid_api_key"))
    assert decide(access, "GET", "/health", authorization=authorization) is None


def test_a_key_is_not_shown():
    assert KEY not in repr(Access(KEY))


@pytest.mark.parametrize("key", ["a b", "é", "a\nb"])
def test_a_key_that_no_header_can_carry_is_refused(key):
    with pytest.raises(DecdecError, match="cannot be used"):
        Access(key)


@pytest.mark.parametrize("origin", ["localhost:3000", "http://x/path", "ftp", "", "https://x?y"])
def test_what_is_no_origin_is_refused(origin):
    with pytest.raises(DecdecError, match="no origin"):
        Access(origins=frozenset({origin}))


async def test_refusals_over_http_are_openais_shape_and_the_key_is_nowhere(start, home):
    server = await start(access=Access(KEY))
    async with server.http() as client:
        for headers, status, code in (
            ({"Authorization": "Bearer wrong"}, 401, "invalid_api_key"),
            ({"Authorization": f"Bearer {KEY}", "Host": "evil.example"}, 403, "host_refused"),
            ({"Authorization": f"Bearer {KEY}", "Origin": "http://evil.example"}, 403, "origin_refused"),
        ):
            answer = await client.post("/v1/chat/completions", json=ask("hello"), headers=headers)
            assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
            assert answer.json()["error"]["type"] == "invalid_request_error"
            assert KEY not in answer.text
    async with server.openai(KEY) as client:
        assert (await client.chat.completions.create(**ask("hello"))).choices
    logs = [path for path in home.rglob("*") if path.is_file() and "log" in path.name]
    assert not any(KEY.encode() in path.read_bytes() for path in logs)


async def test_an_allowed_page_gets_its_headers_and_no_other_does(start):
    ours = "http://localhost:3000"
    server = await start(access=Access(KEY, frozenset({ours})))
    asks = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization,x-y"}
    async with server.http() as client:
        first = await client.options("/v1/chat/completions", headers={"Origin": ours, **asks})
        assert (first.status_code, first.headers["access-control-allow-origin"]) == (200, ours)
        assert "authorization" in first.headers["access-control-allow-headers"]
        refused = await client.get("/v1/models", headers={"Origin": ours})
        assert (refused.status_code, refused.headers["access-control-allow-origin"]) == (401, ours)
        other = await client.options(
            "/v1/chat/completions", headers={"Origin": "http://evil.example", **asks}
        )
        assert other.status_code == 403
        assert "access-control-allow-origin" not in other.headers
