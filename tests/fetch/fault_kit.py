"""What the tests of D01 to D37 share: the repository they fetch, and how a part comes to lie there."""
import json
import pathlib
import signal
import socket
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from hub_faults import stall  # noqa: E402
from pull_case import SLOW, check, gguf  # noqa: E402

N = 1 << 19  # bytes; a half is what a buffer holds, so that it lies in the part soon
H = N // 2
BIG = gguf(N)
SMALL = b'{"model_type": "gpt2"}\n'
FILES = {"model.gguf": BIG, "config.json": SMALL, "README.md": b"---\nlicense: mit\n---\n"}
REPO, FILE, JSON = "owner/name", "owner/name:model.gguf", "owner/name:config.json"
API, CDN, RESOLVE = "/api/models/*", "/cdn/*", "/*/resolve/*"
HTML = b"<!DOCTYPE html>\n<html><body>Please log in to this network</body></html>\n"


PATIENT = {"TINYGPT_FETCH_PACE": "1"}  # so that it does not take a stall for one before it is interrupted


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
    run = c.start("pull", name, env=PATIENT, **more)
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
