"""Who is let in: by key, by the name the server is called, and by the page that asks."""

import hmac
from types import SimpleNamespace

import pytest

from runtime.errors import DecdecError
from runtime.server import Access
from runtime.server import access as access_module
from runtime.server.access import MIN_KEY
from tests.runtime.server.conftest import ask

KEY = "sk-local-7f3a-of-tests"


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
        ("[::1", False), ("", False), (None, False), ("[::1]x", False), ("127.0.0.1:", True),
        ("[::ffff:192.168.0.7]", False), ("evil.example@127.0.0.1", False), ("127.0.0.1@evil.example", False),
        ("evil.example#@127.0.0.1", False), ("evil.example/127.0.0.1", False), ("127.0.0.1.nip.io", False),
        ("evil.example\\@127.0.0.1", False), ("localhost.", False), ("127.0.0.1.", False), ("0", False),
        ("2130706433", False), ("localhost:80:80", False), (" localhost", False), ("localhost,evil", False),
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
        ([], "file://", False), ([], "chrome-extension://abcdefgh", False), (["http://a"], "HTTP://A", False),
        (["http://a"], "http://a/", False), (["http://a"], "http://a, http://b", False),
        ([], "http://127.0.0.1:8484", False),
    ],
)  # fmt: skip
def test_web_pages_are_let_in_by_origin(origins, origin, known):
    access = Access(origins=frozenset(origins))
    assert decide(access, origin=origin) == (None if known else (403, "origin_refused"))


@pytest.mark.parametrize("site", ["cross-site", "same-site", "same-origin", "none", None])
@pytest.mark.parametrize("origin", [None, "http://ours.example"])
def test_a_page_that_names_no_origin_is_told_by_its_browser(site, origin):
    access = Access(origins=frozenset({"http://ours.example"}))
    known = origin or site not in ("cross-site", "same-site")
    given = {"sec-fetch-site": site, "origin": origin}
    assert decide(access, method="GET", **given) == (None if known else (403, "origin_refused"))


@pytest.mark.parametrize("name", ["host", "origin", "content-type", "content-length", "transfer-encoding"])
def test_a_header_that_two_readers_could_understand_differently_is_refused(name):
    raw = [(b"host", b"localhost"), *[(name.encode(), b"localhost")] * 2]
    refusal = Access().stranger({"type": "http", "method": "GET", "path": "/health", "headers": raw})
    assert (refusal.status, refusal.code, refusal.headers) == (400, "ambiguous", {"connection": "close"})


@pytest.mark.parametrize(
    ("authorization", "known"),
    [
        (f"Bearer {KEY}", True), (f"bearer {KEY}", True), (f"Bearer  {KEY} ", True),
        (f"Bearer {KEY[:-1]}x", False), (f"Bearer {KEY}x", False), (f"Basic {KEY}", False), (KEY, False),
        ("Bearer", False), ("Bearer é", False), ("", False), (None, False), (f"BEARER {KEY}", True),
        (f"Bearer{KEY}", False), (f"Bearer {KEY}\xff", False), (f"Bearer {KEY[:-1]}", False),
        ("Bearer \x00", False),
        (f"Bearer {KEY}, Bearer {KEY}", False), (f"Bearer {KEY.upper()}", False),
    ],
)  # fmt: skip
def test_the_key_opens_all_but_the_probe(authorization, known):
    access = Access(KEY)
    assert decide(access, authorization=authorization) == (None if known else (401, "invalid_api_key"))
    assert decide(access, "GET", "/health", authorization=authorization) is None


def answers_to(access, *authorizations):
    raw = [(b"authorization", given.encode("latin-1")) for given in authorizations]
    refusal = access.keyless({"type": "http", "method": "GET", "path": "/v1/models", "headers": raw})
    return refusal and (refusal.status, refusal.body, refusal.headers)


def test_every_wrong_key_gets_one_and_the_same_answer():
    access = Access(KEY)
    good, bad = f"Bearer {KEY}", "Bearer wrong"
    wrong = [(), (bad,), ("",), (f"Basic {KEY}",), (good, bad), (bad, good), (good, good), ("Bearer \xff",)]
    first, *others = [answers_to(access, *given) for given in wrong]
    assert first[0] == 401
    assert others == [first] * len(others)
    assert answers_to(access, good) is None


@pytest.mark.parametrize("given", [f"Bearer {KEY}", "Bearer wrong", "Bearer \xff", "Basic x", ""])
def test_keys_are_compared_as_bytes_by_the_function_made_for_it(monkeypatch, given):
    compared = []

    def compare(one, other):
        compared.append((one, other))
        return False

    monkeypatch.setattr(hmac, "compare_digest", compare)
    assert answers_to(Access(KEY), given)[0] == 401
    key = given.partition(" ")[2]
    assert compared == [(key.encode(), KEY.encode())]


async def test_a_wrong_key_is_told_so_after_a_while_and_a_right_one_at_once(start, monkeypatch):
    waited = []

    async def sleep(seconds):
        waited.append(seconds)

    monkeypatch.setattr(access_module, "asyncio", SimpleNamespace(sleep=sleep))
    server = await start(access=Access(KEY), wrong_key_s=7.0)
    async with server.http() as client:
        for key, status in (("wrong", 401), (KEY, 200)):
            answer = await client.get("/v1/models", headers={"Authorization": f"Bearer {key}"})
            assert answer.status_code == status
    assert waited == [7.0]


def test_a_key_is_not_shown():
    assert KEY not in repr(Access(KEY))


@pytest.mark.parametrize("key", ["a b", "é", "a\nb", "a" * (MIN_KEY - 1)])
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
