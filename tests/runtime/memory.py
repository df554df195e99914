"""Long runs at constant memory, and one copy of a model for many processes. LONG=SECONDS is how long each run takes
when it is warm (2 by default), and a file that FIGURES names gets the samples."""
import concurrent.futures
import fcntl
import json
import os
import pty
import random
import re
import select
import subprocess
import termios
import threading
import time

from process import MODEL, PROGRAM, check, done, end, folder, start

LONG = float(os.environ.get("LONG", 2))
WARM = 300  # lines, or 30 turns of a chat, after which every buffer has been used
KIB_MORE = 1024  # that a process may have at the end more than after a tenth of the time
WORDS = "the fox said to a hen once upon time there was king who had three daughters and one day he went into forest".split()
figures = open(os.environ["FIGURES"], "w") if "FIGURES" in os.environ else None


def resident(pid):
    """KiB, without the model's pages, which come as they are read."""
    text = open(f"/proc/{pid}/status").read()
    return sum(int(re.search(name + r":\s+(\d+)", text)[1]) for name in ("RssAnon", "RssShmem"))


def prompts(seed):
    """Of all lengths; some that many have in common, and some that are wrong."""
    draw = random.Random(seed)
    while True:
        n = draw.choice((1, 3, 8, 20, 60))
        yield " ".join(draw.choice(WORDS) for _ in range(n)) + draw.choice(("", ".", " é", " \x07", '"'))


def judge(name, samples, n_done, warm_part=0.1):
    """samples: (seconds, KiB)."""
    warm = [kib for at, kib in samples if at >= LONG * warm_part][:1]
    after = [kib for at, kib in samples if at >= LONG * 0.9]
    for at, kib in samples if figures else []:
        print(name, f"{at:.1f}", kib, file=figures)
    if not warm or not after or n_done < 20:
        check(False, f"{name}: {len(samples)} samples, {n_done} answers")
        return
    more = max(after) - warm[0]
    print(f"{name}: {n_done} answers in {samples[-1][0]:.0f} s, {warm[0]} KiB after {warm_part:.0%} of them, {max(after)} KiB in the end")
    check(more <= KIB_MORE, f"{name}: {more} KiB more: {samples[:: max(1, len(samples) // 20)]}")


# ---- lines --------------------------------------------------------------------------------------------


def run_lines(name, words, line):
    """Feeds lines for LONG seconds, as fast as they are taken."""
    process = start(*words, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
    samples, n_done, fed, begun = [], [0], threading.Event(), 0

    def feed():
        try:
            for text in prompts(1):
                if begun and time.monotonic() > begun + LONG:
                    break
                process.stdin.write(line(text))
        except OSError:
            pass
        fed.set()
        process.stdin.close()

    def count():
        for _ in process.stdout:
            n_done[0] += 1

    threads = [threading.Thread(target=feed, daemon=True), threading.Thread(target=count, daemon=True)]
    for t in threads:
        t.start()
    deadline = time.monotonic() + 60
    while n_done[0] < WARM and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.01)
    begun = time.monotonic()
    while not fed.is_set():
        time.sleep(min(LONG / 200, 5))
        samples.append((time.monotonic() - begun, resident(process.pid)))
    threads[1].join(120)
    process.wait(60)
    check(process.returncode in (0, 2), f"{name}: status {process.returncode}")
    judge(name, samples, n_done[0])


def as_json(text):
    return json.dumps({"prompt": text, "max_tokens": len(text) % 9, "logprobs": len(text) % 3 or None, "stop": ["."],
                       "n": 1 + len(text) % 2}).encode() + b"\n"


# ---- chat --------------------------------------------------------------------------------------------------


