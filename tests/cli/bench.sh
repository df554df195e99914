#!/bin/sh
# bench: the formats agree, the logits do not depend on threads and batch, errors are told. Never times.
. "$(dirname "$0")/../support/cli.sh"
need_model
need_python

tiny="-p 9,33 -n 0,5 -d 0,70 -t 1 -r 2"
fields() {
    # shellcheck disable=SC2086
    run bench -q $tiny -o "$1"
    status 0
    err ''
    cp "$T/out" "$T/table.$1"
}
for format in json csv jsonl md; do
    fields $format
done
ok "JSON is what it says" "$PYTHON" - "$T" "$("$TINYGPT" inspect --json </dev/null)" <<'END_PYTHON'
import csv, json, re, statistics, sys

folder, told = sys.argv[1], json.loads(sys.argv[2])
rows = json.load(open(f"{folder}/table.json"))
lines = [json.loads(line) for line in open(f"{folder}/table.jsonl")]
sheet = list(csv.DictReader(open(f"{folder}/table.csv")))
near = lambda a, b: abs(a - b) <= 1e-6 * abs(b) + 1e-12

assert [(r["n_prompt"], r["n_gen"], r["n_depth"]) for r in rows] == [
    (9, 0, 0), (33, 0, 0), (0, 5, 0), (9, 0, 70), (33, 0, 70), (0, 5, 70)]
for r in rows:
    n = r["n_prompt"] + r["n_gen"]
    assert r["model_filename"] == told["path"] and r["model_size"] == told["weight_bytes"]
    assert r["model_n_params"] == told["n_params"] and r["model_type"].startswith(told["architecture"] + " ")
    assert r["n_threads"] == 1 and r["n_batch"] == r["n_ubatch"] == 512
    assert r["type_k"] == r["type_v"] == "f16" and r["attention"] == "auto"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", r["test_time"])
    assert re.fullmatch("[0-9a-f]{16}", r["logits_hash"])
    ns, ts = r["samples_ns"], r["samples_ts"]
    assert len(ns) == len(ts) == 2 and all(isinstance(x, int) and x > 0 for x in ns)
    assert all(abs(t - n * 1e9 / x) <= t / x for t, x in zip(ts, ns))  # ns are rounded
    assert abs(r["avg_ns"] - statistics.mean(ns)) <= 1 and abs(r["stddev_ns"] - statistics.stdev(ns)) <= 2
    assert near(r["avg_ts"], statistics.mean(ts)) and near(r["median_ts"], statistics.median(ts))
    assert abs(r["stddev_ts"] - statistics.stdev(ts)) <= 1e-6 * r["avg_ts"]
    assert (r["p99_token_ns"] is None) == (r["n_gen"] == 0)
    if r["n_gen"]:
        assert 0 < r["p99_token_ns"] <= max(ns)
    assert near(r["achieved_bytes_per_s"], r["bytes_per_token"] * r["median_ts"])
    assert r["limit_ts"] > 0 and near(r["percent_of_limit"], 100 * r["median_ts"] / r["limit_ts"])
    assert r["peak_memory_bytes"] > told["weight_bytes"]
    assert min(r["machine_read_bytes_per_s"], r["machine_f32_flops"], r["machine_int8_ops"]) > 0

# the same fields everywhere, and the numbers that are no times
steady = lambda r: {k: v for k, v in r.items() if re.match("model_|n_|type_|cpu|isa|att|logits|bytes", k)}
assert [list(r) for r in lines] == [list(r) for r in rows]
assert [list(r) for r in sheet] == [list(r) for r in rows]
assert [steady(r) for r in lines] == [steady(r) for r in rows]
assert [steady(r) for r in sheet] == [{k: v if isinstance(v, str) else json.dumps(v)
                                       for k, v in steady(r).items()} for r in rows]
assert all(len(json.loads(r["samples_ns"])) == 2 for r in sheet)

