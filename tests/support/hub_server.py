"""A model hub on the loopback interface: what `tinygpt pull` talks to in the tests.

    hub = Hub(folder)                        # repositories, and a log of all requests in folder/requests.jsonl
    repo = hub.repo("owner/name", {"model.gguf": b"...", "config.json": b"..."})
    hub.on("GET", "/cdn/*", cut(1000), times=1, at="cdn")   # once, one of hub_faults.py
    hub.close()

It answers as the real one does: the listing of a revision with its commit and the digests of all files; large
files by a redirect to a storage on another host, whose address is signed; small ones by a redirect on the hub
itself. The storage turns away whoever sends it the hub's token. Origins:

    hub   http://127.0.0.1:A             cdn   http://localhost:B, the storage
    other http://127.0.0.2:A, the hub's port on another host
    tls   https://localhost:C, the hub   tlscdn https://localhost:D, its storage
    proxy http://localhost:E, which plays the others itself, and opens no tunnels

Alone: hub_server.py FOLDER OWNER/NAME=PATH... serves files and folders and prints HF_ENDPOINT=...
"""
import dataclasses
import email.utils
import fnmatch
import hashlib
import http.server
import json
import pathlib
import socket
import socketserver
import ssl
import struct
import subprocess
import sys
import threading
import time
import urllib.parse

from hub_faults import Answer, as_json, error, give_range

LARGE = 1000  # bytes from which a file lies in the storage


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def git_blob(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


# ---- repositories ---------------------------------------------------------------------------------------


@dataclasses.dataclass
class Repo:
    """One commit of a repository; another commit is another object. Large files are those of LFS."""
    name: str
    files: dict
    gated: object = False
    card: dict = dataclasses.field(default_factory=lambda: {"license": "mit"})

    @property
    def commit(self):
        return hashlib.sha1(repr(sorted((k, sha256(v)) for k, v in self.files.items())).encode()).hexdigest()

    def large(self, path):
        return len(self.files[path]) >= LARGE

    def pointer(self, path):
        data = self.files[path]
        return (f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha256(data)}\nsize {len(data)}\n").encode()

    def blob_id(self, path):
        return git_blob(self.pointer(path) if self.large(path) else self.files[path])

    def etag(self, path):
        return sha256(self.files[path]) if self.large(path) else self.blob_id(path)

    def info(self):
        siblings = []
        for path, data in sorted(self.files.items()):
            entry = {"rfilename": path, "blobId": self.blob_id(path), "size": len(data)}
            if self.large(path):
                entry["lfs"] = {"sha256": sha256(data), "size": len(data), "pointerSize": len(self.pointer(path))}
            siblings.append(entry)
        return {"_id": "0", "id": self.name, "modelId": self.name, "private": False, "gated": self.gated,
                "sha": self.commit, "lastModified": "2024-01-01T00:00:00.000Z", "tags": [], "downloads": 1,
                "cardData": self.card, "siblings": siblings}

    def tree(self):
        return [{"type": "file", "oid": self.blob_id(path), "size": len(data), "path": path,
                 **({"lfs": {"oid": sha256(data), "size": len(data), "pointerSize": len(self.pointer(path))}}
                    if self.large(path) else {})}
                for path, data in sorted(self.files.items())]


# ---- the servers ----------------------------------------------------------------------------------------


@dataclasses.dataclass
class Fault:
    method: str
    path: str
    act: object
    times: int
    after: int
    at: str


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def setup(self):
        if self.server.tls:
            self.request.settimeout(10)
            self.request = self.server.tls.wrap_socket(self.request, server_side=True)
        super().setup()

    def handle(self):
        try:
            super().handle()
        except (OSError, ValueError):
            self.close_connection = True

    def log_message(self, *args):
        pass

    def do_GET(self):
        self.server.serve(self)

    do_HEAD = do_CONNECT = do_POST = do_GET

    def send(self, a):
        if a.raw is not None:
            self.wfile.write(a.raw)
            self.close_connection = True
            return
        declared = [value for name, value in a.headers if name.lower() == "content-length"]
        lines = [f"HTTP/1.1 {a.status} {http.HTTPStatus(a.status).phrase}"]
        lines += [f"{name}: {value}" for name, value in a.headers if value is not None]
        if a.chunked:
            lines.append("Transfer-Encoding: chunked")
        elif not declared:
            lines.append(f"Content-Length: {len(a.body)}")
        self.close_connection |= declared != [] and declared != [str(len(a.body))]
        self.wfile.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
        if self.command != "HEAD":
            self.send_body(a)

    def send_body(self, a):
        end = len(a.body) if a.limit is None else min(a.limit, len(a.body))
        step = min(a.rate // 50 or 1 << 16, 1 << 16)
        for at in range(0, end, step):
            piece = a.body[at:min(at + step, end)]
            self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece) if a.chunked else piece)
            self.server.sent(len(piece))
            if a.rate:
                time.sleep(step / a.rate)
        if a.limit is None:
            self.wfile.write(b"0\r\n\r\n" if a.chunked else b"")
            return
        self.close_connection = True
        deadline = time.monotonic() + a.stall
        while time.monotonic() < deadline and not self.server.closing:
            time.sleep(0.02)
        if a.reset:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()


