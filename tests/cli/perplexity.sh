#!/bin/sh
# Perplexity and divergence, held to sums over the rows that `logits` writes.
. "$(dirname "$0")/../support/cli.sh"
need_model
need_python

printf 'Once upon a time there was a little girl named Lily. She loved to play in the park with her dog, and one day they found a big red ball.\n' >"$T/text"

# One window, and windows that overlap by 11, 1 and 0 tokens: every token once, from what its window holds.
cat >"$T/check.py" <<'END'
import json, math, struct, subprocess, sys

tinygpt, folder, context, stride, *options = sys.argv[1:]
context, stride = int(context), int(stride)


def run(*args):
    return subprocess.run([tinygpt, *args], stdin=subprocess.DEVNULL, capture_output=True, check=True).stdout


def rows_of(ids):
    """Log-probabilities after each of the ids."""
    data = run("logits", "--ids", ",".join(map(str, ids)), "--all", "--format", "npy", *options)
    n = len(data[128:]) // 4 // len(ids)
    flat = struct.unpack(f"<{n * len(ids)}f", data[128:])
    return [flat[i * n:(i + 1) * n] for i in range(len(ids))]


def log_softmax(row):
    top = max(row)
    lse = top + math.log(math.fsum(math.exp(x - top) for x in row))
    return [x - lse for x in row]


ids = [int(i) for i in run("tokenize", "--ids", "--no-bos", "-f", f"{folder}/text").split()]
begun = [int(i) for i in run("tokenize", "--ids", "-f", f"{folder}/text").split()]
head = begun[:len(begun) - len(ids)]
args = ["perplexity", "-f", f"{folder}/text", "--json", "-c", str(context), "--stride", str(stride), *options]
told = json.loads(run(*args, "--save-logits", f"{folder}/saved"))

nll, kept = [], []
at, end = 1 - len(head), min(len(ids), context + 1 - len(head))
while at < len(ids):
    begin = max(0, end - 1 - (context - len(head)))
    rows = rows_of(head + ids[begin:end - 1])
    assert len(rows) <= context
    for j in range(at, end):
        row = rows[len(head) + j - 1 - begin]
        nll.append(-log_softmax(row)[ids[j]])
        kept.append(row)
    at, end = end, min(len(ids), end + stride)

assert told["tokens"] == len(nll) == len(ids) - 1 + len(head)
total = math.fsum(nll)
assert abs(told["nll"] - total) < 1e-5 * total, (told, total)
assert abs(told["nll_mean"] - total / len(nll)) < 1e-5
assert abs(told["perplexity"] / math.exp(total / len(nll)) - 1) < 1e-4
n_bytes = len(open(f"{folder}/text", "rb").read())
assert head and told["bytes"] == n_bytes
assert abs(told["bits_per_byte"] - total / math.log(2) / n_bytes) < 1e-5

data = open(f"{folder}/saved", "rb").read()
(n,) = struct.unpack_from("<Q", data)
header = json.loads(data[8:8 + n])
assert header["logits"]["shape"] == [len(kept), len(kept[0])]
first, last = header["logits"]["data_offsets"]
assert data[8 + n + first:8 + n + last] == b"".join(struct.pack(f"<{len(r)}f", *r) for r in kept)
first, last = header["ids"]["data_offsets"]
assert list(struct.unpack(f"<{len(ids)}i", data[8 + n + first:8 + n + last])) == ids and 8 + n + header[
    "logits"]["data_offsets"][1] == len(data)

same = json.loads(run(*args, "--kl", f"{folder}/saved"))
assert abs(same["kl"]) < 1e-6 and abs(same["kl_max"]) < 1e-6 and same["same_top"] == 1
assert all(same[k] == told[k] for k in told)

other = json.loads(run(*args, "--kv-type", "q4", "--kl", f"{folder}/saved", "--save-logits", f"{folder}/other"))
data = open(f"{folder}/other", "rb").read()[-4 * len(kept) * len(kept[0]):]
kl, same = [], 0
for i, row in enumerate(kept):
    width = len(row)
    q = struct.unpack_from(f"<{width}f", data, 4 * width * i)
    log_p, log_q = log_softmax(row), log_softmax(q)
    kl.append(math.fsum(math.exp(a) * (a - b) for a, b in zip(log_p, log_q)))
    same += row.index(max(row)) == q.index(max(q))
