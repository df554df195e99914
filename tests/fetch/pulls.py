"""What `tinygpt pull` fetches and where it puts it, `list` and `rm`, and the way from a name to a text; against
the loopback hub. pulls.py [TEST ...]. What must be so after every run is in pull_case.py.
"""
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from hub_faults import answer, body, both, chunked, cut, header, no_range, raw, redirect, slow, stall  # noqa: E402
from hub_server import sha256  # noqa: E402
from pull_case import TINYGPT, check, gguf, main, test  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TALES = ROOT / "models/tales.gguf"
QUANTS = {f"m-{q}.gguf": gguf(2000 + i, i) for i, q in enumerate(("Q2_K", "Q4_K_M", "Q8_0", "F16"))}
SPLIT = {f"big-Q8_0-{i:05}-of-00003.gguf": gguf(3000, 10 + i) for i in (1, 2, 3)}
CARD = b"---\nlicense: apache-2.0\n---\n# A model\n"


def fetched(c):
    """The names of all files in snapshots."""
    return sorted(str(p.relative_to(s)) for s in c.cache.glob("*/snapshots/*") for p in s.rglob("*") if not p.is_dir())


@test
def chain(new):
    """from a name to a text: $(tinygpt pull NAME), hf:NAME, offline, list, rm"""
    c = new()
    c.hub.repo("owner/tales", {"tales.gguf": TALES.read_bytes(), "README.md": CARD})
    words = ("generate", "-n", "5", "--temp", "0")
    want = c.run(*words, "-m", TALES, "Once").out
    shell = subprocess.run(f'{TINYGPT} {" ".join(words)} -m "$({TINYGPT} pull owner/tales)" Once', shell=True, env=c.env,
                           capture_output=True, text=True)
    check(shell.returncode == 0 and shell.stdout == want, f"{shell}")
    requests = len(c.hub.seen())
    for name in ("hf:owner/tales", "hf:owner/tales:tales.gguf", "owner/tales"):
        run = c.run(*words, "-m", name, "Once")
        check(run.status == 0 and run.out == want, f"{run}")
    check(len(c.hub.seen()) == requests, "what is there is not asked for")
    path = c.good(c.pull("owner/tales", "--offline"))
    check(len(c.hub.seen()) == requests, "offline")
    blob, ref = (next(c.cache.glob(p)).stat().st_mode for p in ("*/blobs/*", "*/refs/main"))
    check(blob == ref, f"whoever may read a blob ({blob:o}) may read the ref ({ref:o})")
    run = c.run("list")
    check(run.status == 0 and "owner/tales" in run.out and str(path) in run.out and "  mit  " in run.out, f"{run}")
    c.good(c.pull("owner/tales:README.md"), CARD)
    check("  apache-2.0  " in c.run("list").out, "the card's licence")
    run = c.run("rm", "owner/tales")
    check(run.status == 0 and not path.exists() and not c.blobs(), f"{run}")
    check(c.run("list").out.count("owner/tales") == 0, "it is gone")
    c.bad(c.run("rm", "owner/tales"), 9)
    run = c.run(*words, "-m", "hf:owner/tales", "Once")  # absent: pulled
    check(run.status == 0 and run.out == want, f"{run}")
    # in the middle of a fetch the file is seen by nobody
    c = new()
    c.hub.repo("owner/tales", {"tales.gguf": TALES.read_bytes()})
    c.hub.on("GET", "/cdn/*", slow(4_000_000))
    run = c.start("pull", "owner/tales")
    c.until(lambda: c.hub.bytes_sent > 1_000_000, "the beginning of the file")
    check(not c.blobs() and not fetched(c), "nothing under a final name")
    c.good(run.wait(), TALES.read_bytes())


