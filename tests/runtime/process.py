"""Running tinygpt from Python: what every test of this folder needs. The program is the first argument."""
import os
import pathlib
import resource
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAM = sys.argv[1]
MODEL = ROOT / "models/tales.gguf"
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
failures = []


def check(good, what):
    if not good:
        failures.append(what)
        print("FAIL:", what, flush=True)


def done():
    sys.exit(1 if failures else 0)


def start(*args, **more):
    """A process with pipes, whose signals are as on a terminal: a background job ignores some, and so would what it
    starts. prepare: called in it before it runs."""
    prepare = more.pop("prepare", lambda: None)

    def before():
        for number in SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        prepare()

    more = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | more
    return subprocess.Popen([PROGRAM, *map(str, args)], preexec_fn=before, **more)


class Ended:
    def __init__(self, process, out, err, seconds):
        self.status, self.out, self.err, self.seconds = process.returncode, out or b"", err or b"", seconds

    def one_error(self):
        return self.err.startswith(b"tinygpt: error: ") and self.err.count(b"\n") == 1 and self.err.endswith(b"\n")

    def __repr__(self):
        return f"status {self.status} after {self.seconds:.1f} s, stdout {self.out[:80]!r}, stderr {self.err[:300]!r}"


def end(process, text=None, seconds=60):
    """Waits for its end; one that hangs is killed, and has the status -9."""
    begun = time.monotonic()
    try:
        out, err = process.communicate(text, timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
    return Ended(process, out, err, time.monotonic() - begun)


def run(*args, text=None, seconds=60, **more):
    if text is not None:
        more["stdin"] = subprocess.PIPE
    return end(start(*args, **more), text, seconds)


def limit(what, value):
    """To be a `prepare`."""
    return lambda: resource.setrlimit(what, (value, value))


def folder():
    """A scratch folder, which goes at the end."""
    made = tempfile.TemporaryDirectory()
    keep.append(made)
    return pathlib.Path(made.name)


keep = []