mean = math.fsum(kl) / len(kl)
spread = math.sqrt(math.fsum((x - mean) ** 2 for x in kl) / len(kl) / (len(kl) - 1))
assert abs(other["kl"] - mean) < 1e-6 and other["kl"] > 1e-6, (other["kl"], mean)
assert abs(other["kl_error"] - spread) < 1e-6 and abs(other["kl_max"] - max(kl)) < 1e-6
assert abs(other["kl_median"] - sorted(kl)[(len(kl) + 1) // 2 - 1]) < 1e-6
assert abs(other["same_top"] - same / len(kl)) < 1e-9
END
for window in "512 256" "16 5" "16 15" "16 16"; do
    # shellcheck disable=SC2086
    ok "windows of $window" "$PYTHON" "$T/check.py" "$TINYGPT" "$T" $window
done

# As people see it.
run perplexity -f "$T/text" -c 16 --stride 5
status 0
err ''
out_has 'perplexity '
out_has 'bits_per_byte '
cp "$T/out" "$T/one"
run perplexity -f "$T/text" -c 16 --stride 5 -t 3 -b 7
out_is "$T/one"
run_in perplexity -c 16 --stride 5 <"$T/text"
out_is "$T/one"

# Files that others made: another order, metadata; and such as cannot be.
cat >"$T/files.py" <<'END'
import json, struct, sys

folder = sys.argv[1]
data = open(f"{folder}/saved", "rb").read()
(n,) = struct.unpack_from("<Q", data)
header, rest = json.loads(data[8:8 + n]), data[8 + n:]
ids, logits = (rest[slice(*header[k]["data_offsets"])] for k in ("ids", "logits"))


def write(name, header, rest):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    open(f"{folder}/{name}", "wb").write(struct.pack("<Q", len(text)) + text + rest)


def spoilt(key, field, value):
    return dict(header, **{key: dict(header[key], **{field: value})})


write("turned", {"__metadata__": {"made by": "hand"},
                 "logits": dict(header["logits"], data_offsets=[0, len(logits)]),
                 "ids": dict(header["ids"], data_offsets=[len(logits), len(rest)])}, logits + ids)
# windows that no run of ours has
for i, windows in enumerate([{"context": "16"}, {"context": "16", "stride": 5}, {"context": "16", "stride": "17"},
                             {"context": "16abc", "stride": "5"}, {"context": "-16", "stride": "5"}, [], 7, "16"]):
    write(f"odd-{i}", dict(header, __metadata__=windows), rest)
write("bad-json", b"{", rest)
write("bad-key", {"ids": header["ids"]}, rest)
write("bad-dtype", spoilt("logits", "dtype", "F16"), rest)
write("bad-shape", spoilt("logits", "shape", [1 << 62, 8]), rest)
write("bad-rows", spoilt("ids", "shape", [-1]), rest)
write("bad-offset", spoilt("ids", "data_offsets", [len(rest), len(rest) + len(ids)]), rest)
write("bad-end", header, rest[:-1])
write("not-finite\x1b", header, ids + b"\xff" * len(logits))
open(f"{folder}/bad-short", "wb").write(b"1234567")
open(f"{folder}/bad-length", "wb").write(b"\xff" * 16)
END
"$PYTHON" "$T/check.py" "$TINYGPT" "$T" 16 5 && "$PYTHON" "$T/files.py" "$T" || fail "no files to compare with"
run perplexity -f "$T/text" -c 16 --stride 5 --kl "$T/turned"
status 0
out_has 'same_top       1.0000'
err ''
# other windows than the saved file's, where that file says which
for window in "32 5" "16 6"; do
    # shellcheck disable=SC2086
    set -- $window
    run perplexity -f "$T/text" -c "$1" --stride "$2" --kl "$T/saved"
    status 0
    err_has "of windows of 16 positions moved by 5, these of $1 by $2"
    run perplexity -f "$T/text" -c "$1" --stride "$2" --kl "$T/turned"
    status 0
    err ''
done
run perplexity -f "$T/text" -c 16 --stride 5 --kl "$T/saved"
err ''
for odd in "$T"/odd-*; do
    run perplexity -f "$T/text" -c 16 --stride 6 --kl "$odd"
    status 0
    err ''
done
# one window is one window, whatever its size
run perplexity -q --save-logits "$T/short" -c 64 --stride 5 "Once upon a time"
run perplexity --kl "$T/short" -c 32 "Once upon a time"
status 0
err ''
for bad in "$T"/bad-*; do
    run perplexity -f "$T/text" -c 16 --stride 5 --kl "$bad"
    status 3
    out ''
    err_has "$bad: no saved logits: "
done
run perplexity -f "$T/text" --kl "$T"
status 3
run perplexity -f "$T/text" --kl "$T/none"
status 9
err_has "$T/none: cannot read: "
run perplexity -f "$T/text" -c 16 --stride 5 --kl "$T/not-finite$(printf '\033')"
status 8
err_has 'not-finite\x1B: row 0 is not finite'
run perplexity -p "Once upon a time" --kl "$T/saved"
status 2
run perplexity "Once upon a time" --kl "$T/saved"
status 2
err_has 'are of another text (found '
{ cat "$T/text" && echo more; } >"$T/text.more"
n=$("$TINYGPT" tokenize --no-bos --count -f "$T/text")
run perplexity -f "$T/text.more" --kl "$T/saved"
status 2
err_has "wanted $("$TINYGPT" tokenize --no-bos --count -f "$T/text.more"); the first $n are the same)"
run perplexity --no-bos -f "$T/text" --kl "$T/saved"
status 2
err_has 'are of windows with a begin-of-text token (--no-bos)'
# what the model alone tells is told before there is a text
mkfifo "$T/fifo"
timeout 60 "$TINYGPT" perplexity -f "$T/fifo" -m tests/golden/gguf/llama.f32.gguf --kl "$T/saved" >"$T/out" 2>"$T/err" </dev/null
echo $? >"$T/rc"
status 2
err_has 'do not fit the model (found '

# one token has no standard error
run perplexity x
status 0
out_has 'nll_error      -  standard error'
run perplexity --json x
out_has '"nll_error": null'

run perplexity -f "$T/text" -c 16 --stride 17
status 2
err_has 'a window of 16 positions cannot move by 17'
: >"$T/empty"
run perplexity -f "$T/empty"
status 2
err_has "$T/empty: found a text of 0 bytes, in which there is no token to predict"
run perplexity </dev/null
status 2
err_has 'stdin: found a text of 0 bytes'
run perplexity -f "$T/text" --save-logits "$T/no/where"
status 9
finish