@test
def choice(new):
    """which files a repository needs"""
    folder = {"config.json": b"{}", "tokenizer.json": b"{1}", "tokenizer_config.json": b"{2}",
              "model.safetensors": gguf(2000, 5), "pytorch_model.bin": gguf(2000, 6), "README.md": CARD,
              "flax_model.msgpack": gguf(2000, 7), "onnx/model.onnx": gguf(2000, 8)}
    index = json.dumps({"weight_map": {c: f"model-0000{i}-of-00002.safetensors" for i, c in ((1, "a"), (2, "b"))}})
    sharded = {"config.json": b"{}", "tokenizer.json": b"{1}", "model.safetensors.index.json": index.encode(),
               "model-00001-of-00002.safetensors": gguf(2001, 5), "model-00002-of-00002.safetensors": gguf(2002, 5)}
    for files, args, has, hasnt in (
            (QUANTS, (), ["m-Q4_K_M.gguf"], ["m-F16.gguf", "m-Q8_0.gguf"]),
            (QUANTS, (":Q8_0",), ["m-Q8_0.gguf"], ["m-Q4_K_M.gguf"]),
            (QUANTS, (":q2_k",), ["m-Q2_K.gguf"], ["m-Q4_K_M.gguf"]),
            (QUANTS, (":m-F16.gguf",), ["m-F16.gguf"], ["m-Q4_K_M.gguf"]),
            (QUANTS, ("", "m-F16.gguf", "m-Q2_K.gguf"), ["m-F16.gguf", "m-Q2_K.gguf"], ["m-Q4_K_M.gguf"]),
            (QUANTS, ("", "--include", "*Q?_*", "--exclude", "*Q8*"), ["m-Q2_K.gguf", "m-Q4_K_M.gguf"],
             ["m-Q8_0.gguf", "m-F16.gguf"]),
            ({**QUANTS, **SPLIT}, (":big-Q8_0-00001-of-00003.gguf",), list(SPLIT), list(QUANTS)),
            (SPLIT, (), list(SPLIT), []),
            (SPLIT, (":Q8_0",), list(SPLIT), []),
            (folder, (), ["config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"],
             ["pytorch_model.bin", "flax_model.msgpack", "onnx/model.onnx"]),
            (sharded, (), list(sharded), [])):
        c = new()
        repo = c.hub.repo("owner/name", files)
        path = c.good(c.pull("owner/name" + (args[0] if args else ""), *args[1:]))
        got = fetched(c)
        check(all(f in got for f in has) and not any(f in got for f in hasnt), f"{args}: fetched {got}")
        if len(has) == 1 or files is SPLIT:
            check(path.read_bytes() == files[has[0]], f"{args}: {path}")
        elif files in (folder, sharded):
            check(path == c.cache / "models--owner--name/snapshots" / repo.commit, f"{args}: {path}")
        c.hub.close()
    c = new()
    c.hub.repo("owner/pickle", {"config.json": b"{}", "pytorch_model.bin": gguf(2000)})
    c.bad(c.pull("owner/pickle"), 3)
    c.hub.repo("owner/quants", QUANTS)
    c.bad(c.pull("owner/quants:Q3_K_S"), 5, "Q4_K_M")
    c.bad(c.pull("owner/quants:none.gguf"), 5, "none.gguf")
    c.bad(c.pull("owner/quants", "--include", "none*"), 5)
    c.hub.repo("owner/half", {n: d for n, d in SPLIT.items() if "00002-of" not in n})
    c.bad(c.pull("owner/half"), 5, "number 2 is not there")
    check(not fetched(c), "nothing was fetched")
    # a whole folder runs
    c = new()
    golden = ROOT / "tests/golden/llama-plain"
    c.hub.repo("owner/golden", {p.name: p.read_bytes() for p in golden.iterdir()})
    run, want = (c.run("logits", "-m", m, "--ids", "1,2,3") for m in ("hf:owner/golden", golden))
    check(run.status == 0 and run.out == want.out, f"{run}")
    shards = ROOT / "tests/golden/llama-shards"
    c.hub.repo("owner/shards", {p.name: p.read_bytes() for p in shards.iterdir()})
    run, want = (c.run("logits", "-m", m, "--ids", "1,2,3") for m in ("hf:owner/shards", shards))
    check(run.status == 0 and run.out == want.out, f"{run}")


