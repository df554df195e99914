"""What pull shows while it fetches: pull_progress.py PROGRAM. Prints what went wrong."""
import concurrent.futures
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

import screen
from hub_faults import slow
from hub_server import Hub

PROGRAM = sys.argv[1]
MIB = 1 << 20
failures = []
random.seed(1)
FILES = {"config.json": b'{"model_type": "none"}', "tokenizer.json": b"{}" * 1000,
         "model-00001-of-00002.safetensors": random.randbytes(3 * MIB),
         "model-00002-of-00002.safetensors": random.randbytes(2 * MIB)}
FILES["model.safetensors.index.json"] = (
    b'{"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}')
MODEL = pathlib.Path("models/tales.gguf").read_bytes()


def check(what, good):
    if not good:
        failures.append(what)


def environment(hub, cache):
    names = ("HF_", "XDG_CACHE", "http", "HTTP", "no_proxy", "NO_PROXY", "TINYGPT_MODEL")
    return ({k: v for k, v in os.environ.items() if not k.startswith(names)}
            | dict(HF_ENDPOINT=hub.url["hub"], HF_HUB_CACHE=str(cache), HF_HOME=str(cache), HOME=str(cache), TERM="xterm"))


def on_terminal(hub, folder, columns, rows):
    """Several files at once: every state of the screen fits it, and in the end one line for each file is left."""
    seen = []

    def watch(shown, process):
        lines = [line for line in shown.text().split("\n") if "%" in line]
        check(f"{columns} columns: {len(lines)} lines of progress", len(lines) <= min(rows, 9))
        check(f"{columns} columns: {lines}", all(len(line) < columns for line in lines))
        seen.append(shown.text())

    cache = folder / f"columns-{columns}"
    status, out, shown = screen.run([PROGRAM, "pull", "owner/parts"], columns, rows, environment(hub, cache), watch)
    check(f"{columns} columns: status {status}: {shown.text()}", status == 0)
    check(f"{columns} columns: stdout {out}", out.endswith(b"\n") and pathlib.Path(out[:-1].decode()).is_dir())
    left = shown.text().replace("\n", "")
    check(f"{columns} columns: this is left: {shown.text()}",
          left.count("tinygpt: fetched ") == len(FILES) and "%" not in left and left.count("tinygpt:") == len(FILES))
    check(f"{columns} columns: the margins are as they were", shown.wraps)
    # both large files and all together, with numbers that grow
    steps = [text for text in seen if text.count("%") >= 3]
    check(f"{columns} columns: two files at once and a total: {seen}", len(steps) > 3)
    if columns >= 60 and steps:
        last = steps[-1].split("\n")[-1]
        check(f"the total: {last!r}", " of 5 files" in last and "/5.00 MiB" in last and "/s" in last and "0:0" in last)


def elsewhere(hub, folder):
    """No terminal: a line for each file; fetched, then cached. Under -q nothing at all."""
    env = environment(hub, folder / "elsewhere")
    for word in ("fetched", "cached "):
        done = subprocess.run([PROGRAM, "pull", "owner/small"], env=env, capture_output=True, text=True)
        check(f"elsewhere: {done}", done.returncode == 0 and len(done.stdout.split("\n")) == 2)
        check(f"elsewhere: {done.stderr}", re.fullmatch(rf"tinygpt: {word} tales.gguf \(6.90 MiB.*\)\n", done.stderr))
    env = environment(hub, folder / "quiet")
    done = subprocess.run([PROGRAM, "pull", "-q", "owner/small"], env=env, capture_output=True, text=True)
    check(f"quiet: {done}", done.returncode == 0 and done.stdout.endswith(".gguf\n") and done.stderr == "")
    env = environment(hub, folder / "quiet-terminal")
    status, out, shown = screen.run([PROGRAM, "pull", "owner/parts", "-q"], env=env)
    check(f"quiet on a terminal: {shown.text()}", status == 0 and shown.text() == "" and shown.escapes == 0)


