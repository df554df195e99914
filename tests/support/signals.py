"""Sends signals to a running tinygpt: signals.py PROGRAM. Prints what went wrong."""
import array
import fcntl
import os
import signal
import subprocess
import sys
import termios
import time

PROGRAM = sys.argv[1]
RUN = [PROGRAM, "generate", "-n", "150", "--temp", "0", "--ignore-eos", "Once upon a time"]
failures = []


def start(args, ignored=None, **more):
    def prepare():
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN if number == ignored else signal.SIG_DFL)

    return subprocess.Popen(args, stdout=more.pop("stdout", subprocess.PIPE), stderr=subprocess.PIPE, preexec_fn=prepare,
                            stdin=more.pop("stdin", subprocess.DEVNULL), **more)


def check(what, good):
    if not good:
        failures.append(what)


def finished(process, seconds=20):
    try:
        return process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return None, None


reference, _ = finished(start(RUN), 120)
check("the reference run gives text", reference)

# 1. each signal, in the middle of the text: stop, exit 128 + number, what was written is a prefix
for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)):
    process = start(RUN)
    first = os.read(process.stdout.fileno(), 1)
    process.send_signal(number)
    out, err = finished(process)
    check(f"{number.name}: status {process.returncode}, not {status}", process.returncode == status)
    check(f"{number.name}: stderr {err!r}", err == b"")
    check(f"{number.name}: the text is cut, not changed", out is not None and reference.startswith(first + out))

# 2. while the reader does not read, so that a write blocks
reader, writer = os.pipe()
room = fcntl.fcntl(writer, getattr(fcntl, "F_SETPIPE_SZ", 1031), 4096)  # before there is more in it
process = start([*RUN[:-1], "-q", "-c", "8192", "--echo", "Once upon a time " * 300], stdout=writer)
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
finished(process)
check(f"blocked write: status {process.returncode}, not 130", process.returncode == 130)

# 3. while it waits for its prompt
process = start(RUN[:-1], stdin=subprocess.PIPE)
time.sleep(0.5)
process.send_signal(signal.SIGINT)
try:
    check("waiting for stdin: status 130", process.wait(20) == 130)
except subprocess.TimeoutExpired:
    process.kill()
    check("waiting for stdin: ends", False)
process.communicate()

# 4. ignored by the parent, as under nohup: goes on
process = start(RUN, ignored=signal.SIGHUP)
first = os.read(process.stdout.fileno(), 1)
process.send_signal(signal.SIGHUP)
out, _ = finished(process, 120)
check("SIGHUP ignored: status 0", process.returncode == 0)
check("SIGHUP ignored: the whole text", first + out == reference)

# 5. stopped and continued: the text is the same
process = start(RUN)
first = os.read(process.stdout.fileno(), 1)
for _ in range(3):
    process.send_signal(signal.SIGSTOP)
    time.sleep(0.05)
    process.send_signal(signal.SIGCONT)
    time.sleep(0.05)
out, _ = finished(process, 120)
check("stop and continue: status 0", process.returncode == 0)
check("stop and continue: the same text", first + out == reference)

# 6. logits -o: interrupted, the file is not there
target = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"tinygpt-signal-{os.getpid()}.json")
process = start([PROGRAM, "logits", "--ids", " ".join(["1"] * 400), "--all", "--format",
                 "json", "-o", target])
time.sleep(0.3)
process.send_signal(signal.SIGINT)
finished(process)
if process.returncode == 130:  # else it was done before
    check("interrupted -o leaves no file", not os.path.exists(target))
if os.path.exists(target):
    os.remove(target)
folder, name = os.path.split(target)
left = [f for f in os.listdir(folder) if f.startswith("." + name)]
check(f"interrupted -o leaves {left}", not left)

for line in failures:
    print("FAIL:", line)
sys.exit(1 if failures else 0)