# one more group of 16 positions is read at a depth of 70 than at one of 0, and so on
a, b = (next(r for r in rows if r["n_gen"] and r["n_depth"] == d) for d in (0, 70))
m = told
group = 16 * 2 * m["n_layer"] * m["n_head_kv"] * (m["head_dim"] + (m["head_dim"] + 15) // 16 * 16)
assert b["bytes_per_token"] - a["bytes_per_token"] == 4 * group  # 2 positions, and 72

table = [[c.strip() for c in line.strip().strip("|").split("|")] for line in open(f"{folder}/table.md")]
assert len(table) == 2 + len(rows) and len({len(r) for r in table}) == 1
assert all(re.fullmatch("-+:?", c) for c in table[1])
head = table[0]
assert head[:3] == ["model", "size", "params"]
cell = lambda r, name: r[head.index(name)]
assert [cell(r, "test") for r in table[2:]] == ["pp9", "pp33", "tg5", "pp9 @ d70", "pp33 @ d70", "tg5 @ d70"]
assert [cell(r, "logits hash") for r in table[2:]] == [r["logits_hash"] for r in rows]
assert all(re.fullmatch(r"\d+\.\d\d ± \d+\.\d\d", cell(r, "t/s")) for r in table[2:])
assert all(cell(r, "model") == rows[0]["model_type"] for r in table[2:])
END_PYTHON

# quantised weights: the same logits for any threads, any batch, and whether read at once or one by one
run bench -q -p 40 -n 40 -d 0,30 -r 1 --no-warmup -t 1,2,3 -b 1,7,64 -o json
status 0
ok "one hash for each depth" "$PYTHON" - "$T/out" <<'END_PYTHON'
import json, sys
rows = json.load(open(sys.argv[1]))
assert len(rows) == 3 * 3 * 2 * 2
assert {(r["n_threads"], r["n_batch"]) for r in rows} == {(t, b) for t in (1, 2, 3) for b in (1, 7, 64)}
hashes = {d: {r["logits_hash"] for r in rows if r["n_depth"] == d} for d in (0, 30)}
assert all(len(h) == 1 for h in hashes.values()) and hashes[0] != hashes[30], hashes
assert all(r["stddev_ts"] == r["stddev_ns"] == 0 for r in rows)
END_PYTHON
cp "$T/out" "$T/mapped"
run bench -q -p 40 -n 40 -d 0,30 -r 1 --no-warmup -t 1,2 -b 64 -o json --interleave
status 0
ok "the same hashes, weights laid anew" "$PYTHON" - "$T/out" "$T/mapped" <<'END_PYTHON'
import json, sys
anew, mapped = (json.load(open(name)) for name in sys.argv[1:])
told = lambda rows: {(r["n_depth"], r["bytes_per_token"] if r["n_gen"] else 0, r["logits_hash"]) for r in rows}
assert told(anew) == told(mapped)
assert all(0 < r["interleaved_bytes"] for r in anew) and not any(r["interleaved_bytes"] for r in mapped)
END_PYTHON

# types of the cache: pairs, or each with each
types() {
    want=$1
    shift
    run bench -q -p 0 -n 1 -r 1 -t 1 -o jsonl "$@"
    status 0
    ok "types $want" [ "$(sed 's/.*"type_k": "\([^"]*\)", "type_v": "\([^"]*\)".*/\1-\2/' "$T/out" | tr '\n' ' ')" = "$want " ]
}
types "f32-f32 q8_0-q8_0" --kv-type f32,q8_0
types "f16-f32 f16-bf16 q8_0-f32 q8_0-bf16" --kv-type-k f16,q8_0 --kv-type-v f32,bf16
types "f32-q8_0" --kv-type-v q8_0 --kv-type f32

# settings that are generate's
run bench -q -p 8 -n 0 -r 1 -t 1 -o jsonl --precise --attention flash --blas off
status 0
out_has '"attention": "flash"'
out_has '"precise": true, "blas": false'
run bench -q -p 8 -n 0 -r 1 -t 1 --precise --attention flash
status 0
out_has '| flash precise '
run bench -q -p 8 -n 0 -r 1 -t 1
status 0
ok "what is as always has no column" [ "$(grep -c setting "$T/out")" -eq 0 ]
run bench --attention help
status 0
out_has auto

# past what the model was trained for: rotary positions go on
run bench -p 1 -n 0 -d 0 -r 1 -t 1
status 0
err_has 'tinygpt: machine: 1 thread read '
trained=$("$TINYGPT" inspect --json </dev/null | "$PYTHON" -c 'import json, sys; print(json.load(sys.stdin)["n_ctx_train"])')
run bench -p 1 -n 0 -d "$trained" -r 1 -t 1 --no-warmup
status 0
err_has "going past the $trained positions that the model was trained for"
run bench -m tests/golden/gpt2-tanh -p 4 -n 0 -d 80 -r 1
status 2
out ''
err 'tinygpt: error: -d with -p or -n makes 84 positions, and this model has 80'
run bench -m tests/golden/gpt2-tanh -q -p 4 -n 4 -d 76 -r 1 -t 1 -o csv
status 0
ok "a row each and a header" [ "$(wc -l <"$T/out")" -eq 3 ]

# wrong
run bench -d 1048576 -p 1 -n 0
status 2
run bench -m "$T/none"
status 9
one_error
out ''
run bench --attention flash --kv-type q8_0 -p 1 -n 1 -m tests/golden/gpt2-tanh -b 0
status 2
one_error
if [ -w /dev/full ]; then
    "$TINYGPT" bench -q -p 1 -n 1 -r 1 -t 1 -o json >/dev/full 2>"$T/err" </dev/null
    echo $? >"$T/rc"
    status 9
    one_error
fi

# a signal: what was made stays, and the JSON is whole
ok "interrupted" "$PYTHON" - "$TINYGPT" <<'END_PYTHON'
import json, os, signal, subprocess, sys
p = subprocess.Popen([sys.argv[1], "bench", "-q", "-p", "1", "-n", "4000", "-r", "2", "-t", "1", "-o", "json"],
                     stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                     preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
first = os.read(p.stdout.fileno(), 1)
p.send_signal(signal.SIGINT)
out, err = p.communicate(timeout=60)
assert p.returncode == 130, p.returncode
assert err == b"", err
rows = json.loads(first + out)
assert [(r["n_prompt"], r["n_gen"]) for r in rows] == [(1, 0)]
END_PYTHON

finish
