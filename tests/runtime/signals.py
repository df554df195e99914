"""R03 to R05, R28: signals to a running tinygpt, and a model file that is cut short beneath it."""
import array
import fcntl
import json
import os
import pathlib
import shutil
import signal
import subprocess
import termios
import time

from process import MODEL, PROGRAM, ROOT, SIGNALS, check, done, end, folder, run, start

TEXT = ["generate", "-n", "480", "--temp", "0", "--ignore-eos", "Once upon a time"]
where = folder()
reference = run(*TEXT, seconds=120).out
check(reference, "the reference run gives text")


def first_byte(process):
    return os.read(process.stdout.fileno(), 1)


# ---- R03, R04: each signal, in the middle of the text ----------------------------------------------

for number in SIGNALS:
    process = start(*TEXT)
    first = first_byte(process)
    process.send_signal(number)
    ended = end(process)
    check(ended.status == 128 + number and ended.err == b"", f"R03, R04 {number.name}: {ended}")
    check(reference.startswith(first + ended.out), f"R03 {number.name}: the text is cut, not changed")

# and of every command that takes its time; JSON stays JSON
long = where / "long"
long.write_text("Once upon a time there was a king. " * 20000)
lines = where / "lines"
lines.write_text("Once upon a time there was a king.\n" * 20000)
endless = "/dev/zero"  # a line without an end
for words in (["generate", "-q", "--each-line", "-f", lines], ["perplexity", "-f", long],
              ["generate", "-q", "--each-line", "-f", endless], ["generate", "-q", "--each-line", "--jsonl", "-f", endless],
              ["score", "-f", endless], ["perplexity", "-f", endless],
              ["score", "-p", "Once", "-f", lines], ["bench", "-q", "-p", "0", "-n", "500", "-r", "500", "-t", "1"],
              ["chat", "-q", "--chat-template", "chatml", "--logit-bias", "0-10000", "Tell a tale"],
              ["quantize", MODEL, where / "q", "--type", "Q4_K_M", "--requantize", "-q"],
              ["logits", "--ids", "1 " * 8000, "-c", "8000", "-b", "8192"]):
    process = start(*words)
    if words[0] == "chat": # whose context is soon full
        first_byte(process)
    else:
        time.sleep(0.15 if words[0] == "quantize" else 0.5)
    late = process.poll() is not None
    process.send_signal(signal.SIGTERM)
    ended = end(process)
    # R03: within a layer of the largest batch that there is, too
    late = late or (words[0] == "quantize" and ended.status == 0) # done in the same moment
    check(late or (ended.status == 143 and ended.err.count(b"error") == 0 and ended.seconds < 20), f"R04 {words[0]}: {ended}")
    check(not late or words[0] == "quantize", f"R04 {words[0]} was done before: {ended}")
    check(late or not (where / "q").exists(), f"R04 {words[0]}: nothing of what was not finished")
    (where / "q").unlink(missing_ok=True)

# R03: a second one ends it at once, and a file that was not finished is not left
for words, target in ((["logits", "--ids", "1 " * 400, "--all", "--format", "json", "-o"], where / "out"),
                      (["quantize", MODEL, "--type", "Q4_K_M", "--requantize", "-q"], where / "out"),
                      (["generate", "-q", "-n", "400", "--ignore-eos", "Once", "--session"], where / "out")):
    for delay in (0.05, 0.15):
        process = start(*words, target)
        time.sleep(delay)
        process.send_signal(signal.SIGSTOP)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGCONT)
        ended = end(process)
        check(ended.status in (0, 128 + signal.SIGINT, 128 + signal.SIGHUP) and ended.seconds < 20, f"R03 twice: {words[0]}: {ended}")
        left = [p.name for p in where.iterdir() if p.name.startswith(".")]
        check(not left, f"R03 twice: {words[0]} leaves {left}")
        target.unlink(missing_ok=True)

# R03: the first one, too, leaves no half of a file; a whole one, if it was done in the same moment
LOGITS = ["logits", "--ids", "1 " * 400, "--all", "--format", "json", "-o"]
check(end(start(*LOGITS, where / "whole")).status == 0, "R03: a whole file")
process = start(*LOGITS, where / "half")
time.sleep(0.2)
process.send_signal(signal.SIGINT)
ended = end(process)
there = (where / "half").exists()
check(ended.status in (0, 130) and (there or ended.status == 130), f"R03: half a file: {ended}")
check(not there or (where / "half").read_bytes() == (where / "whole").read_bytes(), f"R03: half a file: {ended}")
check(not [p for p in where.iterdir() if p.name.startswith(".half")], "R03: a temporary file")

# R03: while the reader does not read, so that a write blocks
reader, writer = os.pipe()
room = fcntl.fcntl(writer, getattr(fcntl, "F_SETPIPE_SZ", 1031), 4096)  # before there is more in it
process = start(*TEXT[:-1], "-q", "-c", "8192", "--echo", "Once upon a time " * 300, stdout=writer)
os.close(writer)
process.stdout = os.fdopen(reader, "rb")
waiting = array.array("i", [0])
for _ in range(200):
    fcntl.ioctl(process.stdout, termios.FIONREAD, waiting)
    if waiting[0] >= room - 64:
        break
    time.sleep(0.05)
