"""Runs tinygpt against hub_server.py in a scratch home, and holds every run to what must always be so:

- each file under a final name is one that the hub serves, byte for byte; nothing else lies there but parts,
  which are 0600, and what the hub's cache keeps beside its files;
- the token went to the hub's own origin alone, cookies nowhere; neither token nor signed addresses nor
  passwords stand in stdout, stderr, any file, or the arguments of the process.

A test is a function of `new`, which makes a Case; main runs those of a file, several at once.
"""
import concurrent.futures
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

import hub_server

TINYGPT = os.path.abspath(os.environ.get("TINYGPT", "./tinygpt"))
TOKEN = "hf_TokenThatNobodyElseMaySee42"
PASSWORD = "passwordOfTheProxy77"
SECRETS = [s.encode() for s in (TOKEN, PASSWORD, hub_server.Hub.SIGNATURE, "cookieOfTheHub")]
SLOW = 10 if os.environ.get("MODE") == "asan" else 1


class Wrong(Exception):
    pass


def check(good, what):
    if not good:
        raise Wrong(what)


def gguf(n, seed=1):
    """n bytes that look like a GGUF."""
    return b"GGUF\3\0\0\0" + random.Random(seed).randbytes(n - 8)


class Run:
    """A process of tinygpt, from its start to its end."""

    def __init__(self, case, args, env, wrap, **more):
        n = len(case.runs)
        self.case, self.args, self.files = case, args, [case.dir / f"out.{n}", case.dir / f"err.{n}"]
        self.begin, self.sent = time.monotonic(), None
        with self.files[0].open("wb") as out, self.files[1].open("wb") as err:
            self.process = subprocess.Popen([*wrap, TINYGPT, *args], stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                            env={**case.env, **env}, cwd=case.dir, **more)
        case.runs.append(self)

    def __str__(self):
        return f"tinygpt {' '.join(map(str, self.args))}: status {self.status}, stdout {self.out!r}, stderr {self.err!r}"

    def arguments(self):
        try:
            return pathlib.Path(f"/proc/{self.process.pid}/cmdline").read_bytes()
        except OSError:
            return b""

    def send(self, number):
        self.sent = number
        self.process.send_signal(number)
        return self

    def wait(self, seconds=30):
        seen, deadline, began = self.arguments(), time.monotonic() + seconds * SLOW, time.monotonic()
        while True:
            try:
                self.status = self.process.wait(0.05)
                break
            except subprocess.TimeoutExpired:
                seen += self.arguments()
            if time.monotonic() > deadline:
                self.process.kill()
                self.status = self.process.wait()
        self.waited, self.seconds = time.monotonic() - began, time.monotonic() - self.begin
        self.out, self.err = (file.read_bytes().decode(errors="replace") for file in self.files)
        check(not any(secret in seen for secret in SECRETS if secret.decode() not in " ".join(map(str, self.args))),
              f"{self}: a secret in the arguments of the process")
        check(self.status >= 0 or -self.status in (self.sent, signal.SIGKILL), f"{self}: ended by a signal")
        self.case.check_store(self)
        self.case.check_secrets(self)
        return self


