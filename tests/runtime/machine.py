"""R02, R34 on a full file system; R31 to R33, R39, R40: what the machine gives: processors, locale, clock, modes."""
import contextlib
import json
import math
import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys

from process import PROGRAM, ROOT, check, done, end, folder, run

where = folder()
TEXT = ["generate", "--temp", "0", "-n", "5", "Once upon a time"]
BENCH = [PROGRAM, "bench", "--n-prompt", "0", "--n-gen", "1", "--repetitions", "1"]
reference = run(*TEXT).out


def threads(*more, wrap=(), env=None, **kept):
    """How many it takes."""
    words = [*wrap, PROGRAM, "generate", "-v", "-n", "0", *more, "x"]
    told = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=env, **kept).stderr
    found = re.search(r"tinygpt: (\d+) threads?,", told)
    return int(found[1]) if found else told


# ---- R31: the smallest of affinity mask, quota and cores ------------------------------------------------

cpus = sorted(os.sched_getaffinity(0))
one = {"wrap": ("taskset", "-c", str(cpus[0]))} if shutil.which("taskset") else {}
everything = threads()
check(isinstance(everything, int) and 1 <= everything <= len(cpus), f"R31: {everything} threads on {len(cpus)} processors")
check(threads("-t", "0") == everything, "R31: -t 0 is no -t")
if one:
    check(threads(**one) == 1, f"R31: one processor: {threads(**one)}")
    check(threads("-t", "2", **one) == 2, "R31: -t goes first")

# Quotas: a made-up /sys/fs/cgroup and /proc/self/cgroup, in a mount namespace. At most one processor is left by them:
# this machine may not have more.
UNSHARE = ("unshare", "-rm") if os.getuid() else ("unshare", "-m")
can_mount = shutil.which("unshare") and subprocess.run([*UNSHARE, "true"], capture_output=True).returncode == 0


def within(groups, files):
    """Words before a command that runs it under the lines of /proc/self/cgroup and files below /sys/fs/cgroup."""
    made = where / f"groups{len(list(where.iterdir()))}"
    for name, text in {**files, "groups": groups}.items():
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text(text)
    script = f'''mount --bind "{made}" /sys/fs/cgroup && exec 3<"{made}/groups" && mount --bind "{made}/groups" /proc/$$/cgroup && exec "$@"'''
    return *UNSHARE, "sh", "-c", script, "sh"


def in_groups(groups, files):
    """Threads there."""
    return threads(wrap=within(groups, files))


if not can_mount:
    print("R31: no mount namespaces here: quotas are not tested")
