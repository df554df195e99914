"""Runs a command with stdout on a raw pseudo-terminal and copies what arrives there to its own stdout:
on_terminal.py [-i] COMMAND...; with -i its stdin is the terminal too. Exits as the command did."""
import os
import pty
import subprocess
import sys
import tty

args = sys.argv[1:]
with_stdin = args[0] == "-i"
if with_stdin:
    args = args[1:]
ours, theirs = pty.openpty()
tty.setraw(theirs)
process = subprocess.Popen(args, stdin=theirs if with_stdin else None, stdout=theirs)
os.close(theirs)
while True:
    try:
        data = os.read(ours, 65536)
    except OSError:  # EIO: the other end is closed
        break
    if not data:
        break
    sys.stdout.buffer.write(data)
sys.stdout.flush()
sys.exit(process.wait())
