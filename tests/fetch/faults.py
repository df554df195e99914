"""What may go wrong with a download: D01 to D37, each by its number, against the loopback hub.

faults.py [d07 ...]. A test is a few lines: a fault of the server, a run, what it must have come to. What must
be so after every run is in pull_case.py.
"""
import email.utils
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from hub_server import (answer, body, both, chunked, cut, error, git_blob, header, make_certificates, more_headers,  # noqa
                        no_range, raw, redirect, sha256, slow, stall)
from pull_case import PASSWORD, SECRETS, SLOW, TOKEN, check, gguf, main, test

N = 1 << 19  # bytes; a half is what a buffer holds, so that it lies in the part soon
H = N // 2
BIG = gguf(N)
SMALL = b'{"model_type": "gpt2"}\n'
FILES = {"model.gguf": BIG, "config.json": SMALL, "README.md": b"---\nlicense: mit\n---\n"}
REPO, FILE, JSON = "owner/name", "owner/name:model.gguf", "owner/name:config.json"
API, CDN, RESOLVE = "/api/models/*", "/cdn/*", "/*/resolve/*"
HTML = b"<!DOCTYPE html>\n<html><body>Please log in to this network</body></html>\n"


def hub(new, certificate=None, files=FILES, **more):
    """A case with the repository that most tests fetch from; with a certificate, over TLS."""
    c = new(certificate)
    c.repo = c.hub.repo(REPO, files, **more)
    if certificate:
        c.env.update(HF_ENDPOINT=c.url["tls"], CURL_CA_BUNDLE=str(c.authority))
    return c


def edit(change):
    """Changes the JSON of an answer."""
    def act(request, a):
        value = json.loads(a.body)
        change(value)
        a.body = json.dumps(value).encode()
    return act


def half(c, name=FILE, n=H, **more):
    """Leaves a part of n bytes: interrupted in the middle."""
    sent = c.hub.bytes_sent
    c.hub.on("GET", more.pop("path", CDN), stall(n), times=1)
    run = c.start("pull", name, **more)
    c.until(lambda: c.hub.bytes_sent >= sent + n, "half of the file")
    late = time.monotonic() + 0.3 * SLOW  # and until it has read it
    while time.monotonic() < late and not any(p.stat().st_size >= n for p in c.parts()):
        time.sleep(0.01)
    run.send(signal.SIGINT).wait()
    check(run.status == 130, f"{run}, should be interrupted")
    check(not c.blobs(), f"{run}: something under a final name")
    check(c.parts(), f"{run}: no part is left")
    return run


def ranges(c, path=CDN):
    return [(r.headers.get("range"), r.headers.get("if-range")) for r in c.hub.seen(path, "GET")]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


# ---- redirects and the token ----------------------------------------------------------------------------


@test
def d01(new):
    """a redirect to the storage: its facts from the hub, no token for the other host"""
    c = hub(new)
    path = c.good(c.pull(FILE), BIG)
    check(path == c.cache / f"models--owner--name/snapshots/{c.repo.commit}/model.gguf", f"path {path}")
    check(path.resolve().name == sha256(BIG), "the blob's name is the hub's digest, not the storage's ETag")
    check((c.cache / "models--owner--name/refs/main").read_text() == c.repo.commit, "refs/main")
    check(all(r.headers.get("authorization") == f"Bearer {TOKEN}" for r in c.hub.seen(at="hub")), "the hub gets the token")
    check(c.hub.seen(CDN) and not [r for r in c.hub.seen(at="cdn") if "authorization" in r.headers], "the storage does not")
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
            c.hub.on("GET", path, lambda r, a: a.__dict__.update(error(401, code, "Invalid username or password.").__dict__))
            c.bad(c.pull(FILE), 5, "not found, or a token is needed: set HF_TOKEN")
            check(len(c.hub.seen(path)) == 1, f"{len(c.hub.seen(path))} requests")
            check(not [r for r in c.hub.seen() if "authorization" in r.headers], "an empty token is none")


@test
def d08(new):
    """403: no retry, and where to ask for access"""
    for path in (API, RESOLVE):
        for code in ("GatedRepo", ""):
            c = hub(new, gated="manual")
            c.hub.on("GET", path, lambda r, a: a.__dict__.update(error(403, code, "Access is restricted").__dict__))
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
    c.hub.on("GET", RESOLVE, lambda r, a: a.__dict__.update(error(404, "EntryNotFound", "Entry not found").__dict__))
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