else:
    check(in_groups("0::/\n", {"cpu.max": "max 100000\n"}) == everything, "R31: no quota")
    for text in ("100000 100000\n", "199999 100000\n", "50000 100000\n", "1000 1000000\n"):
        found = in_groups("0::/\n", {"cpu.max": text})
        check(found == 1, f"R31: cpu.max {text!r}: {found}")
    found = in_groups("0::/\n", {"cpu.max": "900000000 100000\n"})
    check(found == everything, f"R31: a large quota: {found}")
    found = in_groups("0::/a.slice/b.service\n", {"a.slice/cpu.max": "100000 100000\n", "a.slice/b.service/cpu.max": "max 100000\n"})
    check(found == 1, f"R31: the quota of a group above: {found}")
    found = in_groups("0::/not/seen/from/here\n", {"cpu.max": "100000 100000\n"})
    check(found == 1, f"R31: a container's own root: {found}")
    found = in_groups("5:cpuacct,cpu:/a\n1:name=systemd:/\n0::/\n", {"cpu/a/cpu.cfs_quota_us": "150000\n", "cpu/a/cpu.cfs_period_us": "100000\n"})
    check(found == 1, f"R31: version 1: {found}")
    found = in_groups("4:cpu:/\n", {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"})
    check(found == everything, f"R31: version 1 without a quota: {found}")
    found = in_groups("4:cpuset:/\nnonsense\n::\n7:cpu:x\n", {"cpuset/cpu.max": "1 100\n", "cpu.max": "100000\n"})
    check(found == everything, f"R31: nonsense: {found}")
    # and their memory (R25)
    for groups, name in (("0::/a\n", "a/memory.max"), ("7:memory:/a\n", "memory/a/memory.limit_in_bytes")):
        told = in_groups(groups, {name: "1048576\n"})
        check("found a limit of 1.0 MiB of memory (the control group's)" in str(told), f"R25: {name}: {told}")
    words = [*within("0::/\n", {"memory.max": f"{64 << 20}\n"}), *BENCH]
    ended = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True)
    check(ended.returncode == 7 and b"64.0 MiB are needed for a buffer to read" in ended.stderr, f"R25: bench: {ended}")

@contextlib.contextmanager
def real_group(row, controller, **limits):
    """A group with these limits, and what a process calls before it runs to be in it; None where none can be made."""
    group = pathlib.Path("/sys/fs/cgroup", controller, f"tinygpt-test-{os.getpid()}")
    try:
        group.mkdir()
    except OSError:
        print(f"{row}: no group can be made here")
        yield None
        return
    try:
        for name, value in limits.items():
            (group / f"{controller}.{name}").write_text(str(value))
        yield lambda: (group / "cgroup.procs").write_text(str(os.getpid()))
    finally:
        group.rmdir()


with real_group("R25", "memory", limit_in_bytes=200 << 20) as enter:
    if enter:
        ended = subprocess.run(BENCH, stdin=subprocess.DEVNULL, capture_output=True, preexec_fn=enter)
        check(ended.returncode == 0, f"R25: bench in a real group: {ended}")
with real_group("R31", "cpu", cfs_period_us=100000, cfs_quota_us=100000) as enter:
    if enter:
        found = threads(preexec_fn=enter)
        check(found == 1, f"R31: a real quota: {found}")

# ---- R32 ---------------------------------------------------------------------------------------------

for words in (["-t", "-1"], ["-t", "513"]):
    for command in ("generate", "logits", "chat", "bench", "perplexity", "score", "inspect", "quantize"):
        ended = run(command, *words)
        check(ended.status == 2 and ended.one_error() and b"0 to 512" in ended.err, f"R32 {command} {words}: {ended}")
many = len(os.sched_getaffinity(0)) + 1
for words, env in ((["-t", str(many)], {}), ([], {"OMP_NUM_THREADS": str(many)})):
    ended = run(*TEXT, *words, env=os.environ | env)
    check(ended.status == 0 and ended.out == reference and ended.err == f"tinygpt: warning: {many} threads on {many - 1} processors\n".encode(),
          f"R32 {words} {env}: {ended}")

# ---- R33: locales with another point and other letters -----------------------------------------------------

MANY = [  # words, and what of their output are no times
    (TEXT, b""), (["inspect"], b""), (["inspect", "--json"], b""), (["perplexity", "-f", "models/README.md", "-c", "64"], b""),
    (["generate", "--json", "--logprobs", "2", "--temp", "0", "-n", "2", "Once"], rb'"timings".*'),
    (["logits", "--ids", "1", "--top", "3"], b""), (["logits", "--ids", "1", "--format", "json"], b""),
    (["generate", "--help"], b""), (["help", "--man"], b""), (["quantize", "--type", "help"], b""),
    (["generate", "--temp", "0,5", "x"], b""), (["generate", "--temp", "0.5", "--seed", "1", "-n", "5", "x"], b""),
    (["INSPECT"], b""), (["quantize", "models/tales.gguf", str(where / "q"), "--type", "q8_0", "-q"], b""),
    (["quantize", "models/tales.gguf", str(where / "q"), "--type", "iq4_nl", "--requantize", "-q"], b""),
    (["tokenize", "--ids", "ISTANBUL istanbul Iıİi"], b""), (["list", "--catalog"], b""), (["list", "-q", "--json"], b""),
]
made = where / "locales"
made.mkdir()
names = []
for name in ("de_DE", "tr_TR"):
    if shutil.which("localedef") and subprocess.run(["localedef", "-i", name, "-f", "UTF-8", made / f"{name}.UTF-8"],
                                                    capture_output=True).returncode in (0, 1) and (made / f"{name}.UTF-8").exists():
        names.append(f"{name}.UTF-8")
if names:
    told = subprocess.run(["sh", "-c", "locale decimal_point"], env=os.environ | {"LOCPATH": str(made), "LC_ALL": names[0]},
                          capture_output=True, text=True).stdout
    check(told == ",\n", f"R33: the locale is there: {told!r}")
else:
    print("R33: localedef makes no locale here")
for words, times in MANY:
    seen = {}
    for name in ("C", *names):
        ended = run(*words, env=os.environ | {"LC_ALL": name, "LANG": name, "LOCPATH": str(made)})
        out = re.sub(times, b"", ended.out, flags=re.S) if times else ended.out
        seen[name] = (ended.status, out, re.sub(rb" in [0-9.]* s.*", b"", ended.err))
        check(b"0,0" not in ended.out, f"R33: a comma: {words} {name}")
    check(len(set(seen.values())) == 1, f"R33: {words}: {seen}")
for name in names:  # an answer on a terminal, where readline asks for the locale's letters
    talk = [sys.executable, "tests/support/talk.py", PROGRAM, "chat", "-q", "--chat-template", "chatml", "--temp", "0", "-n", "4", "--stats"]
    told = subprocess.run(talk, input="< >>> \n> Hallo\\r\n< tokens/s\n< >>> \n> \\x04\n", text=True, capture_output=True,
                          env=os.environ | {"LC_ALL": name, "LOCPATH": str(made), "TERM": "dumb"}).stdout
    check(re.search(r" in \d+\.\d+ s, \d+\.\d tokens/s", told), f"R33: chat under {name}: {told!r}")

# ---- R39: clocks that stand still and jump back ------------------------------------------------------------

shim = ROOT / os.environ.get("BUILD", "build/release") / "tests/support/clock.so"


def finite(value):
    if isinstance(value, dict):
        return all(map(finite, value.values()))
    if isinstance(value, list):
        return all(map(finite, value))
    return not isinstance(value, float) or (math.isfinite(value) and value >= 0)


if not shim.exists():
    print(f"R39: {shim} is not there")
else:
    for grain in ("0.2", "1000000"):
        poor = os.environ | {"LD_PRELOAD": str(shim), "CLOCK_GRAIN": grain, "CLOCK_JUMP": "100000",
                             "ASAN_OPTIONS": "verify_asan_link_order=0"}
        ended = run(*TEXT, "--stats", env=poor)
        check(ended.status == 0 and ended.out == reference and not re.search(rb"inf|nan|-\d", ended.err), f"R39 --stats: {ended}")
        for words in (["generate", "--json", "-n", "3", "--temp", "0", "x"], ["perplexity", "--json"],
                      ["bench", "-q", "-p", "1", "-n", "2", "-r", "2", "-t", "1", "-m", "tests/golden/gguf/llama.f32.gguf", "-o", "json"]):
            if words[0] == "bench":  # which measures loops until they take a while
                poor["CLOCK_GRAIN"] = "0.002"
            ended = run(*words, env=poor, **({"text": b"x y z"} if words[0] == "perplexity" else {}))
            check(ended.status == 0, f"R39 {words}: {ended}")
            check(ended.status != 0 or finite(json.loads(ended.out)), f"R39 {words}: {ended.out!r}")
        told = run("generate", "--each-line", "--jsonl", "-n", "2", "--temp", "0", env=poor, text=b"a\nb\n")
        check(told.status == 0 and all(finite(json.loads(line)) for line in told.out.splitlines()), f"R39 lines: {told}")

# ---- R40: modes ------------------------------------------------------------------------------------------

for mask in (0o000, 0o022, 0o077):
    for words in (["generate", "-q", "-n", "1", "Once"], ["chat", "-q", "-n", "1", "--chat-template", "chatml", "Once"]):
        path = where / f"session-{words[0]}-{mask:o}"
        for again in range(2):  # made, and replaced
            ended = run(*words, "--session", path, prepare=lambda: os.umask(mask))
            mode = stat.S_IMODE(path.stat().st_mode)
            check(ended.status == 0 and mode == 0o600, f"R40: a session under the umask {mask:o} is {mode:o}: {ended}")
    path = where / f"ids-{mask:o}"
    run("logits", "--ids", "1", "-o", path, prepare=lambda: os.umask(mask))
    check(stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask, f"R40: other files are as the umask says: {path.stat().st_mode:o}")

# ---- R02, R34: a file system that is full -------------------------------------------------------------------

if can_mount:
    small = where / "small"
    small.mkdir()
    script = f'''mount -t tmpfs -o size=64k none "{small}" && cd "{small}" || exit 99
head -c 20000 /dev/zero >old && cp old s0 || exit 99
"$0" generate -q -n 5 --temp 0 --session new "Once upon a time" >"{where}/text" 2>"{where}/told"; echo $?
"$0" logits --ids 1,2,3,4 --all --format npy -o old 2>>"{where}/told"; echo $?
"$0" quantize "{ROOT}/models/tales.gguf" q --type Q8_0 2>>"{where}/told"; echo $?
"$0" logits --ids 1,2,3,4 --all --format npy >out 2>>"{where}/told"; echo $?
cmp old s0; ls -A'''
    program = str(pathlib.Path(PROGRAM).resolve())
    told = subprocess.run([*UNSHARE, "sh", "-c", script, program], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    check(told.stdout.split() == ["7", "7", "7", "9", "old", "out", "s0"] and not told.stderr, f"R02, R34 on a full file system: {told}")
    check((where / "text").read_bytes() == reference, "R34: the text was written")
    lines = (where / "told").read_text().splitlines()
    check(len(lines) == 4 and all(line.startswith("tinygpt: error: ") for line in lines), f"R34: {lines}")
done()