class Origin(socketserver.ThreadingMixIn, socketserver.TCPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 64

    def __init__(self, hub, name, host, port, play, tls=None):
        super().__init__((host, port), Handler)
        self.hub, self.name, self.play, self.tls, self.closing = hub, name, play, tls, False
        shown = "localhost" if host == "127.0.0.1" and name != "hub" else host
        self.url = f"{'https' if tls else 'http'}://{shown}:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def process_request(self, request, address):
        self.hub.connections[self.name] = self.hub.connections.get(self.name, 0) + 1
        super().process_request(request, address)

    def handle_error(self, request, address):
        pass  # clients that leave, and handshakes that fail

    def sent(self, n):
        with self.hub.lock:
            self.hub.bytes_sent += n if self.name == "cdn" else 0

    def serve(self, handler):
        parts = urllib.parse.urlsplit(handler.path)
        request = Request(self.name, handler.command, urllib.parse.unquote(parts.path), parts.query,
                          {name.lower(): value for name, value in handler.headers.items()}, handler.path)
        fault = self.hub.record(request)
        a = self.play(request)
        if fault:
            fault.act(request, a)
        if a.data is not None:
            give_range(request, a)
        handler.send(a)


@dataclasses.dataclass
class Request:
    origin: str
    method: str
    path: str
    query: str
    headers: dict
    target: str


class Hub:
    SIGNATURE = "X-Signature=hfSignedAddress0123456789"

    def __init__(self, folder, certificate=None, host="127.0.0.1"):
        self.folder = pathlib.Path(folder)
        self.lock, self.requests, self.faults, self.repos = threading.Lock(), [], [], {}
        self.connections, self.served = {}, []
        self.bytes_sent = 0  # by the storage
        self.direct_small = False  # answer small files at once instead of by a redirect
        self.log = (self.folder / "requests.jsonl").open("w")
        self.origins = [Origin(self, "hub", host, 0, self.play_hub)]
        port = self.origins[0].server_address[1]
        self.origins += [Origin(self, "cdn", "127.0.0.1", 0, self.play_cdn),
                         Origin(self, "proxy", "127.0.0.1", 0, self.play_proxy)]
        try:
            self.origins += [Origin(self, "other", "127.0.0.2", port, self.play_hub)]
        except OSError:  # no such address, or another's
            pass
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self.origins += [Origin(self, "tls", "127.0.0.1", 0, self.play_hub, context),
                             Origin(self, "tlscdn", "127.0.0.1", 0, self.play_cdn, context)]
        self.url = {origin.name: origin.url for origin in self.origins}

    def close(self):
        for origin in self.origins:
            origin.closing = True
            origin.shutdown()
            origin.server_close()
        self.log.close()

    def repo(self, name, files, revisions=("main",), **more):
        """Puts a commit of a repository under its revisions, in the place of what was there."""
        repo = Repo(name, files, **more)
        self.served += files.values()
        for revision in (*revisions, repo.commit):
            self.repos[name, revision] = repo
        return repo

    def on(self, method, path, act, times=1 << 30, after=0, at="*"):
        """A fault for requests of a method whose path fits a pattern, at an origin; the first that fits counts."""
        self.faults.append(Fault(method, path, act, times, after, at))

    def record(self, request):
        """Writes the request down; the fault that it meets, or None."""
        with self.lock:
            self.requests.append(request)
            if not self.log.closed:
                self.log.write(json.dumps(dataclasses.asdict(request)) + "\n")
                self.log.flush()
            for fault in self.faults:
                if (fault.times > 0 and fnmatch.fnmatchcase(request.method, fault.method)
                        and fnmatch.fnmatchcase(request.path, fault.path)
                        and fnmatch.fnmatchcase(request.origin, fault.at)):
                    if fault.after > 0:
                        fault.after -= 1
                        continue
                    fault.times -= 1
                    return fault
        return None

    def seen(self, path="*", method="*", at="*"):
        """The requests that came."""
        with self.lock:
            return [r for r in self.requests if fnmatch.fnmatchcase(r.path, path)
                    and fnmatch.fnmatchcase(r.method, method) and fnmatch.fnmatchcase(r.origin, at)]

    # ---- what the origins answer when nothing is wrong ----

    def play_hub(self, request):
        a = self.find(request)
        if a.status == 200 and request.headers.get("authorization", "Bearer hf_").find("Bearer hf_") != 0:
            return error(401, "", "Invalid credentials in Authorization header")
        a.headers.append(("Set-Cookie", "session=cookieOfTheHub; Path=/"))
        return a

    def find(self, request):
        path = request.path.split("/")
        if path[1:3] == ["api", "models"]:  # /api/models/OWNER/NAME[/revision/REV | /tree/REV]
            kind, revision = path[5:7] if len(path) == 7 else ("revision", "main")
            found = self.repos.get(("/".join(path[3:5]), revision))
            if not found:
                return self.missing("/".join(path[3:5]))
            return as_json(found.tree() if kind == "tree" else found.info())
        if path[1:4] == ["api", "resolve-cache", "models"]:
            return self.small("/".join(path[4:6]), path[6], "/".join(path[7:]), True)
        if path[3:4] == ["resolve"]:
            return self.resolve("/".join(path[1:3]), path[4], "/".join(path[5:]),
                                self.url["tlscdn" if request.origin == "tls" else "cdn"])
        return error(404, "", "Not Found")

    def resolve(self, name, revision, path, storage):
        repo = self.repos.get((name, revision))
        if not repo:
            return self.missing(name)
        if path not in repo.files:
            return error(404, "EntryNotFound", "Entry not found", ("X-Repo-Commit", repo.commit))
        if not repo.large(path):
            return self.small(name, repo.commit, path, self.direct_small)
        digest, size = sha256(repo.files[path]), len(repo.files[path])
        to = f"{storage}/cdn/{digest}?{self.SIGNATURE}&response-content-disposition=inline"
        return Answer(302, [("Location", to), ("X-Repo-Commit", repo.commit), ("X-Linked-Size", str(size)),
                            ("X-Linked-Etag", f'"{digest}"'), ("ETag", f'"{digest}"'), ("Accept-Ranges", "bytes")],
                      b"Found. Redirecting")

    def small(self, name, commit, path, here):
        repo = self.repos[name, commit]
        headers = [("X-Repo-Commit", commit), ("ETag", f'"{repo.etag(path)}"')]
        if here:
            return Answer(200, [*headers, ("Accept-Ranges", "bytes"), ("Content-Type", "text/plain; charset=utf-8"),
                                ("Content-Disposition", 'inline; filename="x"')], data=repo.files[path])
        to = urllib.parse.quote(f"/api/resolve-cache/models/{name}/{commit}/{path}") + "?etag=x"
        return Answer(307, [*headers, ("Location", to), ("X-Linked-Size", str(len(repo.files[path])))], b"Redirecting")

    def missing(self, name):
        if any(n == name for n, _ in self.repos):
            return error(404, "RevisionNotFound", "Invalid rev id")
        return error(404, "RepoNotFound", "Repository not found")

    def play_proxy(self, request):
        for origin in self.origins:
            if request.target.startswith(origin.url + "/"):
                return origin.play(request)
        return error(502, "", "no way there")

    def play_cdn(self, request):
        """The storage knows files by their digest; /plain/NAME are the same without a signature."""
        if "authorization" in request.headers:
            return error(400, "", "Only one auth mechanism allowed")
        by_digest = {sha256(data): data for repo in list(self.repos.values()) for data in repo.files.values()}
        by_name = {path: data for repo in list(self.repos.values()) for path, data in repo.files.items()}
        kind, _, name = request.path[1:].partition("/")
        data = {"cdn": by_digest, "plain": by_name}.get(kind, {}).get(name)
        if data is None:
            return error(404, "", "no such key")
        if kind == "cdn" and self.SIGNATURE not in request.query:
            return error(403, "", "not signed")
        etag = hashlib.md5(data).hexdigest()  # the storage's own
        return Answer(200, [("ETag", f'"{etag}"'), ("Accept-Ranges", "bytes"),
                            ("Last-Modified", email.utils.formatdate(0, usegmt=True)),
                            ("Content-Type", "binary/octet-stream")], data=data)


# ---- certificates ---------------------------------------------------------------------------------------


def make_certificates(folder):
    """A throwaway authority (ca.pem) and what it signed: (certificate, key) of good, expired and elsewhere."""
    def openssl(*args):
        subprocess.run(["openssl", *map(str, args)], check=True, capture_output=True, cwd=folder)

    folder = pathlib.Path(folder)
    new = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=throwaway"]
    made = {}
    openssl("req", "-x509", *new, "-keyout", "ca.key", "-out", "ca.pem", "-days", 2)
    openssl("req", *new, "-keyout", "server.key", "-out", "server.csr")
    for name, days, names in (("good", 2, "DNS:localhost,IP:127.0.0.1"), ("expired", -1, "DNS:localhost,IP:127.0.0.1"),
                              ("elsewhere", 2, "DNS:elsewhere.example")):
        (folder / f"{name}.ext").write_text(f"subjectAltName={names}\n")
        openssl("x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days",
                days, "-extfile", f"{name}.ext", "-out", f"{name}.pem")
        made[name] = folder / f"{name}.pem", folder / "server.key"
    return made


def main():
    hub = Hub(sys.argv[1])
    for arg in sys.argv[2:]:
        name, _, path = arg.partition("=")
        path = pathlib.Path(path)
        files = {path.name: path.read_bytes()} if path.is_file() else {
            str(p.relative_to(path)): p.read_bytes() for p in path.rglob("*") if p.is_file()}
        hub.repo(name, files)
    print(f"HF_ENDPOINT={hub.url['hub']}", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
