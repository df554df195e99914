"""D15 to D28: bodies that are cut, longer, other ones, ranges, digests."""
import gzip
import signal

from fault_kit import (API, BIG, CDN, FILE, FILES, H, HTML, JSON, N, PATIENT, REPO, RESOLVE, SMALL, edit, half, hub,
                       ranges)
from hub_faults import answer, body, both, chunked, cut, header, no_range, raw, slow, stall
from hub_server import sha256
from pull_case import check, gguf, test


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
        run = c.pull(FILE, env={"TINYGPT_FETCH_STALL": 1})
        c.good(run, BIG)
        check(len(c.hub.seen(CDN)) == 2, f"{len(c.hub.seen(CDN))} requests")
    c = hub(new)
    c.hub.on("GET", API, stall(10), times=1)
    c.good(c.pull(FILE, env={"TINYGPT_FETCH_STALL": 1}), BIG)


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
        run = c.start("pull", url, env=PATIENT)
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
    new_files = {**files, "model.gguf": other, "b.json": b"3"}
    c.hub.on("GET", RESOLVE, lambda r, a: c.hub.repo(REPO, new_files) and None, times=1)
    path = c.good(c.pull(REPO, "--include", "*"))
    check(path.name == old.commit or old.commit in path.parts, f"{path}")
    folder = c.cache / "models--owner--name/snapshots" / old.commit
    check((folder / "model.gguf").read_bytes() == BIG and (folder / "b.json").read_bytes() == b"2", "one commit")
    check(all(old.commit in r.path for r in c.hub.seen(RESOLVE)), "which all requests name")
    # another size, digest or commit than the listing's
    for name, value in (("X-Linked-Etag", f'"{sha256(other)}"'), ("X-Linked-Size", str(N + 1)),
                        ("X-Repo-Commit", "0" * 40)):
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
