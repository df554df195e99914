"""Downloads that are killed, at random moments and around every call of the system that touches their files, and
calls that fail: after each, the file is whole or not there, and the next run brings it, right, and nothing else.

KILLS is the number of random moments; when it is given, all calls meet all failures, and not a choice of them."""
import hashlib
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import every_call as shim  # noqa: E402
import hub_faults  # noqa: E402
import hub_server  # noqa: E402

DRIVER = shim.BUILD / "tests/fetch/driver"
NAME = "model.gguf"


class Place:
    """One file of a hub, and folders to fetch it into, by the driver."""

    files = {NAME: 600_000}

    def __init__(self, root):
        self.root, self.n = root, 0
        self.data = {name: random.Random(size).randbytes(size) for name, size in self.files.items()}
        (root / "hub").mkdir(parents=True)
        self.hub = hub_server.Hub(root / "hub")
        self.hub.repo("o/n", self.data)

    def folder(self, like=None):
        self.n += 1
        folder = self.root / f"in.{self.n}"
        if like:
            shutil.copytree(like, folder, symlinks=True)
        else:
            folder.mkdir()
        return folder

    def command(self, folder):
        data = self.data[NAME]
        return [DRIVER, "-e", self.hub.url["hub"], folder, f"{self.hub.url['hub']}/o/n/resolve/main/{NAME}", NAME,
                str(len(data)), hashlib.sha256(data).hexdigest()]

    def start(self, folder, **what):
        env = shim.environment(folder, **what) if what else {}
        return subprocess.Popen(self.command(folder), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env={"HOME": str(folder), "HF_ENDPOINT": self.hub.url["hub"], "LC_ALL": "C",
                                     "TINYGPT_FETCH_PACE": "0.001", **env})

    def run(self, folder, **what):
        process = self.start(folder, **what)
        out, err = process.communicate(timeout=60)
        return process.returncode, out, err

    def calls(self, like=None):
        """The counted calls of a download from `like` on."""
        def run(log):
            status, _, err = self.run(self.folder(like), log=log)
            assert status == 0, err
        return shim.calls(run)

    def final(self, folder):
        """All paths that a reader may take for finished files."""
        return [p for p in folder.iterdir() if p.name == NAME]

    def whole(self, folder, out):
        """Is all there, and nothing else?"""
        return os.listdir(folder) == [NAME]

    def check(self, folder, what):
        """Whole or not there. Then the next run."""
        for path in self.final(folder):
            assert path.read_bytes() == self.data[path.name], f"{what}: {path} is a bad file"
        status, out, err = self.run(folder)
        assert status == 0, f"{what}: the next run: {status} {err}"
        for path in self.final(folder):
            assert path.read_bytes() == self.data[path.name], f"{what}: the next run: {path} is a bad file"
        left = sorted(str(p.relative_to(folder)) for p in folder.rglob("*"))
        assert self.whole(folder, out), f"{what}: the next run leaves {left}"
        shutil.rmtree(folder)
        return out


class Slow(Place):
    """One that takes about a quarter of a second."""

    files = {NAME: 3_000_000}

    def __init__(self, root):
        super().__init__(root)
        self.hub.on("GET", "/cdn/*", hub_faults.slow(12_000_000))


class Pull(Place):
    """A folder of weights for the cache, by the program itself."""

    files = {"config.json": 300, "tokenizer.json": 5_000, "model.safetensors": 300_000}

    def command(self, folder):
        return [shim.TINYGPT, "pull", "-q", "o/n"]

    def final(self, folder):
        return [p for p in folder.glob(".cache/huggingface/hub/*/snapshots/*/[!.]*") if p.exists()]

    def whole(self, folder, out):
        return not [*folder.rglob(".*.part*")] and sorted(p.name for p in self.final(folder)) == sorted(self.files) and \
            {p.parent for p in self.final(folder)} == {pathlib.Path(out.strip())}


