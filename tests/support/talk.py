"""Talks with a command on a pseudo-terminal: talk.py COMMAND... <STEPS. A step is a line: "< TEXT" waits until TEXT has
come since the last step, "> TEXT" types it, both with Python's escapes. Copies what comes to stdout, and exits as the
command did, with 128 + its number where a signal ended it."""
import ast
import fcntl
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time

SECONDS = 30


def on_own_terminal():
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


steps = [line.rstrip("\n") for line in sys.stdin]
ours, theirs = pty.openpty()
signal.signal(signal.SIGINT, signal.SIG_DFL)  # a background job ignores it, and so would what it starts
process = subprocess.Popen(sys.argv[1:], stdin=theirs, stdout=theirs, stderr=theirs, preexec_fn=on_own_terminal)
os.close(theirs)
seen, at, ended = b"", 0, False


def read(until):
    """More of what comes, until `until` is there, or the end."""
    global seen, ended
    deadline = time.monotonic() + SECONDS
    while not ended and (until is None or until not in seen[at:]):
        if time.monotonic() > deadline:
            print(f"\nwaited in vain for {until!r} behind {seen[at:]!r}", file=sys.stderr)
            process.kill()
            sys.exit(99)
        if select.select([ours], [], [], 0.05)[0]:
            try:
                seen += os.read(ours, 65536)
            except OSError:  # EIO: the other end is closed
                ended = True


for step in steps:
    text = ast.literal_eval('"' + step[2:].replace('"', '\\"') + '"').encode()
    if step[0] == "<":
        read(text)
        at = seen.find(text, at) + len(text) if text in seen[at:] else len(seen)
    else:
        os.write(ours, text)
read(None)
status = process.wait()
sys.stdout.buffer.write(seen)
sys.stdout.flush()
sys.exit(status if status >= 0 else 128 - status)
