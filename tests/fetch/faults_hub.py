"""D01 to D14: redirects and the token, what the hub refuses, connections."""
import email.utils
import socket
import time

from fault_kit import API, BIG, CDN, FILE, JSON, N, PATIENT, REPO, RESOLVE, SMALL, free_port, half, hub
from hub_faults import answer, body, cut, error, header, instead, raw, redirect
from hub_server import git_blob, sha256
from pull_case import PASSWORD, SLOW, TOKEN, check, test


# ---- redirects and the token ----------------------------------------------------------------------------


@test
def d01(new):
    """a redirect to the storage: its facts from the hub, no token for the other host"""
    c = hub(new)
    path = c.good(c.pull(FILE), BIG)
    check(path == c.cache / f"models--owner--name/snapshots/{c.repo.commit}/model.gguf", f"path {path}")
    check(path.resolve().name == sha256(BIG), "the blob's name is the hub's digest, not the storage's ETag")
    check((c.cache / "models--owner--name/refs/main").read_text() == c.repo.commit, "refs/main")
    check({r.headers.get("authorization") for r in c.hub.seen(at="hub")} == {f"Bearer {TOKEN}"}, "the hub's token")
    check({r.headers.get("authorization") for r in c.hub.seen(at="cdn")} == {None}, "the storage gets none")
    path = c.good(c.pull(JSON), SMALL)
    check(path.resolve().name == git_blob(SMALL), "the blob's name is git's")


@test
def d02(new):
    """redirects to another host, port or scheme: without token and cookies"""
    for to in ("cdn", "other", "tls"):
        c = hub(new, "good" if to == "tls" else None)
        c.env.update(HF_ENDPOINT=c.url["hub"])
        c.hub.on("GET", RESOLVE, redirect(lambda r: c.url[to] + "/elsewhere"), times=1, at="hub")
        c.hub.on("GET", "/elsewhere", lambda r, a: a.__dict__.update(status=200, headers=[], data=BIG))
        c.good(c.pull(FILE), BIG)
        request, = c.hub.seen("/elsewhere", at=to)
        check("authorization" not in request.headers, f"{to} gets no token")

    # away and back, and an address with a user part: still nobody else's token
    c = hub(new)
    port = c.url["cdn"].rpartition(":")[2]
    c.hub.on("GET", RESOLVE, redirect(f"http://user:{PASSWORD}@localhost:{port}/back"), times=1)
    c.hub.on("GET", "/back", redirect(c.url["hub"] + "/again"))
    c.hub.on("GET", "/again", redirect(c.url["cdn"] + "/elsewhere"))
    c.hub.on("GET", "/elsewhere", lambda r, a: a.__dict__.update(status=200, headers=[], data=BIG))
    c.good(c.pull(FILE), BIG)

    # a URL of another origin never sees it
    c = hub(new)
    c.good(c.pull(c.url["cdn"] + "/plain/model.gguf"), BIG)


@test
def d03(new):
    """a redirect from https to http, or to what is no web address: refused"""
    c = hub(new, "good")
    c.hub.on("GET", RESOLVE, redirect(c.url["cdn"] + "/plain/model.gguf"))
    c.bad(c.pull(FILE), 5)
    check(not c.hub.seen(at="cdn"), "nothing was asked for over http")
    for to in ("file:///etc/passwd", "ftp://127.0.0.1/x", "gopher://127.0.0.1/x", "javascript:alert(1)", "data:,x",
               "//", "http://", "http:///x", "http://127.0.0.1:99999/x"):
        c = hub(new)
        c.hub.on("GET", RESOLVE, redirect(to))
        c.bad(c.pull(FILE), 5)
    c = hub(new)
    c.hub.on("GET", API, redirect("file:///etc/passwd"))
    c.bad(c.pull(FILE), 5)


@test
def d04(new):
    """redirects in a circle, more than 10, or to nowhere"""
    for loop in (RESOLVE, API):
        c = hub(new)
        c.hub.on("GET", loop, redirect(lambda r: r.target))
        c.bad(c.pull(FILE), 5, "redirect")
        check(len(c.hub.seen(loop)) == 11, f"{len(c.hub.seen(loop))} requests")
    for n, status in ((9, 0), (10, 5)):  # and one to the storage
        c = hub(new)
        for i in range(n):
            c.hub.on("GET", RESOLVE if i == 0 else f"/hop/{i - 1}", redirect(f"/hop/{i}"), times=1)
        c.hub.on("GET", f"/hop/{n - 1}", redirect(lambda r: f"{c.url['cdn']}/cdn/{sha256(BIG)}?{c.hub.SIGNATURE}"))
        c.good(c.pull(FILE), BIG) if status == 0 else c.bad(c.pull(FILE), status, "redirect")
    for empty in (None, ""):
        c = hub(new)
        c.hub.on("GET", RESOLVE, redirect(empty))
        c.bad(c.pull(FILE), 5)


