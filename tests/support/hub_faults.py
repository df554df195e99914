"""The answers of hub_server.py, and what can be wrong with them: functions of a request and its answer that change
the answer, for Hub.on."""
import dataclasses
import json


@dataclasses.dataclass
class Answer:
    status: int = 200
    headers: list = dataclasses.field(default_factory=list)
    body: bytes = b""
    data: bytes = None     # a file, of which the body is the part that was asked for
    limit: int = None      # bytes of the body that are sent, then the connection ends
    reset: bool = False    # by a reset
    stall: float = 0       # or after that many seconds
    rate: int = 0          # bytes a second; 0: as fast as it goes
    chunked: bool = False
    raw: bytes = None      # instead of everything

    def set(self, name, value):
        self.headers = [(n, v) for n, v in self.headers if n.lower() != name.lower()]
        if value is not None:
            self.headers.append((name, value))


def as_json(value):
    return Answer(200, [("Content-Type", "application/json; charset=utf-8")], json.dumps(value).encode())


def error(status, code, message, *more):
    return Answer(status, [*([("X-Error-Code", code)] if code else []), ("X-Error-Message", message), *more],
                  json.dumps({"error": message}).encode())


def give_range(request, a):
    """Makes the body of what Range and If-Range ask for."""
    a.body, etag = a.data, dict(a.headers).get("ETag")
    want = request.headers.get("range", "")
    if not want.startswith("bytes=") or request.headers.get("if-range", etag) != etag:
        return
    first, last = want[6:].split("-")
    first, last = int(first), min(int(last or len(a.data)), len(a.data) - 1)
    if first > last:
        a.status, a.body = 416, b""
        a.headers.append(("Content-Range", f"bytes */{len(a.data)}"))
    else:
        a.status, a.body = 206, a.data[first:last + 1]
        a.headers.append(("Content-Range", f"bytes {first}-{last}/{len(a.data)}"))


# ---- faults ---------------------------------------------------------------------------------------------


def answer(status, body=b"", **headers):
    """Another answer altogether; X_Error_Code="..." is the header X-Error-Code."""
    def act(request, a):
        a.status, a.body, a.data = status, body, None
        a.headers = [(name.replace("_", "-"), value) for name, value in headers.items()]
    return act


def instead(other):
    return lambda request, a: a.__dict__.update(other.__dict__)


def redirect(to, status=302, keep=False):
    """To an address or a function of the request; keep: with the headers that were there."""
    def act(request, a):
        a.status, a.body, a.data = status, b"", None
        if not keep:
            a.headers = []
        a.set("Location", to(request) if callable(to) else to)
    return act


def header(name, value):
    return lambda request, a: a.set(name, value)


def more_headers(*pairs):
    return lambda request, a: a.headers.extend(pairs)


def cut(n, reset=False):
    """The body ends after n bytes, whatever was declared."""
    return lambda request, a: a.__dict__.update(limit=n, reset=reset)


def stall(n, seconds=60):
    return lambda request, a: a.__dict__.update(limit=n, stall=seconds)


def slow(rate):
    return lambda request, a: a.__dict__.update(rate=rate)


def chunked(request, a):
    a.chunked = True


def raw(data):
    return lambda request, a: a.__dict__.update(raw=data)


def body(data):
    """Other bytes, as if they were the file's; a function makes them from it."""
    def act(request, a):
        a.data = data(a.data) if callable(data) else data
    return act


def no_range(request, a):
    """As a server that does not know ranges."""
    request.headers.pop("range", None)
    a.set("Accept-Ranges", None)


def both(*acts):
    def act(request, a):
        for one in acts:
            one(request, a)
    return act
