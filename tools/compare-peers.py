#!/usr/bin/env python3
"""Measures tinygpt against other engines on the same file, by turns: in each round each engine runs each test
once, so that what disturbs the machine meets them all. Every setting of a peer that is worth having is
tried, and the best one counts.

    tools/compare-peers.py -m MODEL.gguf --llama llama.cpp/llama-bench --ik ik_llama.cpp/llama-bench \\
        -p 512 -n 128 -d 0,4096,16384 -t 1,2 --json samples.json --plot depth.svg

Progress goes to stderr, a Markdown table to stdout.
"""
import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import time

DEEP = 2048  # from here on filling the cache takes most of the time
ROUNDS, DEEP_ROUNDS = 5, 2
HOPELESS = 0.8  # a setting that is slower than that, next to the same peer's best, gets no second round
OURS = "tinygpt"


def say(*words):
    print(*words, file=sys.stderr, flush=True)


class Test:
    """pp<n> or tg<n> at a depth, by some threads, over a cache of some type."""

    def __init__(self, kind, n, depth, threads, kv):
        self.kind, self.n, self.depth, self.threads, self.kv = kind, n, depth, threads, kv
        self.name = f"{kind}{n}" + (f" @ d{depth}" if depth else "")
        self.key = (kind, n, depth, threads, kv)

    def fields(self):
        return {"test": self.name, "kind": self.kind, "n": self.n, "n_depth": self.depth,
                "n_threads": self.threads, "kv_type": self.kv}


# ---- engines: how each is called -----------------------------------------------------------------------


class Tinygpt:
    name = OURS

    def __init__(self, path):
        self.path = path

    def settings(self, test):
        return ["", "--interleave"]

    def command(self, model, test, setting):
        p, n = (test.n, 0) if test.kind == "pp" else (0, test.n)
        return [self.path, "bench", "-q", "-m", model, "-p", p, "-n", n, "-d", test.depth, "-t", test.threads,
                "--kv-type", test.kv, "-r", 1, "-o", "json", *setting.split()]


class LlamaBench:
    """llama.cpp's llama-bench or a descendant; its help tells which options it has."""

    def __init__(self, name, path):
        self.name, self.path = name, path
        done = subprocess.run([path, "--help"], capture_output=True, text=True, errors="replace", timeout=60)
        told = done.stdout + done.stderr
        if "--n-prompt" not in told:
            raise OSError("this is no llama-bench")
        self.has_depth = "--n-depth" in told
        self.has_gp = "-gp " in told  # ik_llama.cpp: generation behind a prompt
        self.has_repack = "-rtr" in told

    def settings(self, test):
        if self.has_repack:
            return ["-fa 1", "-fa 1 -rtr 1"]
        # without flash attention llama.cpp cannot hold quantised values
        return ["-fa 1"] if test.kv.startswith("q") else ["-fa 0", "-fa 1"]

    def command(self, model, test, setting):
        kv = "q4_0" if test.kv == "q4" else test.kv  # what comes nearest
        args = [self.path, "-m", model, "-t", test.threads, "-ctk", kv, "-ctv", kv, "-r", 1,
                "-o", "json", *setting.split()]
        if test.depth == 0 or self.has_depth:
            p, n = (test.n, 0) if test.kind == "pp" else (0, test.n)
            return args + ["-p", p, "-n", n] + (["-d", test.depth] if test.depth else [])
        if test.kind == "tg" and self.has_gp:  # the prompt warms up well enough
            return args + ["-p", 0, "-n", 0, "-gp", f"{test.depth},{test.n}", "-w", 0]
        return None


# ---- running -------------------------------------------------------------------------------------------


def last_line(text):
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "no message"


def call(command, timeout):
    """One run: llama-bench's fields, or {"error": why}."""
    try:
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True, errors="replace",
                              timeout=timeout, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return {"error": f"took more than {timeout:.0f} s"}
    except OSError as e:
        return {"error": str(e)}
    if done.returncode:
        return {"error": f"status {done.returncode}: {last_line(done.stderr)}"}
    try:
        rows = json.loads(done.stdout[done.stdout.index("["):])
        return rows[0] if float(rows[0]["samples_ts"][0]) > 0 else {"error": "no speed"}
    except (ValueError, LookupError, TypeError):
        return {"error": "no result: " + last_line(done.stdout + done.stderr)}