def run_chat(name, *more):
    """Types messages for LONG seconds, each when the last is answered."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen([PROGRAM, "chat", "-q", "-t", "1", "--chat-template", "chatml", "-c", "512", "-n", "12", *more], stdin=theirs,
                               stdout=theirs, stderr=theirs, env=os.environ | {"TERM": "dumb"},
                               preexec_fn=lambda: (os.setsid(), fcntl.ioctl(0, termios.TIOCSCTTY, 0)))
    os.close(theirs)
    begun, samples, n_done = 0, [], 0

    def until(text):
        seen, deadline = b"", time.monotonic() + 300
        while text not in seen[-4096:]:
            if not select.select([ours], [], [], 1)[0]:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{name}: waited for {text!r} behind {seen[-200:]!r}")
                continue
            seen += os.read(ours, 65536)
    try:
        until(b">>> ")
        for text in prompts(2):
            if begun and time.monotonic() > begun + LONG:
                break
            os.write(ours, text[:200].replace("\x07", "").encode() + b"\r")
            until(b"\n>>> ")
            n_done += 1
            if n_done == WARM // 10:
                begun = time.monotonic()
            if begun and (not samples or time.monotonic() - begun > samples[-1][0] + min(LONG / 200, 5)):
                samples.append((time.monotonic() - begun, resident(process.pid)))
        os.write(ours, b"\x04")
    except (TimeoutError, OSError) as error:
        check(False, f"{name}: {error}")
        process.kill()
    while True:
        try:
            if not os.read(ours, 65536):
                break
        except OSError:
            break
    os.close(ours)
    check(process.wait(60) == 0, f"{name}: status {process.returncode}")
    judge(name, samples, n_done, 0.5)  # what malloc keeps of its many sizes settles after thousands of turns


# ---- shared pages ----------------------------------------------------------------------------------------


def share_of(pid, path):
    """KiB of the mapping of a file: its proportional share, and what is resident of it."""
    pss = rss = 0
    of_file = False
    for line in open(f"/proc/{pid}/smaps"):
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            of_file = line.rstrip("\n").endswith(str(path))
        elif of_file and line.startswith("Pss:"):
            pss += int(line.split()[1])
        elif of_file and line.startswith("Rss:"):
            rss += int(line.split()[1])
    return pss, rss


def share(model, n=10):
    """n processes that have all evaluated something with one model, and wait."""
    size = os.path.getsize(model) / 1024
    processes = [start("generate", "-q", "-t", "1", "--each-line", "--temp", "0", "-n", "4", "-m", model, stdin=subprocess.PIPE)
                 for _ in range(n)]
    for p in processes:
        p.stdin.write(b"Once upon a time\n")
        p.stdin.flush()
    check(len({p.stdout.readline() for p in processes}) == 1, "all say the same")
    shares = [share_of(p.pid, model) for p in processes]
    for p in processes:
        p.stdin.close()
        p.stdin = None
        end(p)
    pss, rss = sum(s[0] for s in shares), sum(s[1] for s in shares)
    print(f"{n} processes with {os.path.basename(model)} of {size:.0f} KiB: {pss} KiB of it together, {rss} KiB if each had its own")
    check(rss > n * size * 0.8, f"the model is in use: {shares}")
    check(pss < size * 1.1 + 16 * n, f"its pages are shared: {shares}")


model = os.environ.get("SHARED_MODEL", MODEL)
share(os.path.realpath(model))
EACH = ["generate", "-q", "-t", "1", "--seed", "1", "-n", "8", "--parallel", "4", "--each-line"]
runs = [(run_lines, "generate --each-line", EACH, lambda text: text.encode() + b"\n"),
        (run_lines, "generate --each-line --jsonl", [*EACH, "--jsonl", "--lookup"], as_json),
        (run_lines, "score", ["score", "-q", "-t", "1", "-c", "128", "-b", "128", "-p", "Once upon a time"], lambda text: text.encode() + b"\n"),
        *[(run_chat, "chat")] * (LONG >= 600)]
with concurrent.futures.ThreadPoolExecutor(len(runs)) as beside:  # hours of each are hours in all
    for run in [beside.submit(*run) for run in runs]:
        run.result()
done()