# ---- bodies ---------------------------------------------------------------------------------------------


@test
def d15(new):
    """a body that is too short: resumed where it ended"""
    c = hub(new)
    c.hub.on("GET", CDN, cut(100_000), times=1)
    c.hub.on("GET", CDN, cut(50_000), times=1)
    c.good(c.pull(FILE), BIG)
    check([r for r, _ in ranges(c)] == [None, "bytes=100000-", "bytes=150000-"], f"ranges {ranges(c)}")
    c = hub(new)
    c.hub.on("GET", CDN, cut(10_000))
    c.bad(c.pull(FILE), 5)
    check(len(c.hub.seen(CDN)) >= 6 and c.parts(), "the part stays")
    c.hub.faults.clear()
    c.hub.bytes_sent = 0
    c.good(c.pull(FILE), BIG)
    check(c.hub.bytes_sent <= N - 60_000, f"{c.hub.bytes_sent} bytes for what was missing")
    c = hub(new)
    c.hub.on("GET", "/api/resolve-cache/*", cut(5), times=2)
    c.hub.on("GET", API, cut(100), times=2)
    c.good(c.pull(JSON), SMALL)


@test
def d16(new):
    """a connection that stands still, or nearly: dropped, resumed"""
    for act in (stall(100_000), slow(200)):
        c = hub(new)
        c.hub.on("GET", CDN, act, times=1)
        run = c.pull(FILE)
        c.good(run, BIG)
        check(len(c.hub.seen(CDN)) == 2, f"{len(c.hub.seen(CDN))} requests")
    c = hub(new)
    c.hub.on("GET", API, stall(10), times=1)
    c.good(c.pull(FILE), BIG)


@test
def d17(new):
    """a body longer than declared: refused, and no part left"""
    longer = body(BIG + b"more")
    for act in (longer, both(longer, chunked), both(longer, header("Content-Length", str(N)))):
        c = hub(new)
        c.hub.on("GET", CDN, act)
        run = c.pull(FILE)
        if run.status == 0:  # what HTTP itself cuts off
            check(act is not longer, f"{run}")
            c.good(run, BIG)
        else:
            c.bad(run, 6)
            check(not c.parts(), f"{c.parts()} are left")
    c = hub(new)
    c.hub.on("GET", "/api/resolve-cache/*", both(body(SMALL + b" "), chunked))
    c.bad(c.pull(JSON), 6)
    c = hub(new)  # without end
    c.hub.on("GET", CDN, both(body(bytes(50_000_000)), chunked))
    c.bad(c.pull(FILE), 6)
    check(c.hub.bytes_sent < 20_000_000, f"{c.hub.bytes_sent} bytes were read")


@test
def d18(new):
    """no Content-Length: the hub's size and digest; without them a body that ends cleanly, with a warning"""
    c = hub(new)
    c.hub.on("GET", "*", chunked)
    c.good(c.pull(FILE), BIG)
    c.good(c.pull(JSON), SMALL)
    c = hub(new)
    url = c.url["cdn"] + "/plain/model.gguf"
    c.hub.on("GET", "/plain/*", both(chunked, cut(1000)), times=1)
    c.hub.on("GET", "/plain/*", both(chunked, no_range))
    c.good(c.pull(url), BIG, "warning")
    c = hub(new)
    c.hub.on("GET", "/plain/*", both(chunked, cut(1000)))
    c.bad(c.pull(c.url["cdn"] + "/plain/model.gguf"), 5)
    c = hub(new)
    c.hub.on("GET", "/plain/*", chunked)
    c.good(c.pull(c.url["cdn"] + "/plain/model.gguf", "--sha256", sha256(BIG)), BIG)
    # nothing tells where it ends
    c = hub(new)
    c.hub.on("GET", "/plain/*", raw(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + BIG[:1000]))
    run = c.pull(c.url["cdn"] + "/plain/model.gguf")
    c.bad(run, (5, 6))


