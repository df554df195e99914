"""M01 to M60, A01 to A23 and the limits of the fault catalogue, end to end: forms.py [ROW ...].

Each case is a small edit of a valid model (support/model_files.py), written to a file and given to the program. Rejected
means: the exit status, one line of error that names the file and says what it should, nothing on stdout, no signal, no
file left behind, within a second and within the memory that the catalogue grants. Accepted means: the same bits as
the model before the edit.
"""
import multiprocessing
import os
import pathlib
import re
import resource
import shutil
import signal
import sys
import tempfile

import form_kit
import forms_accept  # noqa: F401, they fill CASES
import forms_folder  # noqa: F401
import forms_gguf  # noqa: F401
import forms_limits  # noqa: F401
import forms_token  # noqa: F401
from form_kit import CASES, LOGITS, apply
from model_files import Gguf, small_gguf

TINYGPT = os.path.abspath(os.environ.get("TINYGPT", "./tinygpt"))
ASAN = os.environ.get("MODE") == "asan"
SECONDS = 10 if ASAN else 1  # of processor time: ten times what the catalogue says
ROWS = [f"M{i:02d}" for i in range(1, 61)] + [f"A{i:02d}" for i in range(1, 24)]
ROWS += dict.fromkeys(case.row for case in CASES if case.row not in ROWS)  # the limits


def own_bytes():
    with open("/proc/self/statm", encoding="ascii") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")


class Run:
    """A process of tinygpt. The kernel counts the memory that it had before exec: what this one has, for it is forked."""

    def __init__(self, folder, args):
        self.before = own_bytes()
        files = [folder / name for name in ("out", "err")]
        pid = os.fork()
        if pid == 0:
            try:
                for fd, file in enumerate(files, 1):
                    os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), fd)
                os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
                resource.setrlimit(resource.RLIMIT_CPU, (20 * SECONDS, 20 * SECONDS))
                signal.alarm(300)  # what blocks ends, too
                os.execv(TINYGPT, ["tinygpt", *map(str, args)])
            finally:
                os._exit(126)
        _, status, usage = os.wait4(pid, 0)
        self.status = os.waitstatus_to_exitcode(status)
        self.seconds, self.bytes = usage.ru_utime + usage.ru_stime, usage.ru_maxrss << 10
        self.out, self.err = (file.read_bytes() for file in files)
        for file in files:
            file.unlink()


def n_bytes(path):
    files = [path] if path.is_file() else path.rglob("*") if path.is_dir() else []
    return sum(f.stat().st_size for f in files if f.is_file())


def tree(folder):
    return sorted((str(p), p.lstat().st_size) for p in folder.rglob("*"))


class Checker:
    def __init__(self, folder):
        self.folder, self.usual = folder, {}  # stdout by base and command
        self.look = self.looked = None  # a function of the model's path, and what it said
        self.floor = self.run(small_gguf(), "m.gguf", LOGITS)[0].bytes

    def run(self, made, name, command):
        """The model is written, used and removed. Its path, size and what else there is afterwards, beside the run."""
        path = self.folder / name
        made.save(path)
        before = tree(self.folder)
        verb, *options = command
        model = str(path / made.open) if getattr(made, "open", "") else str(path)
        options = [o.replace("{}", model) for o in options] if "{}" in options else ["-m", model, *options]
        run = Run(self.folder, [verb, *options, *(["-t", "1"] if verb in ("logits", "generate") else [])])
        changed = [name for name in set(tree(self.folder)) ^ set(before)]
        self.looked = self.look(path) if self.look else None
        size = n_bytes(path)
        for p in self.folder.iterdir():
            shutil.rmtree(p) if p.is_dir() and not p.is_symlink() else p.unlink()
        return run, path, size, changed

    def wrong(self, case):
        """What is wrong with it, or None."""
        run, path, size, changed = self.run(apply(case.edit, case.base()), case.name, case.command)
        said = run.err.decode(errors="backslashreplace")
        if changed:
            return f"files were changed: {changed}"
        if run.status < 0:
            return f"ended by signal {-run.status}"
        if run.status != case.status:
            return f"exit status {run.status}, should be {case.status}: {said!r}"
        if run.status == 3 and run.seconds > SECONDS:
            return f"took {run.seconds:.2f} s"
        usual = max(self.floor, run.before)
        if run.status == 3 and not ASAN and run.bytes > usual + max(size, 16 * min(size, case.json)) + (16 << 20):
            return f"took {run.bytes >> 20} MiB, where {size} bytes are read and {usual >> 20} MiB are usual"
        return (self.wrong_error if case.status == 3 else self.wrong_result)(run, said, path, case)

    def wrong_error(self, run, said, path, case):
        if run.out:
            return f"stdout has {run.out[:80]!r}"
        if not re.fullmatch(f"tinygpt: error: {re.escape(str(path))}(/[^:]*)?: [^\n]+\n", said):
            return f"should be one line of error that begins with the file: {said!r}"
        if not re.search(case.wanted, said):
            return f"should say {case.wanted!r}: {said!r}"
        return None

    def wrong_result(self, run, said, _, case):
        if not (re.search(case.wanted, said) if case.wanted else not said):
            return f"stderr should have {case.wanted!r}: {said!r}"
        if callable(case.out):
            good = case.out(run.out)
        elif case.out is not None:
            good = run.out == case.out.encode()
        else:
            base, command = case.like or (case.base, case.command)
            if (base, command) not in self.usual:
                made = base()
                self.usual[base, command] = self.run(made, "m.gguf" if isinstance(made, Gguf) else "model", command)[0].out
            good = (run.out == self.usual[base, command]) != case.differs
        return None if good else f"stdout is {run.out[:200]!r}"


def start(folder):
    global checker
    checker = Checker(pathlib.Path(tempfile.mkdtemp(dir=folder)))


def check(i):
    return checker.wrong(CASES[i])


def each(chosen, function):
    """Cases, by their numbers, with what the function of the number says, on all processors."""
    folder = tempfile.mkdtemp(prefix="forms")
    try:
        with multiprocessing.get_context("fork").Pool(len(os.sched_getaffinity(0)), start, (folder,)) as pool:
            yield from zip(map(CASES.__getitem__, chosen), pool.imap(function, chosen, 4))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main(rows):
    failed, held = 0, {row: [] for row in ROWS}
    for case, wrong in each([i for i, case in enumerate(CASES) if not rows or case.row in rows], check):
        held[case.row].append(wrong is None)
        failed += wrong is not None
        if wrong:
            print(f"FAIL {case.row} {case.what}: {wrong}", flush=True)
    for row in rows or ROWS:
        if not held[row]:
            failed += 1
            print(f"FAIL {row}: has no case")
    for kind, what in (("M", "rejected"), ("A", "accepted"), ("limit", "limits, at and past them")):
        mine = [row for row in ROWS if row.startswith(kind)]
        good = [row for row in mine if held[row] and all(held[row])]
        print(f"{kind} {len(good)} of {len(mine)} {what}, by {sum(len(held[row]) for row in mine)} files")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
