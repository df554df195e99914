"""A terminal of a given size: runs a command on it and keeps what its screen shows. It knows what tinygpt
writes, and fails on any other control sequence."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time


class Screen:
    def __init__(self, columns=80, rows=24):
        self.columns, self.rows = columns, rows
        self.lines, self.y, self.x, self.wraps = [""], 0, 0, True
        self.rest = ""
        self.escapes = self.styles = 0

    def put(self, c):
        if self.x >= self.columns and self.wraps:
            self.newline()
            self.x = 0
        at = min(self.x, self.columns - 1)
        line = self.lines[self.y].ljust(at)
        self.lines[self.y] = line[:at] + c + line[at + 1 :]
        self.x = at + 1

    def newline(self):
        self.y += 1
        if self.y == len(self.lines):
            self.lines.append("")

    def feed(self, text):
        text, self.rest = self.rest + text, ""
        while text:
            if text[0] == "\x1b":
                found = re.match(r"\x1b\[(\??)(\d*)(?:;\d+)*([A-Za-z])", text)
                if not found:
                    assert len(text) < 8, f"an unknown sequence: {text[:16]!r}"
                    self.rest = text
                    return
                self.escapes += 1
                self.control(*found.groups())
                text = text[found.end() :]
                continue
            if text[0] == "\r":
                self.x = 0
            elif text[0] == "\n":
                self.newline()
            else:
                assert text[0] >= " ", f"a control character: {text[:16]!r}"
                self.put(text[0])
            text = text[1:]

    def control(self, mark, number, letter):
        n = int(number or 0)
        if letter == "A":
            # what has scrolled away cannot be reached
            self.y = max(self.y - max(n, 1), 0, len(self.lines) - self.rows)
        elif letter == "K" and n == 0:
            self.lines[self.y] = self.lines[self.y][: self.x]
        elif letter == "J" and n == 0:
            self.lines[self.y] = self.lines[self.y][: self.x]
            del self.lines[self.y + 1 :]
        elif mark and n == 7 and letter in "lh":
            self.wraps = letter == "h"
        elif letter == "m":
            self.styles += 1
        else:
            raise AssertionError(f"an unknown sequence: {mark}{number}{letter}")

    def text(self):
        return "\n".join(line.rstrip() for line in self.lines).rstrip("\n")


def run(args, columns=80, rows=24, env=None, watch=None, timeout=60):
    """Runs a command whose stderr is the terminal; returns (status, stdout, screen). watch(screen, process) is
    called after every piece of output."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    process = subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=theirs, env=env,
                               # a background job ignores Ctrl-C, and so would what it starts
                               preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    os.close(theirs)
    screen, end = Screen(columns, rows), time.monotonic() + timeout
    while time.monotonic() < end:
        if not select.select([ours], [], [], 1)[0]:
            continue
        try:
            data = os.read(ours, 65536)
        except OSError:  # EIO: the other end is closed
            break
        screen.feed(data.decode())
        if watch:
            watch(screen, process)
    os.close(ours)
    stdout = process.stdout.read()
    return process.wait(5), stdout, screen