@test
def d19(new):
    """a Content-Length that cannot be"""
    for value in ("-5", "x", "", "0x10", "1e3", "18446744073709551616", "99999999999999999999999999"):
        for path in (CDN, API):
            c = hub(new)
            c.hub.on("GET", path, header("Content-Length", value))
            c.bad(c.pull(FILE), (5, 6, 7))
    for pair in ((str(N), str(N + 1)), (f"{N}, {N + 1}", None)):
        c = hub(new)
        c.hub.on("GET", CDN, lambda r, a: a.headers.extend(("Content-Length", v) for v in pair if v))
        c.bad(c.pull(FILE), 5)
    c = hub(new)
    c.hub.on("GET", "/plain/*", header("Content-Length", str(1 << 60)))
    c.bad(c.pull(c.url["cdn"] + "/plain/model.gguf"), 7)
    c = hub(new)
    c.hub.on("GET", API, edit(lambda v: [s.update(size=1 << 60, lfs={**s["lfs"], "size": 1 << 60})
                                         for s in v["siblings"] if "lfs" in s]))
    c.bad(c.pull(FILE), 6)
    c.hub.on("GET", RESOLVE, header("X-Linked-Size", str(1 << 60)))
    c.hub.on("GET", CDN, header("Content-Length", str(1 << 60)))
    c.bad(c.pull(FILE), 7, "no room")


@test
def d20(new):
    """compressed transfers: not asked for, and refused in the middle of a file"""
    import gzip
    c = hub(new)
    c.good(c.pull(FILE), BIG)
    check(all(r.headers.get("accept-encoding", "identity") == "identity" for r in c.hub.seen()), "identity is asked for")
    c = hub(new)
    c.hub.on("GET", CDN, both(body(gzip.compress), header("Content-Encoding", "gzip")))
    c.bad(c.pull(FILE), (5, 6))
    c = hub(new)
    half(c)
    c.hub.on("GET", CDN, header("Content-Encoding", "gzip"))
    c.bad(c.pull(FILE), 5)


@test
def d21(new):
    """a part is resumed: the rest alone is fetched, if the file is still the same"""
    c = hub(new)
    half(c)
    c.hub.bytes_sent = 0
    c.good(c.pull(FILE), BIG)
    check(ranges(c)[-1][0] == f"bytes={H}-", f"ranges {ranges(c)}")
    check(c.hub.bytes_sent == H, f"{c.hub.bytes_sent} bytes for what was missing")
    c = hub(new)
    url = c.url["cdn"] + "/plain/model.gguf"
    half(c, url, path="/plain/*")
    c.good(c.pull(url), BIG)
    check(ranges(c, "/plain/*")[-1][0] == f"bytes={H}-", f"ranges {ranges(c, '/plain/*')}")
    check((ranges(c, "/plain/*")[-1][1] or "").startswith('"'), "with If-Range and the ETag")
    # without a strong ETag there is nothing to rely on, but a digest
    for etag in (None, 'W/"weak"'):
        c = hub(new)
        url = c.url["cdn"] + "/plain/model.gguf"
        c.hub.on("GET", "/plain/*", both(stall(H), header("ETag", etag)), times=1)
        run = c.start("pull", url)
        c.until(lambda: c.hub.bytes_sent >= H, "half of the file")
        run.send(signal.SIGINT).wait()
        c.hub.on("GET", "/plain/*", header("ETag", etag))
        c.good(c.pull(url), BIG)
        check(ranges(c, "/plain/*")[-1][0] is None, f"ranges {ranges(c, '/plain/*')}")


@test
def d22(new):
    """a range that is not the one asked for: begun again"""
    def partial(value, data=BIG[H:]):
        return lambda r, a: a.__dict__.update(status=206, data=None, body=data, headers=[("Content-Range", value)])

    for act in (partial(f"bytes {H - 1}-{N - 2}/{N}"), partial(f"bytes 0-{N - 1}/{N}", BIG),
                partial(f"bytes {H}-{N - 1}/{N + 1}"), partial(f"bytes {H}-{N - 10}/{N}", BIG[H:-9]),
                partial(f"bytes {H}-{N}/{N}"), partial(f"bytes {H + 9}-{N - 1}/{N}", BIG[H + 9:]),
                partial(f"bytes {H}-"), partial("nonsense"), partial(None),
                partial(f"bytes 18446744073709551615-{N - 1}/{N}")):
        c = hub(new)
        half(c)
        c.hub.on("GET", CDN, act, times=1)
        c.good(c.pull(FILE), BIG)
    c = hub(new)  # 206 though nothing of the kind was asked for
    c.hub.on("GET", CDN, partial(f"bytes {H}-{N - 1}/{N}"))
    c.bad(c.pull(FILE), (5, 6))