class Case:
    def __init__(self, folder, certificate=None):
        self.dir, self.home = folder, folder / "home"
        self.home.mkdir(parents=True)
        (folder / "log").mkdir()
        self.hub = hub_server.Hub(folder / "log", certificate)
        self.url, self.runs, self.put_here = self.hub.url, [], set()
        self.cache = self.home / ".cache/huggingface/hub"
        self.env = {"HOME": str(self.home), "PATH": os.environ["PATH"], "HF_ENDPOINT": self.url["hub"],
                    "HF_TOKEN": TOKEN, "LC_ALL": "C", "OMP_WAIT_POLICY": "passive", "TINYGPT_FETCH_PACE": "0.005"}
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LD_LIBRARY_PATH"):
            if name in os.environ:
                self.env[name] = os.environ[name]

    def close(self):
        for run in self.runs:
            if run.process.poll() is None:
                run.process.kill()
                run.process.wait()
        self.hub.close()

    # ---- what a test does ----

    def start(self, *args, env={}, wrap=(), **more):
        return Run(self, args, {k: str(v) for k, v in env.items()}, wrap, **more)

    def run(self, *args, **more):
        return self.start(*args, **more).wait()

    def pull(self, *args, **more):
        return self.run("pull", *args, **more)

    def until(self, condition, what, seconds=20):
        deadline = time.monotonic() + seconds * SLOW
        while not condition():
            check(time.monotonic() < deadline, f"waited in vain: {what}")
            time.sleep(0.005)

    def good(self, run, data=None, *words):
        """It succeeded; stdout is one path, whose bytes are these."""
        check(run.status == 0, f"{run}, should succeed")
        check(run.out.endswith("\n") and run.out.count("\n") == 1, f"{run}: stdout should be a path alone")
        path = pathlib.Path(run.out[:-1])
        check(path.is_absolute() and path.exists(), f"{run}: no such file")
        if data is not None:
            check(path.read_bytes() == data, f"{run}: wrong bytes")
            check(not self.parts(), f"{run}: left {self.parts()}")
        for word in words:
            check(word.lower() in run.err.lower(), f"{run}: stderr should have {word!r}")
        return path

    def bad(self, run, status, *words):
        """It failed so, for one reason, which has these words."""
        errors = [line for line in run.err.splitlines() if line.startswith("tinygpt: error: ")]
        check(run.status in (status if isinstance(status, tuple) else (status,)), f"{run}, status should be {status}")
        check(run.out == "", f"{run}: something on stdout")
        check(len(errors) == 1 and run.err.endswith(errors[0] + "\n"), f"{run}: not one line of error, at the end")
        for word in words:
            check(word.lower() in errors[0].lower(), f"{run}: the error should have {word!r}")
        return run

    def parts(self):
        return sorted(p for p in self.dir.rglob("*.part") if p.is_file())

    def blobs(self):
        return sorted(p for p in self.cache.glob("*/blobs/*") if not p.name.startswith("."))

    # ---- what must always be so ----

    def check_store(self, run):
        served = {hub_server.sha256(data) for data in self.hub.served}
        for path in self.home.rglob("*"):
            name = path.name
            if path.is_symlink():
                check(path.exists() or path in self.put_here, f"{run}: {path} leads nowhere")
            elif (not path.is_file() or path in self.put_here or name == "CACHEDIR.TAG"
                  or {".locks", "trees"} & set(path.parts)):  # of the hub's own client
                continue
            elif name.endswith((".part", ".part.json")):  # which is made a file of everybody's before it gets its name
                try:
                    ok = path.stat().st_mode & 0o077 == 0 or hub_server.sha256(path.read_bytes()) in served
                except FileNotFoundError:  # another process has given it its name
                    continue
                check(ok, f"{run}: others may read {path}")
            elif name.startswith("."):
                continue
            elif "refs" in path.parts:
                check(re.fullmatch("[0-9a-f]{40}", path.read_text()), f"{run}: {path} is no commit")
            else:
                data = path.read_bytes()
                check(hub_server.sha256(data) in served, f"{run}: {path} has wrong bytes")
                check(path.parent.name != "blobs" or name in (hub_server.sha256(data), hub_server.git_blob(data)),
                      f"{run}: {path} has another digest")

    def check_secrets(self, run):
        given = " ".join(map(str, run.args)).encode()
        for path in self.dir.rglob("*"):
            if path.is_file() and not path.is_symlink() and "log" not in path.relative_to(self.dir).parts:
                try:
                    data = path.read_bytes()
                except FileNotFoundError:  # likewise
                    continue
                for secret in SECRETS:
                    check(secret not in data, f"{run}: {path} has {secret.decode()} (given: {secret in given})")
        for request in self.hub.seen():
            where = f"{run}: {request.origin} was sent"
            own = self.env["HF_ENDPOINT"] in (self.url[request.origin], request.target[:len(self.env["HF_ENDPOINT"])])
            others = {k: v for k, v in request.headers.items() if k != "authorization" or not own}
            check(TOKEN not in str(others) + request.target, f"{where} the token")
            check("cookie" not in others or "tinygpt" not in request.headers.get("user-agent", ""), f"{where} a cookie")


# ---- running them ---------------------------------------------------------------------------------------


TESTS = []


def test(function):
    TESTS.append(function)
    return function


def needs(certificates, name):
    check(certificates, "openssl is not there")
    return certificates[name]


def attempt(function, folder, certificates):
    cases = []

    def new(certificate=None):
        cases.append(Case(folder / f"{function.__name__}.{len(cases)}",
                          certificates[certificate] if certificate else None))
        cases[-1].authority = folder / "ca.pem"
        return cases[-1]

    began = time.monotonic()
    try:
        function(new)
        wrong = None
    except Wrong as e:
        wrong = str(e)
    except Exception:
        wrong = traceback.format_exc()
    for case in cases:
        case.close()
    return wrong, time.monotonic() - began


def main(only=()):
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(1))  # so that no process starts with them ignored
    folder, failed = pathlib.Path(tempfile.mkdtemp(prefix="pull")), 0
    folder.chmod(0o755)
    chosen = [t for t in TESTS if not only or t.__name__ in only]
    try:
        certificates = hub_server.make_certificates(folder)
        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            results = [(t, pool.submit(attempt, t, folder, certificates)) for t in chosen]
            for t, result in results:
                wrong, seconds = result.result()
                failed += wrong is not None
                what = (t.__doc__ or "").splitlines()[0] if t.__doc__ else ""
                print(f"{'FAIL' if wrong else 'ok  '} {t.__name__} {what} ({seconds:.1f} s)"
                      f"{f': {wrong}' if wrong else ''}", flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return failed > 0