@test
def options(new):
    """--revision, --dry-run, --force, --sha256, --local-dir, --json, -q"""
    c = new()
    one, two = ({"m.gguf": gguf(50_000, i), "sub/x.json": b"%d" % i} for i in (1, 2))
    old = c.hub.repo("owner/name", one, revisions=("v1",))
    now = c.hub.repo("owner/name", two)
    for revision, files, commit in (("v1", one, old.commit), (old.commit, one, old.commit), ("main", two, now.commit)):
        path = c.good(c.pull("owner/name", "--revision", revision), files["m.gguf"])
        check(commit in path.parts, f"{path}")
    check({p.name for p in (c.cache / "models--owner--name/refs").iterdir()} == {"v1", "main"}, "refs")
    path = c.good(c.pull("owner/name"))

    c.hub.requests.clear()
    run = c.good(c.pull("owner/name")) and c.runs[-1]
    check(not c.hub.seen("/cdn/*"), "what is there is not fetched again")
    inode = path.stat().st_ino
    c.good(c.pull("owner/name", "--force"), two["m.gguf"])
    check(c.hub.seen("/cdn/*") and path.stat().st_ino != inode, "unless by force")
    c.hub.on("GET", "/cdn/*", answer(500))
    c.bad(c.pull("owner/name", "--force"), 5)
    check(path.read_bytes() == two["m.gguf"], "the old one stays until the new one is there")
    c.hub.faults.clear()

    d = new()
    d.hub.repo("owner/name", two)
    run = d.pull("owner/name", "--dry-run")
    check(run.status == 0 and not d.hub.seen("/cdn/*") and not d.blobs() and not d.parts(), f"{run}")
    check("m.gguf" in run.out + run.err, f"{run}")
    d.good(d.pull("owner/name", "--sha256", sha256(two["m.gguf"])), two["m.gguf"])
    d.bad(d.pull("owner/name", "--sha256", sha256(one["m.gguf"])), 6)
    for digest in ("x" * 64, "0" * 63, ""):
        d.bad(d.pull("owner/name", "--sha256", digest), 2)

    d = new()
    d.hub.repo("owner/name", two)
    here = d.home / "here"
    path = d.good(d.pull("owner/name", "--local-dir", here), two["m.gguf"])
    check(path == here / "m.gguf" and not path.is_symlink() and not d.blobs(), f"{path}")
    d.hub.requests.clear()
    check(d.good(d.pull("owner/name", "--local-dir", here), two["m.gguf"]) == path, "again")
    check(not d.hub.seen("/cdn/*"), "what is there is not fetched again")
    d.good(d.pull("owner/name", "--local-dir", here, "--include", "*"))
    check((here / "sub/x.json").read_bytes() == two["sub/x.json"], "folders below it")
    d.hub.repo("owner/name", one)
    d.good(d.pull("owner/name", "--local-dir", here), one["m.gguf"])
    path = d.good(d.pull(d.url["cdn"] + "/plain/m.gguf", "--local-dir", d.home / "there"), one["m.gguf"])
    d.bad(d.pull("owner/name", "--local-dir", ""), 9)
    d.bad(d.pull("owner/name", env={"HF_HUB_CACHE": "$NOTHING", "NOTHING": ""}), 9)
    check(path == d.home / "there/m.gguf", f"{path}")

    d = new()
    repo = d.hub.repo("owner/name", two)
    for want in ("done", "cached"):
        run = d.pull("owner/name", "--json")
        value = json.loads(run.out)
        file, = value["files"]
        check(run.status == 0 and pathlib.Path(value["path"]).read_bytes() == two["m.gguf"], f"{run}")
        check(value["repo"] == "owner/name" and value["commit"] == repo.commit, f"{run}")
        check(file["name"] == "m.gguf" and file["size"] == 50_000, f"{run}")
    run = d.run("list", "--json")
    check(run.status == 0 and json.loads(run.out), f"{run}")
    run = d.pull("-q", "owner/name", "--force")
    check(run.status == 0 and run.err == "" and run.out.count("\n") == 1, f"{run}")
    d.bad(d.pull(), 2)
    d.bad(d.pull("owner/name", "--max-wait", "-1"), 2)


@test
def odd(new):
    """names that must be coded, files that are empty or the same, listings that tell little"""
    big = gguf(5000, 3)
    files = {"ein schönes Modell.gguf": big, "sub folder/a+b&c=d#e?f%20g.json": b"[1]", "empty.json": b"",
             "same.json": b"[1]", "a/same.json": b"[1]", "two.safetensors": gguf(6000, 1), "b/two.safetensors": gguf(6000, 1),
             ".gitattributes": b"x"}
    for act in (None, lambda s: s.pop("blobId"), lambda s: [s.pop(k, 0) for k in ("blobId", "lfs", "size")]):
        c = new()
        repo = c.hub.repo("owner/name", files)
        if act:  # as mirrors do, which do not know blobs=true
            def less(request, a):
                value = json.loads(a.body)
                for sibling in value["siblings"]:
                    act(sibling)
                a.body = json.dumps(value).encode()
            c.hub.on("GET", "/api/models/*", less)
        folder = c.cache / "models--owner--name/snapshots" / repo.commit
        check(c.good(c.pull("owner/name", "--include", "*")) == folder and not c.parts(), "the folder")
        for name, data in files.items():
            check((folder / name).read_bytes() == data, f"{name}")
        check(len(c.blobs()) == len({sha256(data) for data in files.values()}), f"{c.blobs()}")
        c.hub.requests.clear()
        c.good(c.pull("owner/name", "--include", "*"))
        check(not c.hub.seen(method="GET", path="/owner/*"), "what is there is not fetched again")
        path = c.good(c.pull("owner/name:sub folder/a+b&c=d#e?f%20g.json"), b"[1]")
        check(path.parent == folder / "sub folder", f"{path}")
        c.good(c.pull("owner/name", "--include", "*", "--local-dir", c.home / "here"))
        check(all((c.home / "here" / name).read_bytes() == data for name, data in files.items()), "in a folder")