def interrupted(hub, folder):
    """Ctrl-C in the middle: 130 within a second, what is here stays, and the next run goes on with it."""
    env = environment(hub, folder / "interrupted")
    sent = []

    def watch(shown, process):
        percent = [int(word[:-1]) for word in shown.text().split() if word.endswith("%")]
        if not sent and percent and percent[-1] >= 20:
            sent.append(time.monotonic())
            process.send_signal(signal.SIGINT)

    status, out, shown = screen.run([PROGRAM, "pull", "owner/large"], env=env, watch=watch)
    check(f"interrupted: status {status}: {shown.text()}", status == 130 and out == b"")
    check("interrupted: never", sent)
    check("interrupted: slow to stop", not sent or time.monotonic() - sent[0] < 2)
    check(f"interrupted: {shown.text()!r}", "tinygpt: stopped: " in shown.text() and "the same command" in shown.text()
          and "%" not in shown.text() and "error" not in shown.text())
    seen = []
    status, out, shown = screen.run([PROGRAM, "pull", "owner/large"], env=env,
                                    watch=lambda shown, _: seen.append(shown.text()))
    check(f"resumed: status {status}: {shown.text()}", status == 0 and shown.text().startswith("tinygpt: resumed model"))
    check(f"resumed: {seen}", any(" from " in text for text in seen))
    check("resumed: the bytes", pathlib.Path(out[:-1].decode()).read_bytes() == LARGE["model-Q8_0.gguf"])


def generate(hub, folder):
    """-m hf:REPO fetches, starts, and the next time does without a request; so do other names of it."""
    env = environment(hub, folder / "generate")
    run = [PROGRAM, "generate", "-n", "5", "--temp", "0", "Once upon a time", "-m"]
    want = subprocess.run([*run, "models/tales.gguf"], stdin=subprocess.DEVNULL, env=env, capture_output=True).stdout
    for name in ("hf:owner/small", "hf:owner/small", "owner/small", "hf:owner/small:tales.gguf", "owner/small:tales.gguf"):
        before = len(hub.seen())
        done = subprocess.run([*run, name], stdin=subprocess.DEVNULL, env=env, capture_output=True)
        check(f"{name}: {done}", done.returncode == 0 and done.stdout == want)
        if before:
            check(f"{name}: {done.stderr}", done.stderr == b"" and len(hub.seen()) == before)
        else:
            check(f"{name}: {done.stderr}", done.stderr.startswith(b"tinygpt: fetched tales.gguf (6.90 MiB"))
    done = subprocess.run([*run[:-1], "-q"], stdin=subprocess.DEVNULL, env=env | {"TINYGPT_MODEL": "hf:owner/small"},
                          capture_output=True)
    check(f"TINYGPT_MODEL: {done}", done.stdout == want and done.stderr == b"")
    done = subprocess.run([*run, "hf:owner/none"], stdin=subprocess.DEVNULL, env=env, capture_output=True)
    check(f"a repository that is not there: {done}", done.returncode == 5 and done.stderr.count(b"\n") == 1)


LARGE = {"model-Q8_0.gguf": b"GGUF" + random.randbytes(6 * MIB)}
with tempfile.TemporaryDirectory() as scratch:
    scratch = pathlib.Path(scratch)
    hubs, jobs = [], []
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for name, job, *more in (("a", on_terminal, 80, 24), ("b", on_terminal, 40, 10), ("c", on_terminal, 24, 24),
                                 ("d", elsewhere), ("e", interrupted), ("f", generate)):
            folder = scratch / name
            folder.mkdir()
            hub = Hub(folder)
            hub.repo("owner/parts", FILES)
            hub.repo("owner/small", {"tales.gguf": MODEL})
            hub.repo("owner/large", LARGE)
            if job in (on_terminal, interrupted):
                hub.on("GET", "*", slow(2 * MIB if job == interrupted else MIB), at="cdn")
            hubs.append(hub)
            jobs.append(pool.submit(job, hub, folder, *more))
        for job in jobs:
            job.result()
    for hub in hubs:
        hub.close()

for line in failures:
    print(line)
sys.exit(1 if failures else 0)