@test
def d05(new):
    """a repository that was renamed: relative redirects, the token stays"""
    for name, data in (("model.gguf", BIG), ("config.json", SMALL)):
        c = hub(new)
        c.hub.on("*", "/api/models/old/name*", redirect(lambda r: r.target.replace("old/name", REPO), 307))
        c.hub.on("*", "/old/name/resolve/*", redirect(lambda r: r.target.replace("old/name", REPO), 307))
        c.good(c.pull(f"old/name:{name}"), data)
        check(c.hub.seen("/api/models/owner/name/*"), "the redirect was followed")
        check(all("authorization" in r.headers for r in c.hub.seen(at="hub")), "with the token")


@test
def d06(new):
    """no token, signed address or password in errors, progress, parts or arguments"""
    for fault in (answer(500), answer(403, b"no"), cut(1000), body(bytes(N)), header("Content-Length", "x"),
                  redirect(lambda r: "ftp://" + r.target)):
        c = hub(new)
        c.hub.on("GET", CDN, fault)
        run = c.pull("-v", FILE)  # the rest is checked after every run
        check(run.status in (5, 6), f"{run}")
    c = hub(new)
    (c.dir.parent / f"{c.dir.name}.token").write_text(TOKEN + "\n")
    c.env.update(HF_TOKEN="", HF_TOKEN_PATH=str(c.dir.parent / f"{c.dir.name}.token"))
    half(c)
    check(all("authorization" in r.headers for r in c.hub.seen(at="hub")), "the token of the file was used")
    # user part, query and fragment of a URL, in messages of all kinds
    for fault in (answer(404), answer(500), answer(401), answer(403), cut(10), redirect(lambda r: r.target)):
        c = hub(new)
        c.hub.on("GET", "/plain/*", fault)
        url = c.url["cdn"].replace("//", f"//me:{PASSWORD}@") + f"/plain/model.gguf?{c.hub.SIGNATURE}#{TOKEN}"
        c.bad(c.pull(url), (5, 6))


# ---- what the hub refuses -------------------------------------------------------------------------------


@test
def d07(new):
    """401: no retry"""
    for path in (API, RESOLVE):
        for code in ("RepoNotFound", ""):
            c = hub(new)
            c.env["HF_TOKEN"] = ""
            c.hub.on("GET", path, instead(error(401, code, "Invalid username or password.")))
            c.bad(c.pull(FILE), 5, "not found, or a token is needed: set HF_TOKEN")
            check(len(c.hub.seen(path)) == 1, f"{len(c.hub.seen(path))} requests")
            check(not [r for r in c.hub.seen() if "authorization" in r.headers], "an empty token is none")


@test
def d08(new):
    """403: no retry, and where to ask for access"""
    for path in (API, RESOLVE):
        for code in ("GatedRepo", ""):
            c = hub(new, gated="manual")
            c.hub.on("GET", path, instead(error(403, code, "Access is restricted")))
            c.bad(c.pull(FILE), 5, f"access must be granted at {c.url['hub']}/{REPO}")
            check(len(c.hub.seen(path)) == 1, f"{len(c.hub.seen(path))} requests")


@test
def d09(new):
    """404: repository, revision or file, which is told"""
    c = hub(new)
    for what, word in ((["owner/none"], "repository"), (["--revision", "v9", REPO], "revision"),
                       (["owner/name:none.gguf"], "file")):
        before = len(c.hub.seen())
        run = c.bad(c.pull(*what), 5, word)
        check(sum(w in run.err for w in ("no such repository", "no such revision", "no such file")) <= 1, f"{run}")
        check(len(c.hub.seen()) == before + 1, "one request")
    c.hub.on("GET", RESOLVE, instead(error(404, "EntryNotFound", "Entry not found")))
    c.bad(c.pull(FILE), 5, "model.gguf")
    check(len(c.hub.seen(RESOLVE)) == 1, "no retry")


@test
def d10(new):
    """429 that says when: waited for, once a file, within --max-wait"""
    date = lambda seconds: email.utils.formatdate(time.time() + seconds, usegmt=True)
    for path, act in ((API, answer(429, Retry_After="1")), (RESOLVE, answer(429, RateLimit='"resolvers";r=0;t=1')),
                      (CDN, lambda r, a: answer(429, Retry_After=date(1.9))(r, a))):
        c = hub(new)
        c.hub.on("GET", path, act, times=1)
        run = c.pull(FILE, "--max-wait", "5")
        c.good(run, BIG)
        check(run.seconds > 0.9, f"{path}: waited for {run.seconds} s only")
    c = hub(new)
    c.hub.on("GET", RESOLVE, answer(429, Retry_After="1"), times=2)
    c.bad(c.pull(FILE), 5)
    check(len(c.hub.seen(RESOLVE)) == 2, "one wait a file")
    for act, word in ((answer(429, Retry_After="3600"), "3600"), (answer(429, RateLimit='"api";r=0;t=299'), "299"),
                      (answer(429, Retry_After=date(9000)), " s")):
        c = hub(new)
        c.hub.on("GET", RESOLVE, act)
        run = c.bad(c.pull(FILE, "--max-wait", "5"), 5, word)
        check(len(c.hub.seen(RESOLVE)) == 1 and run.seconds < 3 * SLOW, f"{run}: {run.seconds} s")


