"""An interpreter with the reference packages, from PyPI into build/venv; a test that cannot have it is skipped."""
import pathlib
import subprocess
import sys

VENV = pathlib.Path(__file__).resolve().parent.parent.parent / "build" / "venv"


def python(*packages):
    found = VENV / "bin" / "python"
    names = ", ".join(p.split("==")[0] for p in packages)
    if found.exists() and not subprocess.run([found, "-c", f"import {names}"], capture_output=True).returncode:
        return found
    pip = [found, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--retries", "1", "--timeout", "20"]
    for command in ([sys.executable, "-m", "venv", VENV], [*pip, *packages]):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            reason = ((done.stderr + done.stdout).strip().splitlines() or ["no reason given"])[-1]
            print(f"skipped: {', '.join(packages)} cannot be installed from PyPI ({reason})")
            sys.exit(0)
    return found
