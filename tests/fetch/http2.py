"""Several files over one connection with HTTP/2: http2.py NGHTTPD. nghttpd serves files alone, so the hub is a
folder of them."""
import json
import pathlib
import re
import socket
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from hub_server import Repo  # noqa: E402
from pull_case import check, gguf, main, test  # noqa: E402

NGHTTPD = sys.argv.pop(1)


@test
def http2(new):
    """one connection for all files"""
    c = new("good")
    files = {f"m{i}.safetensors": gguf(200_000, i) for i in range(6)} | {"config.json": b"{}"}
    repo, root = Repo("owner/name", files), c.dir / "log/root"
    c.hub.served += files.values()
    for path, data in ({f"owner/name/resolve/{repo.commit}/{n}": d for n, d in files.items()} |
                       {"api/models/owner/name/revision/main": json.dumps(repo.info()).encode()}).items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    with (c.dir / "log/nghttpd").open("wb") as log:
        keys = c.authority.parent / "server.key", c.authority.parent / "good.pem"
        server = subprocess.Popen([NGHTTPD, "-v", "-a", "127.0.0.1", "-d", root, str(port), *keys], stdout=log, stderr=log)
    try:
        for _ in range(200):
            with socket.socket() as s:
                if s.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.02)
        c.env.update(HF_ENDPOINT=f"https://localhost:{port}", SSL_CERT_FILE=str(c.authority))
        path = c.good(c.pull("owner/name", "--include", "*"))
        check(all((path / name).read_bytes() == data for name, data in files.items()), "the right bytes")
    finally:
        server.terminate()
        server.wait()
    log = (c.dir / "log/nghttpd").read_text(errors="replace")
    ids = set(re.findall(r"id=(\d+).*:path: ", log))
    check(len(ids) == 1, f"connections {ids}")
    check(log.count(":path: ") >= 8 or log.count("/resolve/") >= 7, "all requests")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