@test
def d11(new):
    """429 that does not say when: no rapid retry"""
    for path in (API, RESOLVE, CDN):
        for more in ({}, {"Retry_After": "soon"}, {"Retry_After": "-1"}, {"RateLimit": "t=;r"}):
            c = hub(new)
            c.hub.on("GET", path, answer(429, **more))
            c.bad(c.pull(FILE), 5)
            check(len(c.hub.seen(path)) == 1, f"{len(c.hub.seen(path))} requests")


@test
def d12(new):
    """500, 502, 503, 504 and 408: five retries"""
    for path in (API, RESOLVE, CDN):
        for code in (500, 502, 503, 504, 408) if path == CDN else (503,):
            c = hub(new)
            c.hub.on("GET", path, answer(code, b"out of order"), times=5)
            c.good(c.pull(FILE), BIG)
            check(len(c.hub.seen(path)) >= 6, f"{len(c.hub.seen(path))} requests")
            c = hub(new)
            c.hub.on("GET", path, answer(code, b"out of order"))
            c.bad(c.pull(FILE), 5, str(code))
            check(len(c.hub.seen(path)) == 6, f"{code}: {len(c.hub.seen(path))} requests")
    c = hub(new)
    for code in (400, 410, 418, 451):
        c.hub.on("GET", CDN, answer(code), times=1)
        c.bad(c.pull(FILE), 5, str(code))


@test
def d13(new):
    """no lookup, no connection, no handshake, a reset: retried; a proxy's faults are named as its own"""
    closed = free_port()
    for endpoint in (f"http://127.0.0.1:{closed}", "http://no-such-host.invalid"):
        c = hub(new)
        c.env["HF_ENDPOINT"] = endpoint
        c.bad(c.pull(FILE), 5)
    c = hub(new)
    c.env["HF_ENDPOINT"] = endpoint
    began = time.monotonic()
    try:
        socket.getaddrinfo("no-such-host.invalid", 80)
    except OSError:
        pass
    at_once = time.monotonic() - began < 0.1  # which it is unless the resolver cannot be reached
    run = c.pull(FILE, env=PATIENT)
    c.bad(run, 5, "(6 attempts)")
    check(not at_once or (run.seconds < 5 * SLOW and run.err.count("\n") == 1), f"{run}: {run.seconds} s, {run.err}")
    c = hub(new)
    c.env["HF_ENDPOINT"] = c.url["hub"].replace("http:", "https:")  # a server that knows no TLS
    c.bad(c.pull(FILE), 5)
    check(c.hub.connections["hub"] == 6, f"{c.hub.connections} connections")
    c = hub(new)
    c.hub.on("GET", CDN, cut(100_000, reset=True), times=2)
    c.hub.on("GET", RESOLVE, raw(b""), times=1)
    c.good(c.pull(FILE), BIG)
    c = hub(new)
    c.hub.on("GET", API, raw(b""))
    c.bad(c.pull(FILE), 5)
    check(len(c.hub.seen(API)) == 6, f"{len(c.hub.seen(API))} requests")

    for name in ("http_proxy", "all_proxy"):
        c = hub(new)
        c.env[name] = f"http://user:{PASSWORD}@127.0.0.1:{closed}"
        c.bad(c.pull(FILE), 5, "proxy")
    c = hub(new)
    c.env["http_proxy"] = f"http://user:{PASSWORD}@127.0.0.1:{c.url['proxy'].rpartition(':')[2]}"
    c.good(c.pull(FILE), BIG)
    check(len(c.hub.seen(at="proxy")) >= 3 and not c.hub.seen(at="hub"), "through the proxy")
    check(all("proxy-authorization" in r.headers for r in c.hub.seen(at="proxy")), "which got its password")
    c = hub(new)
    c.env["http_proxy"], c.env["no_proxy"] = c.url["proxy"], "127.0.0.1,localhost"
    c.good(c.pull(FILE), BIG)
    check(not c.hub.seen(at="proxy"), "no_proxy")
    for code in (407, 502):
        c = hub(new, "good")
        c.env["https_proxy"] = c.url["proxy"]
        c.hub.on("CONNECT", "*", answer(code))
        c.bad(c.pull(FILE), 5, "proxy")


@test
def d14(new):
    """a certificate that is expired, another host's, or nobody's: refused at once"""
    for name in ("expired", "elsewhere", "good"):
        c = hub(new, name)
        if name == "good":
            del c.env["CURL_CA_BUNDLE"]
        c.bad(c.pull(FILE), 5, "certificate")
        check(c.hub.connections["tls"] == 1 and not c.hub.seen(), f"{c.hub.connections} connections")
    for variable in ("CURL_CA_BUNDLE", "SSL_CERT_FILE"):
        c = hub(new, "good")
        c.env[variable] = c.env.pop("CURL_CA_BUNDLE")
        c.good(c.pull(FILE), BIG)
    c = hub(new, "good")
    c.env["CURL_CA_BUNDLE"] = str(c.home / "none.pem")
    c.bad(c.pull(FILE), 5)