class Samples:
    """All that was measured."""

    def __init__(self):
        self.all = []

    def add(self, engine, setting, test, round_, result, seconds):
        ours = ("limit_ts", "percent_of_limit", "logits_hash", "bytes_per_token")
        sample = {"engine": engine.name, "setting": setting, **test.fields(), "round": round_, "wall_s": seconds}
        if "error" in result:
            sample["error"] = result["error"]
        else:
            sample["ts"] = float(result["samples_ts"][0])
            sample.update({k: result[k] for k in ours if k in result})
        self.all.append(sample)
        return sample

    def of(self, name, test, setting=None):
        return [s for s in self.all if s["engine"] == name and all(s[k] == v for k, v in test.fields().items())
                and setting in (None, s["setting"])]

    def median(self, name, test, setting, field="ts"):
        values = [s[field] for s in self.of(name, test, setting) if field in s]
        return statistics.median(values) if values else None

    def best(self, name, test):
        """(median, setting) of the best setting, or None."""
        settings = {s["setting"] for s in self.of(name, test)}
        medians = [(m, s) for s in settings if (m := self.median(name, test, s)) is not None]
        return max(medians, default=None)

    def failure(self, name, test):
        return next((s["error"] for s in self.of(name, test) if "error" in s), None)


def worth_a_run(samples, engine, test, setting):
    """Not what failed, and not what the same engine does far better otherwise."""
    if any("error" in s for s in samples.of(engine.name, test, setting)):
        return False
    mine, best = samples.median(engine.name, test, setting), samples.best(engine.name, test)
    return mine is None or mine >= HOPELESS * best[0]


def rounds_of(args, test):
    return args.rounds or (DEEP_ROUNDS if test.depth >= DEEP else ROUNDS)


def title(engine, setting, test, round_):
    return f"round {round_ + 1}, {test.name}, {test.threads} threads, {test.kv}: {engine.name} {setting}".rstrip()


def run_once(args, samples, engine, setting, test, round_):
    command = engine.command(args.model, test, setting)
    begun = time.monotonic()
    result = call(command, args.timeout) if command else {"error": "has no such test"}
    sample = samples.add(engine, setting, test, round_, result, time.monotonic() - begun)
    outcome = f"{sample['ts']:.2f} t/s" if "ts" in sample else sample["error"]
    say(f"{title(engine, setting, test, round_)}: {outcome} ({sample['wall_s']:.1f} s)")


def run_all(args, samples, engines, tests):
    for round_ in range(max(rounds_of(args, t) for t in tests)):
        for test in tests:
            if round_ >= rounds_of(args, test):
                continue
            turns = [(e, s) for e in engines for s in e.settings(test)]
            for engine, setting in turns if round_ % 2 == 0 else reversed(turns):
                if worth_a_run(samples, engine, test, setting):
                    run_once(args, samples, engine, setting, test, round_)
                else:
                    say(f"{title(engine, setting, test, round_)}: left out, failed or far behind its best setting")


# ---- telling -------------------------------------------------------------------------------------------


def cells(samples, engines, test):
    ours = samples.best(OURS, test)
    for engine in engines:
        best = samples.best(engine.name, test)
        if not best:
            yield f"failed: {samples.failure(engine.name, test)}"[:60].replace("|", "/") if samples.of(
                engine.name, test) else "not run"
        else:
            yield f"{best[0]:.2f}" + (f" ({best[1]})" if best[1] else "")
        if engine.name == OURS:
            share = best and samples.median(OURS, test, best[1], "percent_of_limit")
            yield f"{share:.1f}" if share else "-"
        else:
            yield f"{ours[0] / best[0]:.2f}" if ours and best else "-"


def put_table(samples, engines, tests):
    head = ["test", "threads", "kv"]
    for engine in engines:
        head += [f"{engine.name} t/s", "% of limit" if engine.name == OURS else f"{OURS} / {engine.name}"]
    print("| " + " | ".join(head) + " |")
    print("| --- " + "| ---: " * (len(head) - 1) + "|")
    for test in tests:
        if any(samples.of(e.name, test) for e in engines):
            row = [test.name, str(test.threads), test.kv, *cells(samples, engines, test)]
            print("| " + " | ".join(row) + " |")


def drawing():
    """matplotlib, asked for before an hour is spent on what it shall draw."""
    try:
        import matplotlib
    except ImportError:
        sys.exit("compare-peers.py: --plot needs matplotlib (pip install matplotlib)")
    matplotlib.use("svg")
    import matplotlib.pyplot

    return matplotlib.pyplot