@test
def chaos(new):
    """whatever goes wrong, and when: in the end all is right"""
    for seed in range(int(os.environ.get("CHAOS", 0)), int(os.environ.get("CHAOS", 0)) + 4):
        disorder(new, random.Random(seed), seed)


def disorder(new, rng, seed):
    """Some runs with faults at random; some are killed. Then one without."""
    c = new()
    files = {"m.safetensors": gguf(700_000, 1), "n.safetensors": gguf(300_000, 2), "config.json": b"{}", "b.json": b"[]"}
    c.hub.repo("owner/name", files)
    makers = [lambda: answer(rng.choice((500, 502, 503, 504, 408, 403, 404, 401, 429, 416, 204, 206, 304))),
              lambda: cut(rng.randrange(300_000), rng.random() < 0.5), lambda: chunked, lambda: no_range,
              lambda: stall(rng.randrange(300_000), 1), lambda: slow(rng.randrange(1 << 18, 1 << 22)), lambda: raw(b""),
              lambda: raw(rng.randbytes(100)), lambda: both(chunked, cut(rng.randrange(300_000))),
              lambda: body(lambda data: data and data[:-1] + b"?"), lambda: body(lambda data: data and data[:-1]),
              lambda: header("ETag", rng.choice((None, 'W/"a"', '"b"', '"' + "0" * 64 + '"'))),
              lambda: header("Content-Length", rng.choice(("0", "5", "1000000", "x"))),
              lambda: header("Content-Range", rng.choice((None, "bytes 0-1/2", "bytes */9"))),
              lambda: header("X-Linked-Etag", '"' + "0" * 64 + '"'), lambda: header("X-Repo-Commit", "0" * 40),
              lambda: header("Location", rng.choice((None, "/", "//x/", "file:///x", c.url["cdn"] + "/plain/b.json")))]
    for _ in range(rng.randrange(2, 6)):
        for _ in range(rng.randrange(1, 6)):
            path = rng.choice(("/cdn/*", "/cdn/*", "/cdn/*", "/owner/*", "/api/resolve-cache/*", "/api/models/*"))
            c.hub.on("GET", path, rng.choice(makers)(), times=rng.choice((1, 1, 2, 9)))
        run = c.start("pull", "owner/name", "--include", "*")
        if rng.random() < 0.4:
            time.sleep(rng.random() * 0.4)
            run.send(rng.choice((signal.SIGINT, signal.SIGKILL, signal.SIGTERM)))
        run.wait()
        check(run.status in (0, 5, 6) or run.sent and run.status in (128 + run.sent, -run.sent), f"seed {seed}: {run}")
        if run.status == 0:
            c.good(run)
        c.hub.faults.clear()
    path = c.good(c.pull("owner/name", "--include", "*"))
    check(all((path / name).read_bytes() == data for name, data in files.items()), f"seed {seed}: wrong bytes")
    check(len(c.blobs()) == len(files), f"seed {seed}: {c.blobs()}")