def every_call(place, like, act, expect, step=1):
    """Something is done to each call in turn, or to some; `expect` judges the name of the call, status and stderr."""
    calls = place.calls(like)
    assert {"fsync", "unlinkat"} <= {name for name, _ in calls} and any("rename" in name for name, _ in calls), calls

    def one(i):
        name, what = calls[i][0], f"{act} at call {i + 1} of {len(calls)}, {calls[i][0]}"
        folder = place.folder(like)
        status, _, err = place.run(folder, at=i + 1, do=act)
        expect(what, name, status, err, folder)
        place.check(folder, what)

    shim.each(range(0, len(calls), step), one)
    return len(calls)


def killed(what, name, status, err, folder):
    assert status == -signal.SIGKILL, f"{what}: status {status}, {err}"


def survived(what, name, status, err, folder):
    assert status in (0, 6, 7, 9), f"{what}: status {status}, {err}"
    lines = [line for line in err.splitlines() if not line.startswith(("note: ", "warning: "))]
    assert len(lines) == (status != 0) and all(line.startswith(("error: ", "tinygpt: error: ")) for line in lines), f"{what}: {err}"


# Those that POSIX lets signals interrupt, or that may do less than they were asked to.
INTERRUPTED = {"open", "openat", "read", "pread", "write", "pwrite", "fsync", "fallocate", "ftruncate", "flock", "close"}


def unnoticed(what, name, status, err, folder):
    survived(what, name, status, err, folder)
    assert status == 0 or name not in INTERRUPTED, f"{what}: status {status}, {err}"


def full_disk(what, name, status, err, folder):
    survived(what, name, status, err, folder)
    if name in ("pwrite", "fallocate") and status != 0:
        assert status == 7, f"{what}: {status} {err}"


def random_kills(place, n):
    """Kills between the start and the end of a download."""
    rng = random.Random(37)

    def one(moment):
        folder = place.folder()
        process = place.start(folder)
        time.sleep(moment)
        process.kill()
        process.communicate()
        return int(place.check(folder, f"killed after {moment:.4f} s").split()[3]) > 0

    resumed = sum(shim.each([rng.uniform(0, 0.45) for _ in range(n)], one))
    assert resumed > n // 12, f"only {resumed} of {n} went on with what was there"
    return resumed


# What is done to each call, and whether in a download from the beginning, in one that goes on, and in a pull. Killed
# after a call is killed before the next one, but for the last.
FULL = "KILLS" in os.environ
PLAN = [("kill-before", killed, True, True, True), ("kill-after", killed, False, False, False),
        ("ENOSPC", full_disk, False, True, False), ("EIO", survived, False, True, False),
        ("EINTR", unnoticed, True, True, False), ("short", unnoticed, True, False, False)]


def main():
    root = pathlib.Path(tempfile.mkdtemp())
    try:
        place = Place(root / "a")
        half = place.folder()
        status, _, err = place.run(half, only="pwrite", at=3, do="ENOSPC")
        assert status == 7 and "No space left" in err, (status, err)
        assert any(p.suffix == ".part" for p in half.iterdir()), "a full disk keeps the part"
        for act, expect, fresh, resumed, pull in PLAN:
            for like in [None] * (fresh or FULL) + [half] * (resumed or FULL):
                print(f"{act}: {every_call(place, like, act, expect)} calls")
        place.hub.close()
        place = Pull(root / "b")
        for act, expect, fresh, resumed, pull in PLAN:
            if pull or FULL: # whose downloads make their calls in any order: which of them fails is not known before
                expect = survived if expect is unnoticed else expect
                print(f"pull, {act}: {every_call(place, None, act, expect, 1 if FULL else 4)} calls")
        place.hub.close()
        n = int(os.environ.get("KILLS", "12"))
        place = Slow(root / "c")
        print(f"{n} random kills, {random_kills(place, n)} resumed")
        place.hub.close()
    finally:
        shutil.rmtree(root)


main()