@test
def d23(new):
    """a server that ignores the range: the whole file from its beginning"""
    c = hub(new)
    half(c)
    c.hub.on("GET", CDN, no_range)
    c.good(c.pull(FILE), BIG)
    c = hub(new)
    c.hub.on("GET", CDN, cut(100_000), times=1)
    c.hub.on("GET", CDN, no_range)
    c.good(c.pull(FILE), BIG)


@test
def d24(new):
    """416: the part is whole, or worthless"""
    c = hub(new)
    half(c)
    c.hub.on("GET", CDN, answer(416, Content_Range=f"bytes */{N}"), times=1)
    c.good(c.pull(FILE), BIG)
    for right in (True, False):  # all is there, but the end was not seen
        c = hub(new)
        half(c, n=N - 1)
        for part in c.parts():
            with part.open("ab") as f:
                f.write(BIG[-1:] if right else bytes([BIG[-1] ^ 1]))
        c.hub.on("GET", CDN, lambda r, a: "range" in r.headers and answer(416, Content_Range=f"bytes */{N}")(r, a))
        c.good(c.pull(FILE), BIG)


@test
def d25(new):
    """a file that changes on the server: two versions are never joined, and one commit holds for a run"""
    other = gguf(N, 2)
    c = hub(new)  # the branch moves on between two runs
    half(c)
    c.hub.repo(REPO, {**FILES, "model.gguf": other})
    c.good(c.pull(REPO, "--include", "*.gguf"))
    c.good(c.pull(FILE), other) if not c.parts() else None
    # and during one: all files of the first commit
    c = hub(new)
    files = {**FILES, "a.json": b"1", "b.json": b"2"}
    old = c.hub.repo(REPO, files)
    c.hub.on("GET", RESOLVE, lambda r, a: c.hub.repo(REPO, {**files, "model.gguf": other, "b.json": b"3"}) and None, times=1)
    path = c.good(c.pull(REPO, "--include", "*"))
    check(path.name == old.commit or old.commit in path.parts, f"{path}")
    folder = c.cache / "models--owner--name/snapshots" / old.commit
    check((folder / "model.gguf").read_bytes() == BIG and (folder / "b.json").read_bytes() == b"2", "one commit")
    check(all(old.commit in r.path for r in c.hub.seen(RESOLVE)), "which all requests name")
    # another size, digest or commit than the listing's
    for name, value in (("X-Linked-Etag", f'"{sha256(other)}"'), ("X-Linked-Size", str(N + 1)), ("X-Repo-Commit", "0" * 40)):
        c = hub(new)
        c.hub.on("GET", CDN, cut(100_000), times=1)
        c.hub.on("GET", RESOLVE, header(name, value), after=1)
        run = c.pull(FILE)
        c.bad(run, (5, 6))
        check(not c.parts(), f"{run}: {c.parts()} left")
    # a URL: in the middle of a run, and between two
    c = hub(new)
    c.hub.repo("owner/next", {"next.gguf": other})
    url = c.url["cdn"] + "/plain/model.gguf"
    changed = both(body(other), header("ETag", '"next"'))
    c.hub.on("GET", "/plain/*", cut(100_000), times=1)
    c.hub.on("GET", "/plain/*", changed)
    c.good(c.pull(url), other)
    c = hub(new)
    c.hub.repo("owner/next", {"next.gguf": other})
    url = c.url["cdn"] + "/plain/model.gguf"
    half(c, url, path="/plain/*")
    c.hub.on("GET", "/plain/*", changed)
    c.good(c.pull(url), other)
    c = hub(new)  # a server that lies: the range of the new file, under the old condition
    c.hub.repo("owner/next", {"next.gguf": other})
    url = c.url["cdn"] + "/plain/model.gguf"
    half(c, url, path="/plain/*")
    c.hub.on("GET", "/plain/*", both(changed, lambda r, a: r.headers.pop("if-range", None)))
    c.good(c.pull(url), other)