time.sleep(0.2)
process.send_signal(signal.SIGINT)
ended = end(process)
check(ended.status == 130, f"R03: a blocked write: {ended}")

# R03: while it waits for its prompt
process = start(*TEXT[:-1], stdin=subprocess.PIPE)
time.sleep(0.5)
process.send_signal(signal.SIGINT)
try:
    check(process.wait(20) == 130, "R03: waiting for stdin: status 130")
except subprocess.TimeoutExpired:
    process.kill()
    check(False, "R03: waiting for stdin: it ends")
process.communicate()

# R04: what the parent ignores, as nohup does, stays ignored
process = start(*TEXT, prepare=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
first = first_byte(process)
process.send_signal(signal.SIGHUP)
ended = end(process, seconds=120)
check(ended.status == 0 and first + ended.out == reference, f"R04: SIGHUP ignored: {ended}")

# ---- R05: stopped and continued, and counts that are short -------------------------------------------

process = start(*TEXT)
first = first_byte(process)
for _ in range(3):
    process.send_signal(signal.SIGSTOP)
    time.sleep(0.05)
    process.send_signal(signal.SIGCONT)
    time.sleep(0.05)
ended = end(process, seconds=120)
check(ended.status == 0 and first + ended.out == reference, f"R05: stop and continue: {ended}")

# a prompt that comes byte by byte, while its reader is stopped again and again
process = start(*TEXT[:-1], stdin=subprocess.PIPE)
for byte in TEXT[-1].encode():
    process.stdin.write(bytes([byte]))
    process.stdin.flush()
    process.send_signal(signal.SIGSTOP)
    process.send_signal(signal.SIGCONT)
process.stdin.close()
process.stdin = None
ended = end(process, seconds=120)
check(ended.status == 0 and ended.out == reference, f"R05: a prompt in pieces: {ended}")

# every read and write in halves, or interrupted once
shim = ROOT / os.environ.get("BUILD", "build/release") / "tests/support/syscalls.so"
if shim.exists():
    for act in ({"SYSCALLS_DO": "short", "SYSCALLS_AT": "1", "SYSCALLS_FROM": "1"},
                *({"SYSCALLS_DO": "EINTR", "SYSCALLS_AT": str(at)} for at in (1, 20))):
        preloaded = os.environ | act | {"LD_PRELOAD": str(shim), "SYSCALLS_ONLY": "read,pread,write,pwrite",
                                        "ASAN_OPTIONS": "verify_asan_link_order=0"}
        ended = run(*TEXT, "--no-mmap", env=preloaded, seconds=120)
        check(ended.status == 0 and ended.out == reference, f"R05: {act}: {ended}")

# ---- R28: the model is cut short while it is mapped: one line and status 9, however many threads find out ---

for attempt in range(8):
    shutil.copy(MODEL, where / "model")
    words = ["logits", "--ids", "1 " * 3000, "-c", "3000", "-b", "16", "--all", "-o", where / "out"] if attempt % 4 == 3 else TEXT
    process = start(*words, "-t", "4", "-q", "-m", where / "model")
    if words is TEXT:
        first_byte(process)
    else:
        time.sleep(0.3)
    os.truncate(where / "model", 4096)
    ended = end(process)
    line = f"{where}/model: was cut short while in use, or its disk fails (--no-mmap reads it first)\n".encode()
    check(ended.status == 9 and ended.one_error() and ended.err.endswith(b": " + line), f"R28: {ended}")
    check(not (where / "out").exists() and not [p for p in where.iterdir() if p.name.startswith(".")], "R28: nothing is left")

# of several files, the one that was cut is told; no advice where there is no such option
shards = where / "shards"
shutil.copytree(ROOT / "tests/golden/llama-shards", shards)
cut = sorted(shards.glob("*.safetensors"))[-1]
process = start("generate", "-m", shards, "-q", "-c", "512", "-n", "400", "--ignore-eos", "--each-line", stdin=subprocess.PIPE)
process.stdin.write(b"a\n")
process.stdin.flush()
first_byte(process)
os.truncate(cut, 0)
ended = end(process, text=b"b\n")
line = f"tinygpt: error: {cut}: was cut short while in use, or its disk fails (--no-mmap reads it first)\n"
check(ended.status == 9 and ended.err == line.encode(), f"R28: {ended}")
shutil.copy(MODEL, where / "model")
process = start("quantize", "--requantize", where / "model", where / "out", "--type", "Q2_K", "-t", "1")
while process.poll() is None and f"{where}/model" not in pathlib.Path(f"/proc/{process.pid}/maps").read_text():
    pass
os.truncate(where / "model", 0)
ended = end(process)
line = f"tinygpt: error: {where}/model: was cut short while in use, or its disk fails\n"
check(ended.status == 9 and ended.err == line.encode(), f"R28: {ended}")
check(not (where / "out").exists() and not [p for p in where.iterdir() if p.name.startswith(".")], "R28: nothing is left")
shutil.copy(MODEL, where / "model")
process = start(*TEXT, "--no-mmap", "-m", where / "model")
first = first_byte(process)
os.truncate(where / "model", 4096)
ended = end(process, seconds=120)
check(ended.status == 0 and first + ended.out == reference, f"R28: --no-mmap is immune: {ended}")
done()
