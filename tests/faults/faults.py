"""The program, while calls of the system fail or are cut short, and while memory runs out (section 4 and rows R05, R24, R27
and R34 of the fault catalogue): no crash, no hang; a status that says what kind of thing failed, and one line that says
which; text that is right as far as it goes; every file the old one or the new one, and nothing beside them.

FULL=1 meets every call with every failure; else each failure meets some calls of its kind, and every few allocations one."""
import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/support"))
import every_call as shim  # noqa: E402

FULL = "FULL" in os.environ
TALES, SMALL = ROOT / "models/tales.gguf", ROOT / "tests/golden/gguf/llama-wide.q8_0.gguf"
FOLDER, SHARDS = ROOT / "tests/golden/llama-plain", ROOT / "tests/golden/llama-shards"
RESOURCES = {"ENOMEM", "EMFILE", "ENFILE", "ENOSPC", "EDQUOT", "EFBIG", "EAGAIN"}

# What may become of a call. Of EINTR and of few bytes nobody may notice.
OPEN = ["EACCES", "EIO", "EMFILE", "ENFILE", "ENOMEM", "EINTR"]
STAT = ["EACCES", "EIO", "ENOMEM"]
NAMES = ["EACCES", "EIO", "ENOSPC", "EROFS"]
ACTS = {
    "open": OPEN, "openat": OPEN, "fopen": OPEN[:-1], "opendir": OPEN[:-1], "realpath": ["EACCES", "EIO", "ENOMEM"],
    "readdir": ["EIO", "ENOENT"], "stat": STAT, "lstat": STAT, "fstat": STAT, "fstatat": STAT, "access": ["EACCES", "EIO"],
    "read": ["EIO", "EINTR", "short"], "pread": ["EIO", "EINTR", "short"], "mmap": ["ENOMEM", "ENODEV", "EACCES", "EAGAIN"],
    "write": ["ENOSPC", "EIO", "EDQUOT", "EFBIG", "EINTR", "short"], "fsync": ["EIO", "ENOSPC", "EDQUOT", "EINTR"],
    "rename": NAMES, "renameat": NAMES, "renameat2": NAMES, "link": NAMES, "linkat": NAMES, "symlink": NAMES,
    "unlink": ["EACCES", "EIO"], "unlinkat": ["EACCES", "EIO"], "mkdir": NAMES, "mkdirat": NAMES, "fchmod": ["EPERM", "EIO"],
    "fallocate": ["ENOSPC", "EDQUOT", "EFBIG", "EIO", "EINTR", "EOPNOTSUPP", "ENOSYS"], "ftruncate": ["EIO", "EFBIG", "EINTR"],
    "flock": ["ENOSYS", "EINTR"], "close": ["EIO", "EINTR"],
}
KILLS = ["kill-before", "kill-after"]
UNNOTICED = {"EINTR", "short", "EOPNOTSUPP", "ENOSYS"}