def draw(plt, path, samples, engines, tests):
    """A panel for each kind of test, threads and type: speed against depth."""
    plt.rcParams.update({"svg.hashsalt": "tinygpt", "svg.fonttype": "none"})  # same figures, same file
    panels = {}
    for t in tests:
        panels.setdefault((t.kind, t.n, t.threads, t.kv), []).append(t)
    figure, axes = plt.subplots(1, len(panels), figsize=(4.5 * len(panels), 3.6), squeeze=False)
    for ax, ((kind, n, threads, kv), members) in zip(axes[0], panels.items()):
        members.sort(key=lambda t: t.depth)
        places = range(len(members))  # evenly: depths are rarely so
        lines = {e.name: [(samples.best(e.name, t) or (None,))[0] for t in members] for e in engines}
        limit = [samples.median(OURS, t, None, "limit_ts") for t in members]
        for i, (name, ys) in enumerate(lines.items()):
            points = [(x, y) for x, y in zip(places, ys) if y is not None]
            if points:
                ax.plot(*zip(*points), marker="o", markersize=4, color=f"C{i}", label=name)
        points = [(x, y) for x, y in zip(places, limit) if y is not None]
        if points:
            ax.plot(*zip(*points), "k--", linewidth=1, label="limit of the machine")
        ax.set_xticks(list(places), [str(t.depth) for t in members])
        ax.set_ylim(bottom=0)
        ax.set_title(f"{kind}{n}, {threads} threads, {kv}", fontsize=10)
        ax.set_xlabel("depth, tokens", fontsize=9)
        ax.set_ylabel("tokens/s", fontsize=9)
        ax.tick_params(labelsize=8)
        ax.grid(True, linewidth=0.3)
        ax.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    say(path)


# ---- the command ---------------------------------------------------------------------------------------


def numbers(text):
    values = [int(x) for x in text.split(",")]
    if not all(v >= 0 for v in values):
        raise ValueError(text)
    return values


def parse():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("-m", "--model", required=True, help="a GGUF file")
    a.add_argument("--tinygpt", default="./tinygpt", metavar="PATH")
    a.add_argument("--llama", metavar="PATH", help="llama.cpp's llama-bench")
    a.add_argument("--ik", metavar="PATH", help="ik_llama.cpp's llama-bench")
    a.add_argument("--peer", action="append", default=[], metavar="NAME=PATH", help="another one; repeatable")
    a.add_argument("-p", type=numbers, default=[512], metavar="N,...", help="prompt tokens (512); 0: no such test")
    a.add_argument("-n", type=numbers, default=[128], metavar="N,...", help="generated tokens (128); 0: none")
    a.add_argument("-d", type=numbers, default=[0], metavar="N,...", help="tokens in the cache before (0)")
    a.add_argument("-t", type=numbers, default=[os.cpu_count() or 1], metavar="N,...", help="threads (all)")
    a.add_argument("--kv-type", default="f16", metavar="T,...", help="f32, f16, bf16, q8_0, q4 (f16); q4 is the peers' q4_0")
    a.add_argument("--rounds", type=int, metavar="N",
                   help=f"of all tests ({ROUNDS}, but {DEEP_ROUNDS} from a depth of {DEEP})")
    a.add_argument("--timeout", type=float, default=900, metavar="S", help="of one call (900)")
    a.add_argument("--json", metavar="FILE", help="keep all samples")
    a.add_argument("--plot", metavar="FILE.svg", help="speed against depth (needs matplotlib)")
    return a.parse_args()


def find_engines(args):
    wanted = [("llama.cpp", args.llama), ("ik_llama.cpp", args.ik)]
    wanted += [tuple(p.split("=", 1)) if "=" in p else (p, p) for p in args.peer]
    engines = [Tinygpt(args.tinygpt)]
    for name, path in wanted:
        if not path:
            continue
        try:
            engines.append(LlamaBench(name, path))
        except (OSError, subprocess.SubprocessError) as e:
            say(f"without {name}: {e}")
    return engines


def main():
    args = parse()
    if not os.path.isfile(args.model):
        sys.exit(f"compare-peers.py: {args.model}: no such file")
    plt = drawing() if args.plot else None
    engines = find_engines(args)
    kinds = [("pp", n) for n in args.p if n] + [("tg", n) for n in args.n if n]
    if not kinds:
        sys.exit("compare-peers.py: nothing to measure: -p 0 and -n 0")
    tests = [Test(kind, n, depth, threads, kv) for threads, kv, depth, (kind, n) in
             itertools.product(args.t, args.kv_type.split(","), sorted(args.d), kinds)]
    samples = Samples()
    interrupted = False
    try:
        run_all(args, samples, engines, tests)
    except KeyboardInterrupt:
        interrupted = True
        say("interrupted: this is what there is")
    put_table(samples, engines, tests)
    if args.json:
        with open(args.json, "w") as f:
            json.dump({"model": os.path.basename(args.model), "samples": samples.all}, f, indent=1)
            f.write("\n")
    if args.plot:
        draw(plt, args.plot, samples, engines, tests)
    sys.exit(130 if interrupted else 0)


main()