@test
def d26(new):
    """a wrong digest: nothing stays; one fresh attempt"""
    wrong = body(lambda data: data[:-1] + bytes([data[-1] ^ 1]))
    for name, path, data in ((FILE, CDN, BIG), (JSON, "/api/resolve-cache/*", SMALL)):
        c = hub(new)
        c.hub.on("GET", path, wrong, times=1)
        c.good(c.pull(name), data)
        c = hub(new)
        c.hub.on("GET", path, wrong)
        c.bad(c.pull(name), 6)
        check(len(c.hub.seen(path)) == 2, f"{len(c.hub.seen(path))} attempts")
        check(not c.parts() and not c.blobs(), "nothing stays")
    c = hub(new)
    c.bad(c.pull(FILE, "--sha256", sha256(SMALL)), 6)
    c.bad(c.pull(c.url["cdn"] + "/plain/model.gguf", "--sha256", sha256(SMALL)), 6)
    check(not c.parts() and not c.blobs(), "nothing stays")
    c = hub(new)  # a part that was spoilt
    half(c)
    for part in c.parts():
        part.write_bytes(bytes(H))
        part.chmod(0o600)
    c.good(c.pull(FILE), BIG)


@test
def d27(new):
    """a page, or an LFS pointer, instead of the file"""
    page = lambda r, a: a.__dict__.update(status=200, data=None, body=HTML, headers=[("Content-Type", "text/html")])
    for name, path in ((FILE, CDN), (FILE, RESOLVE), (JSON, "/api/resolve-cache/*"), (FILE, API)):
        c = hub(new)
        c.hub.on("GET", path, page)
        c.bad(c.pull(name), 6)
        check(not c.parts(), "no part")
    c = hub(new)
    pointer = c.repo.pointer("model.gguf")
    for i, (data, kind) in enumerate(((HTML, "text/html; charset=utf-8"), (HTML, "application/octet-stream"),
                                      (b"\n <html>x</html>", "text/plain"), (pointer, "text/plain"),
                                      (pointer, "application/octet-stream"))):
        c.hub.on("GET", f"/plain/m{i}.gguf", answer(200, data, Content_Type=kind))
        c.bad(c.pull(f"{c.url['cdn']}/plain/m{i}.gguf"), 6)
    check(not c.parts(), "no part")
    for path in (CDN, RESOLVE):
        c.hub.on("GET", path, answer(200, pointer, Content_Type="text/plain"), times=2)
        c.bad(c.pull(FILE), 6)


@test
def d28(new):
    """an empty body with 200"""
    c = hub(new)
    c.hub.on("GET", CDN, body(b""), times=1)
    c.good(c.pull(FILE), BIG)
    for name, path in ((FILE, CDN), (JSON, "/api/resolve-cache/*"), (FILE, API)):
        c = hub(new)
        c.hub.on("GET", path, lambda r, a: a.__dict__.update(data=None, body=b""))
        c.bad(c.pull(name), (5, 6))
        check(not c.blobs(), "nothing under a final name")
    c = hub(new)
    c.hub.on("GET", "/plain/*", answer(200, b""))
    c.bad(c.pull(c.url["cdn"] + "/plain/model.gguf"), (5, 6))


# ---- the machine ----------------------------------------------------------------------------------------