class Case:
    """A command on files in a folder of its own: {} is that folder. `new`: the files that it makes or changes. `every`: no
    call is left out. `lines`: its lines fail one by one."""

    def __init__(self, name, *args, stdin="", files=(), new=(), old=(), every=False, lines=False):
        self.name, self.args, self.stdin, self.files, self.new, self.old = name, args, stdin, files, set(new), dict(old)
        self.n, self.every, self.lines = 0, every, lines

    def folder(self, root):
        self.n += 1
        folder = root / f"{self.name.replace(' ', '-')}.{self.n}"
        folder.mkdir(parents=True)
        for source in self.files:
            (shutil.copytree if source.is_dir() else shutil.copy)(source, folder / source.name)
        for name, data in self.old.items():
            (folder / name).write_bytes(data)
        return folder

    def start(self, root, **what):
        """(status, stdout, stderr, files) of a run; the shim's keys, or none: without it."""
        folder = self.folder(root)
        env = {**os.environ, "HOME": str(folder), "LC_ALL": "C", "OMP_WAIT_POLICY": "passive",
               **(shim.environment(None if what.get("only") == "malloc" else folder, **what) if what else {})}
        run = subprocess.run([shim.TINYGPT, *(a.replace("{}", str(folder)) for a in self.args)], input=self.stdin.encode(),
                             capture_output=True, timeout=120, env=env)
        out = re.sub(rb'(seconds|_second)": [0-9.e-]+', rb'\1": 0', run.stdout.replace(str(folder).encode(), b"{}"))
        files = {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
        shutil.rmtree(folder)
        return run.returncode, out, run.stderr.decode(errors="replace"), files

    def prepare(self, root):
        self.before = {p.relative_to(f).as_posix(): p.read_bytes() for f in [self.folder(root)] for p in f.rglob("*") if p.is_file()}
        status, self.out, err, self.after = self.start(root)
        assert status == 0, f"{self.name}: {status} {err}"
        changed = {name for name in self.after if self.after[name] != self.before.get(name)}
        assert changed == self.new, f"{self.name}: changes {changed}"

    def judge_files(self, wrong, files):
        """Each the old one or the new one."""
        for name in self.after.keys() | self.before.keys():
            if files.get(name) not in (self.before.get(name), self.after.get(name)):
                wrong(f"a bad {name}")

    def judge_lines(self, wrong, status, out, err):
        """Each line is what it should be, or says what failed, as stderr does."""
        for line, good in zip(out.splitlines(), self.out.splitlines()):
            if line != good and b'{"error": {"type": "server_error", "message": "out of memory' not in line:
                wrong(f"the line {line}")
        if (status != 0) != bool(err) or not all(line.startswith("tinygpt: error: ") for line in err.splitlines()):
            wrong("errors are not told")
        return status

    def judge(self, what, status, out, err, files, allowed):
        """Is this what may come of a failure? Returns the status."""
        def wrong(why):
            raise AssertionError(f"{self.name}: {what}: {why}: status {status}, stdout {out[-200:]!r}, stderr {err!r}")
        if status not in allowed:
            wrong(f"status should be one of {sorted(allowed)}")
        if self.lines:
            return self.judge_lines(wrong, status, out, err)
        if out != self.out if status == 0 else not self.out.startswith(out):
            wrong("other text")
        errors = [line for line in err.splitlines() if not line.startswith(("note: ", "warning: "))]
        if len(errors) != (status != 0) or not all(line.startswith("tinygpt: error: ") for line in errors):
            wrong("not one line of error")
        if set(files) - set(self.after) - set(self.before):
            wrong(f"left {sorted(set(files) - set(self.after))}")
        self.judge_files(wrong, files)
        if status == 0 and files != self.after:
            wrong("not all is there")
        return status


def sampled(points):
    """The first and the last of each kind."""
    groups = collections.defaultdict(list)
    for point in points:
        groups[point[0]].append(point)
    return [point for group in groups.values() for point in group[:1] + group[1:][-1:]]


def system_calls(case, root):
    calls = shim.calls(lambda log: case.start(root, log=log))
    points = [((name, act), i, path) for i, (name, path) in enumerate(calls, 1) for act in ACTS[name] + KILLS * bool(case.new)]
    seen = collections.Counter()

    def attempt(point):
        (name, act), i, path = point
        status, out, err, files = case.start(root, at=i, do=act)
        if act in KILLS:
            def wrong(why):
                raise AssertionError(f"{case.name}: {act} at call {i}, {name} of {path}: {why}")
            case.judge_files(wrong, files)
            return status == -9 or wrong(f"status {status}")
        allowed = {0} if act in UNNOTICED or name == "mmap" else {0, 7 if act in RESOURCES else 9}
        if name in ("stat", "lstat"): # what cannot be examined is opened all the same, and may be missing then
            allowed |= {3, 9}
        seen[case.judge(f"{act} at call {i} of {len(calls)}, {name} of {path}", status, out, err, files, allowed)] += 1
        if status and pathlib.Path(path).name not in err and path not in err and not any(n in err for n in case.new):
            raise AssertionError(f"{case.name}: {act} at {name} of {path}: the file is not named: {err}")

    points = points if FULL or case.every else sampled(points)
    shim.each(points, attempt, 4)
    for only, act in (("read,pread,__read_chk,write", "short"), ("mmap", "ENODEV")):
        status, out, err, files = case.start(root, only=only, at=1, do=act, **{"from": 1})
        case.judge(f"{act} at all calls of {only}", status, out, err, files, {0})
    print(f"{case.name}: {len(calls)} calls, {len(points)} failures of them: {dict(seen)}", flush=True)


# Those of OpenMP, of OpenBLAS with what it needs, and of the loader end the process or are told by another name: see R26.
SPARED = "libgomp,libomp,libopenblas,libgfortran,ld-linux"


def allocations(case, root):
    n = len(shim.calls(lambda log: case.start(root, only="malloc", spare=SPARED, log=log)))
    step = 1 if FULL else max(1, n // 12)
    seen = collections.Counter()

    def attempt(point):
        i, more = point
        status, out, err, files = case.start(root, only="malloc", spare=SPARED, at=i, do="ENOMEM", **more)
        seen[case.judge(f"allocation {i} of {n} {more}", status, out, err, files, {0, 7})] += 1
        if status and "out of memory" not in err and "Cannot allocate memory" not in err:
            raise AssertionError(f"{case.name}: allocation {i}: what was wanted is not told: {err}")

    points = [(i, more) for more in ({}, {"from": 1}) for i in range(1, n + 1, step)]
    shim.each(points, attempt, 4)
    print(f"{case.name}: {n} allocations, {len(points)} failures of them: {dict(seen)}", flush=True)


def cases(root):
    """Each with what it is tried for: calls of the system, allocations."""
    session = root / "s"
    text = root / "text"
    text.write_text("Once upon a time there was a king. " * 4)
    gen = ["generate", "-q", "-t", "1", "--temp", "0", "-n", "3"]
    subprocess.run([shim.TINYGPT, *gen, "-m", str(SMALL), "--session", str(session), "a"], check=True, capture_output=True)
    small = ["-m", "{}/" + SMALL.name]
    yield Case("generate", *gen, *small, "ab", files=[SMALL]), True, True
    yield Case("generate no mmap", *gen, *small, "--no-mmap", "ab", files=[SMALL]), True, True
    yield Case("generate interleave", *gen, *small, "--interleave", "ab", files=[SMALL]), True, True
    yield Case("generate folder", *gen, "-m", "{}/" + FOLDER.name, "ab", files=[FOLDER]), True, True
    yield Case("generate shards", *gen, "-m", "{}/" + SHARDS.name, "ab", files=[SHARDS]), True, True
    yield Case("generate json", *gen, "-m", str(TALES), "--json", "--logprobs", "2", "--stop", "x", "--lookup", "Once"), False, True
    yield Case("generate lines", *gen, "-m", str(TALES), "--each-line", "--jsonl", "--parallel", "2",
               stdin='{"prompt": "Once", "max_tokens": 2}\n{"prompt": "A", "stop": ["z"]}\n', lines=True), False, True
    yield Case("session new", *gen, *small, "--session", "{}/new", "ab", files=[SMALL], new=["new"]), True, True
    yield Case("session", *gen, *small, "--session", "{}/s", "ab", files=[SMALL, session], new=["s"],
               every=True), True, True
    yield Case("chat", "chat", "-q", "-t", "1", "--temp", "0", "-n", "3", "-m", str(TALES), "--chat-template", "chatml", "Hello"), \
        False, True
    yield Case("logits", "logits", "-q", "-t", "1", *small, "--ids", "1,2,3", "--all", "--format", "npy", "-o", "{}/o.npy",
               files=[SMALL], old={"o.npy": b"old"}, new=["o.npy"]), True, True
    yield Case("perplexity", "perplexity", "-q", "-t", "1", *small, "-c", "16", "-f", "{}/text", "--save-logits", "{}/l",
               files=[SMALL, text], new=["l"]), True, True
    yield Case("score", "score", "-q", "-t", "1", "-m", str(TALES), "--jsonl", stdin='{"prompt": "a", "continuation": " b"}\n'), \
        False, True
    yield Case("tokenize", "tokenize", "-m", str(TALES), "Once upon"), False, True
    yield Case("inspect", "inspect", "-m", "{}/" + SMALL.name, "--json", "--tensors", files=[SMALL]), True, True
    yield Case("inspect folder", "inspect", "-m", str(FOLDER), "--json"), False, True
    yield Case("quantize", "quantize", "-q", "-t", "1", "{}/" + SMALL.name, "{}/q.gguf", "--type", "Q4_0", "--requantize",
               files=[SMALL], new=["q.gguf"]), True, True
    yield Case("quantize folder", "quantize", "-q", "-t", "1", "{}/" + SHARDS.name, "{}/q.gguf", "--type", "F16",
               files=[SHARDS], new=["q.gguf"]), True, True


def main():
    wanted = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for case, has_calls, has_allocations in cases(root):
            if wanted and case.name not in wanted:
                continue
            case.prepare(root)
            if has_calls:
                system_calls(case, root)
            if has_allocations and not shim.ASAN:
                allocations(case, root)


main()
