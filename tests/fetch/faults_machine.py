"""D29 to D37: disk, other processes, names, links, no network, no HTTP, signals."""
import json
import os
import signal
import socket
import subprocess
import time

from fault_kit import API, BIG, CDN, FILE, FILES, H, HTML, PATIENT, REPO, RESOLVE, SMALL, edit, free_port, hub
from hub_faults import answer, chunked, more_headers, raw, slow, stall
from pull_case import SLOW, check, gguf, test


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
    tries = ((FILE, None, ()), (FILE, None, ("--local-dir", "home/x")), ("URL", chunked, ()))
    if subprocess.run(["unshare", "-Urm", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True).returncode:
        tries = ()  # it takes namespaces
    for name, act, more in tries:
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
        check(not c.hub.seen(CDN) and not [r for r in c.hub.seen(RESOLVE) if "evil" in r.path], f"{name!r}: asked for")
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
    for make in (lambda p, q: p.symlink_to(q / "secret"), lambda p, q: p.symlink_to(q / "absent"),
                 lambda p, q: p.mkdir()):
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
    c.good(c.pull(REPO, "--include", "*"))
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
    gone = {"HF_ENDPOINT": f"http://127.0.0.1:{free_port()}"}
    check(c.good(c.pull(FILE, env=gone), BIG, "cached") == path, "when it is gone")
    for what in ("owner/other", "owner/name:other.gguf"):
        c.bad(c.pull(what, "--offline"), (5, 9), "offline")
        c.bad(c.pull(what, env=gone), 5)
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
        run = c.start("pull", FILE, env=PATIENT)
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
        run = c.start("pull", FILE, env=PATIENT)
        c.until(lambda: not act or c.hub.seen(path), "the request")
        time.sleep(0.2 * SLOW)
        run.send(signal.SIGINT).wait()
        check(run.status == 130 and run.waited < 1 * SLOW, f"{run} after {run.waited} s")
    deaf.close()
