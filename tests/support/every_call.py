"""Programs under tests/support/syscalls.c: which calls they make, and the same again with another one of them going wrong
each time."""
import concurrent.futures
import os
import pathlib
import tempfile

BUILD = pathlib.Path(os.environ.get("BUILD", "build/release")).resolve()
TINYGPT = os.path.abspath(os.environ.get("TINYGPT", "./tinygpt"))
SHIM = BUILD / "tests/support/syscalls.so"
ASAN = b"libasan" in pathlib.Path(TINYGPT).read_bytes() if os.path.exists(TINYGPT) else False


def environment(under=None, **shim):
    """Of a program; the keys are those of the shim without its prefix, and in small letters: at, do, only, log, ..."""
    where = {"SYSCALLS_UNDER": str(under)} if under else {}
    return {"LD_PRELOAD": str(SHIM), "ASAN_OPTIONS": "verify_asan_link_order=0", **where,
            **{f"SYSCALLS_{key.upper()}": str(value) for key, value in shim.items()}}


def calls(run):
    """`run` starts the program once, with more of the shim's keys; its counted calls, each as (name, path)."""
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "log"
        run(log=log)
        return [tuple(line.split(" ", 2)[1:]) for line in log.read_text().splitlines()]


def each(points, attempt, workers=8):
    """attempt(point) for each, several at once; the first exception ends it."""
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        return list(pool.map(attempt, points))