@test
def d29(new):
    """no room, no right to write, a limit of file sizes"""
    c = hub(new)
    c.hub.on("GET", "/plain/*", chunked)
    url = c.url["cdn"] + "/plain/model.gguf"
    for name in (FILE, url):  # of a size that is known, and not
        c.bad(c.pull(name, wrap=("sh", "-c", 'ulimit -f 200; exec "$@"', "sh")), 7)
        check(name == FILE or c.parts(), "what has room stays")
        c.good(c.pull(name), BIG)
    # a disk of 200 KiB: a size that is known is refused at once; else what fits stays
    small = ("unshare", "-Urm", "sh", "-c",
             'mount -t tmpfs -o size=200k none "$HOME" && { "$@"; rc=$?; ls -aR "$HOME" >ls; exit $rc; }', "sh")
    can = not subprocess.run(["unshare", "-Urm", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True).returncode
    for name, act, more in ((FILE, None, ()), (FILE, None, ("--local-dir", "home/x")), ("URL", chunked, ())) if can else ():
        c = hub(new)
        if act:
            c.hub.on("GET", "/plain/*", act)
        c.bad(c.pull(*more, name.replace("URL", c.url["cdn"] + "/plain/model.gguf"), wrap=small), 7)
        check(bool(act) == (".part" in (c.dir / "ls").read_text()), (c.dir / "ls").read_text())
    # a folder that cannot be written
    c = hub(new)
    if os.geteuid() == 0:
        other = {"user": 65534, "group": 65534}
    else:
        c.home.chmod(0o500)
        other = {}
    run = c.pull(FILE, **other)
    c.home.chmod(0o700)
    c.bad(run, (7, 9))
    c = hub(new)
    (c.home / "file").write_bytes(SMALL)
    c.env["HF_HUB_CACHE"] = str(c.home / "file")
    c.bad(c.pull(FILE), (7, 9))


@test
def d30(new):
    """several processes fetch the same: all succeed, one copy stays"""
    for name, data, n in ((FILE, BIG, 2), (REPO, BIG, 4)):
        c = hub(new)
        c.hub.on("GET", CDN, slow(1_000_000))
        runs = [c.start("pull", name) for _ in range(n)]
        for run in runs:
            run.wait()
        for run in runs:
            c.good(run, data)
        check(len(c.blobs()) == 1, f"{c.blobs()}")
    c = hub(new)
    c.hub.on("GET", "/plain/*", slow(1_000_000))
    runs = [c.start("pull", c.url["cdn"] + "/plain/model.gguf") for _ in range(2)]
    check(c.good(runs[0].wait()) == c.good(runs[1].wait(), BIG), "one place")


@test
def d31(new):
    """killed at any moment: the next run completes"""
    c = hub(new)
    c.hub.on("GET", CDN, slow(1_500_000))
    for i in range(12):
        run = c.start("pull", FILE)
        time.sleep(0.02 * i * SLOW)
        run.send(signal.SIGKILL).wait()
    c.hub.faults.clear()
    path = c.good(c.pull(FILE))
    check(path.read_bytes() == BIG and len(c.blobs()) == 1, f"{c.blobs()}")
    check(len(c.parts()) <= 1, f"{c.parts()} are left")


@test
def d32(new):
    """names from the server that lead elsewhere, or nowhere: refused before any request"""
    for name in ("../evil.gguf", "/evil.gguf", "a/../evil.gguf", "..", ".", "", "a//evil.gguf", "./evil.gguf", "evil.gguf/",
                 "a\\evil.gguf", "..\\evil.gguf", "C:evil.gguf", "c:/evil.gguf", "evil\0.gguf", "evil\n.gguf",
                 "evil\x1b[2J.gguf", "evil\x7f.gguf", "x" * 300 + ".gguf", "a/" * 3000 + "evil.gguf", "nul.gguf", "CON",
                 7, None, ["evil.gguf"]):
        c = hub(new)
        change = edit(lambda v: [s.update(rfilename=name) for s in v["siblings"] if s["rfilename"] == "model.gguf"])
        c.hub.on("GET", API, change)
        c.bad(c.pull(REPO, "--include", "*"), (5, 6))
        check(not c.hub.seen(CDN) and not [r for r in c.hub.seen(RESOLVE) if "evil" in r.path], f"{name!r} was asked for")
        check(not list(c.dir.rglob("*evil*")), f"{name!r} was written")
    # shards that the index names
    for shard in ("../evil.safetensors", "/evil.safetensors", "a/../../evil.safetensors"):
        index = json.dumps({"metadata": {}, "weight_map": {"x": shard}}).encode()
        c = hub(new, files={"config.json": SMALL, "model.safetensors.index.json": index, "tokenizer.json": b"{}"})
        run = c.pull(REPO)
        check(run.status != 0, f"{run}")
        check(not [r for r in c.hub.seen() if "evil" in r.path], f"{shard} was asked for")
    c = hub(new)
    for end in ("/..", "/.", "/", "", "/a%2f..%2fevil", "/%00", "/..%5cevil", "/%2e%2e", "/" + "x" * 300):
        run = c.pull(c.url["cdn"] + end)
        check(run.status in (2, 5), f"{run}")
        check(not list(c.dir.rglob("*evil*")), f"{run}")


@test
def d33(new):
    """names and revisions that are not of the hub's form"""
    c = hub(new)
    for name in ("a/b/c", "../name", "owner/..", "owner/.", "./x", "owner/", "/name", "/", "owner//name", "owner/na me",
                 "owner/na\nme", "owner/name\\x", "-x/name", "owner/-", ".owner/name", "owner/name.", "owner/a..b",
                 "owner/a--b", "owner/" + "x" * 97, "owner/näme", "owner/name?x", "owner/name#x", "owner/na%2fme",
                 "owner/name.git", "hf:", "ftp://host/file", "file:///etc/passwd", "http://", ""):
        run = c.pull(name) if not name.startswith("-") else c.pull("--", name)
        c.bad(run, 2)
    for revision in ("a/b", "..", ".", "", "a..b", "a b", "a\nb", "a?b", "refs/pr/1", "-x", "a:b", "x" * 300):
        c.bad(c.pull("--revision=" + revision, REPO), 2)
    for file in ("../x", "/x", "a/../b", "a//b", "..", ".", "a\\b"):
        c.bad(c.pull(f"{REPO}:{file}"), 2)
        c.bad(c.pull(REPO, file), 2)
    check(not c.hub.seen(), f"{c.hub.seen()}")


@test
def d34(new):
    """a target that is a link or a folder, or below a folder that is a link"""
    def local(c, name=FILE):
        return c.pull("--local-dir", c.home / "here", name)

    files = {**FILES, "sub/model.gguf": gguf(5000, 3)}
    for make in (lambda p, q: p.symlink_to(q / "secret"), lambda p, q: p.symlink_to(q / "absent"), lambda p, q: p.mkdir()):
        c = hub(new)
        (c.home / "here").mkdir()
        (c.dir / "outside").mkdir()
        (c.dir / "outside/secret").write_text("kept")
        make(c.home / "here/model.gguf", c.dir / "outside")
        c.put_here.add(c.home / "here/model.gguf")
        c.bad(local(c), 9)
        check([p.name for p in (c.dir / "outside").iterdir()] == ["secret"], "nothing was written through the link")
        check((c.dir / "outside/secret").read_text() == "kept", "nor changed")
    c = hub(new, files=files)
    (c.home / "here").mkdir()
    (c.dir / "outside").mkdir()
    (c.home / "here/sub").symlink_to(c.dir / "outside")
    c.bad(local(c, "owner/name:sub/model.gguf"), 9)
    check(not list((c.dir / "outside").iterdir()), "nothing outside")
    # a parent that becomes a link while the file is fetched
    c = hub(new, files={"sub/model.gguf": BIG})
    (c.dir / "outside").mkdir()
    c.hub.on("GET", CDN, slow(400_000))
    run = c.start("pull", "--local-dir", c.home / "here", "owner/name:sub/model.gguf")
    c.until(lambda: c.hub.bytes_sent > 100_000, "a third of the file")
    (c.home / "here/sub").rename(c.home / "here/moved")
    (c.home / "here/sub").symlink_to(c.dir / "outside")
    run.wait()
    check(not list((c.dir / "outside").iterdir()), f"{run}: nothing outside")
    # the cache's own folders
    c = hub(new)
    (c.dir / "outside").mkdir()
    (c.cache / "models--owner--name/snapshots").mkdir(parents=True)
    (c.cache / "models--owner--name/snapshots" / c.repo.commit).symlink_to(c.dir / "outside")
    run = c.pull(FILE)
    check(not list((c.dir / "outside").iterdir()), f"{run}: nothing outside")


@test
def d35(new):
    """offline, or the hub is down: the copy that is there"""
    c = hub(new)
    path = c.good(c.pull(FILE), BIG)
    whole = c.good(c.pull(REPO, "--include", "*"))
    n = len(c.hub.seen())
    for what, more in ((FILE, {}), (REPO, {})):
        check(c.good(c.pull(what, "--offline")).exists(), "offline")
        for word in ("1", "true", "ON"):
            c.good(c.pull(what, env={"HF_HUB_OFFLINE": word}))
    check(c.good(c.pull(FILE, "--offline"), BIG) == path, "the same path")
    check(c.good(c.pull(FILE, "--offline", "--revision", c.repo.commit), BIG) == path, "by its commit")
    check(len(c.hub.seen()) == n, "no request at all")
    for act in (answer(503), answer(500), raw(b"")):
        c.hub.on("GET", API, act, times=6)
        check(c.good(c.pull(FILE), BIG, "cached") == path, "when the hub is down")
    check(c.good(c.pull(FILE, env={"HF_ENDPOINT": f"http://127.0.0.1:{free_port()}"}), BIG, "cached") == path, "when it is gone")
    for what in ("owner/other", "owner/name:other.gguf"):
        c.bad(c.pull(what, "--offline"), (5, 9), "offline")
        c.bad(c.pull(what, env={"HF_ENDPOINT": f"http://127.0.0.1:{free_port()}"}), 5)
    c.bad(c.pull(FILE, "--offline", "--revision", "other"), (5, 9))
    # what is not complete is no copy
    path.unlink()
    c.bad(c.pull(FILE, "--offline"), (5, 9))
    check(c.good(c.pull(FILE), BIG) == path, "and comes back")
    # a URL
    url = c.url["cdn"] + "/plain/model.gguf"
    c.bad(c.pull(url, "--offline"), (5, 9))
    path = c.good(c.pull(url), BIG)
    n = len(c.hub.seen())
    check(c.good(c.pull(url, "--offline"), BIG) == path and len(c.hub.seen()) == n, "a URL")


@test
def d36(new):
    """headers over the limit, and answers that are no HTTP"""
    line = lambda n: more_headers(("X-Long", "x" * (n - len("X-Long: \r\n"))))
    block = lambda n: more_headers(*(("X-Many", "x" * (1024 - len("X-Many: \r\n"))) for _ in range(n)))
    for path in (API, RESOLVE, CDN):
        for act in (line(16 * 1024 + 3), line(1 << 20), block(257), raw(b"SSH-2.0-OpenSSH_9.2\r\n"), raw(BIG[:1000]),
                    raw(HTML), raw(b"HTTP/1.1 100 Continue\r\n\r\n" * 20000), raw(b"HTTP/1.1 999999 x\r\n\r\n"),
                    raw(b"HTTP/3.7 200 OK\r\n\r\n"), raw(b"\0" * 100)) if path != RESOLVE else (line(16 * 1024 + 3),):
            c = hub(new)
            c.hub.on("GET", path, act)
            c.bad(c.pull(FILE), 5)
        c = hub(new)
        c.hub.on("GET", path, line(16 * 1024 - 8))
        c.good(c.pull(FILE), BIG)
        c = hub(new)
        c.hub.on("GET", path, block(250))
        c.good(c.pull(FILE), BIG)


@test
def d37(new):
    """interrupted: ends within a second, the part stays"""
    for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)):
        c = hub(new)
        c.hub.on("GET", CDN, stall(H), times=1)
        run = c.start("pull", FILE)
        c.until(lambda: c.hub.bytes_sent >= H, "half of the file")
        run.send(number).wait()
        check(run.status == status and run.waited < 1 * SLOW, f"{run} after {run.waited} s")
        check(run.out == "" and c.parts(), f"{run}: the part stays")
        check(not c.blobs(), "nothing under a final name")
        c.good(c.pull(FILE), BIG)
    # while it waits: for a connection, an answer, its turn
    deaf = socket.socket()
    deaf.bind(("127.0.0.1", 0))
    deaf.listen(0)
    for path, act in ((API, stall(0)), (RESOLVE, stall(0)), (RESOLVE, answer(429, Retry_After="30")), (None, None)):
        c = hub(new)
        if act:
            c.hub.on("GET", path, lambda r, a: (act(r, a), a.__dict__.update(raw=None)))
        else:
            c.env["HF_ENDPOINT"] = f"http://127.0.0.1:{deaf.getsockname()[1]}"
        run = c.start("pull", FILE)
        c.until(lambda: not act or c.hub.seen(path), "the request")
        time.sleep(0.2 * SLOW)
        run.send(signal.SIGINT).wait()
        check(run.status == 130 and run.waited < 1 * SLOW, f"{run} after {run.waited} s")
    deaf.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