@test
def places(new):
    """HF_HUB_CACHE, HF_HOME, XDG_CACHE_HOME, in this order; where the token comes from"""
    c = new()
    repo = c.hub.repo("owner/name", {"m.gguf": gguf(5000)})
    h = c.home
    places = [("HOME", h, h / ".cache/huggingface/hub"), ("XDG_CACHE_HOME", h / "xdg", h / "xdg/huggingface/hub"),
              ("HF_HOME", h / "hf", h / "hf/hub"), ("HF_HUB_CACHE", h / "cache", h / "cache")]
    for name, value, cache in places:
        c.env[name] = str(value)
        path = c.good(c.pull("owner/name"))
        check(path == cache / f"models--owner--name/snapshots/{repo.commit}/m.gguf", f"{name}: {path}")
    check(len(c.hub.seen("/cdn/*")) == 4, "each by itself")
    # the token: HF_TOKEN, the file HF_TOKEN_PATH, HF_HOME/token
    c = new()
    c.hub.repo("owner/name", {"m.gguf": gguf(5000)})
    (c.home / ".hf").mkdir()
    for i, where in enumerate(("a", ".hf/token")):
        (c.home / where).write_text(f" hf_file{i}\n")
        c.put_here.add(c.home / where)
    (c.home / ".hf/token").chmod(0o600)
    c.env.update(HF_HOME=str(c.home / ".hf"))
    for env, want in (({"HF_TOKEN": "hf_own"}, "hf_own"), ({"HF_TOKEN": "", "HF_TOKEN_PATH": c.home / "a"}, "hf_file0"),
                      ({"HF_TOKEN": ""}, "hf_file1"), ({"HF_TOKEN": "", "HF_TOKEN_PATH": c.home / "none"}, None)):
        c.hub.requests.clear()
        c.good(c.pull("owner/name", "--force", env=env))
        seen = {r.headers.get("authorization") for r in c.hub.seen(at="hub")}
        check(seen == {f"Bearer {want}" if want else None}, f"{env}: {seen}")
    for token in ("hf_a b", "hf_a\x01", "hf_\xe4"):
        c.bad(c.pull("owner/name", env={"HF_TOKEN": token}), 2)
    c.pull("owner/name", env={"HF_TOKEN": "hf_a\r\nX-Evil:1"})
    check(not [r for r in c.hub.seen() if "x-evil" in r.headers], "no other header")


@test
def urls(new):
    """a file of any server, by its URL"""
    c = new()
    data = gguf(20_000)
    c.hub.repo("owner/name", {"m.gguf": data})
    url = c.url["cdn"] + "/plain/m.gguf"
    path = c.good(c.pull(url), data)
    check(path.name == "m.gguf" and c.home in path.parents, f"{path}")
    check(c.good(c.pull(url), data) == path, "again")
    check(len([r for r in c.hub.seen("/plain/*", "GET")]) <= 2, "not fetched twice")
    c.good(c.pull(url, "--force", "--sha256", sha256(data)), data)
    c.hub.on("GET", "/moved/*", redirect(lambda r: url))
    c.good(c.pull(c.url["cdn"] + "/moved/m.gguf"), data)
    run = c.run("list")
    check(run.status == 0 and url in run.out, f"{run}")
    run = c.run("rm", url)
    check(run.status == 0 and not path.exists(), f"{run}")
    # one of the hub's own is its file
    path = c.good(c.pull(f"{c.url['hub']}/owner/name/resolve/main/m.gguf"), data)
    check("models--owner--name" in str(path), f"{path}")
    c.bad(c.pull(c.url["cdn"] + "/plain/none.gguf"), 5, "404")


@test
def catalogue(new):
    """short names"""
    c = new()
    run = c.pull("nosuchmodel")
    check(run.status in (2, 5) and run.out == "", f"{run}")
    names = [line.split()[0] for line in (ROOT / "models/catalog.txt").read_text().splitlines()
             if line.strip() and not line.startswith("#")]
    check({"gpt2", "smollm2", "tinyllama"} <= set(names), f"{names}")
    for name in names:
        before = len(c.hub.seen())
        c.bad(c.pull(name), 5)
        check(len(c.hub.seen()) == before + 1 and "/" in c.hub.seen()[-1].path[len("/api/models/"):], f"{name}")


@test
def race(new):
    """four processes, one repository of several files"""
    c = new()
    files = {f"f{i}.json": b"%d" % i for i in range(5)} | {f"m{i}.safetensors": gguf(100_000, i) for i in range(3)}
    c.hub.repo("owner/name", files)
    c.hub.on("GET", "/cdn/*", slow(1_000_000))
    runs = [c.start("pull", "owner/name", "--include", "*") for _ in range(4)]
    for run in runs:
        run.wait()
    for run in runs:
        path = c.good(run)
        check(all((path / name).read_bytes() == data for name, data in files.items()), f"{run}")
    check(len(c.blobs()) == 8 and not c.parts(), f"{c.blobs()} {c.parts()}")
    # and one that is killed among them
    c = new()
    c.hub.repo("owner/name", files)
    c.hub.on("GET", "/cdn/*", slow(1_000_000))
    runs = [c.start("pull", "owner/name", "--include", "*") for _ in range(3)]
    c.until(lambda: c.hub.bytes_sent > 100_000, "the beginning")
    runs[0].process.kill()
    runs[0].wait()
    for run in runs[1:]:
        c.good(run.wait())
    check(len(c.blobs()) == 8, f"{c.blobs()}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
