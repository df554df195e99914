#!/bin/sh
# Continuations against the rows that `logits` writes.
. "$(dirname "$0")/../support/cli.sh"
need_model
need_python

cat >"$T/check.py" <<'END'
import json, math, struct, subprocess, sys

tinygpt, *options = sys.argv[1:]


def run(*args, text=b""):
    return subprocess.run([tinygpt, *args], input=text, capture_output=True, check=True).stdout


def encode(text):
    return [int(i) for i in run("tokenize", "--ids", "--no-bos", "-f", "-", text=text.encode()).split()]


begin = [int(i) for i in run("tokenize", "--ids", "x").split()][:-len(encode("x"))]


def reference(prompt, continuation):
    alone, both = encode(prompt), encode(prompt + continuation)
    split = 0
    while split < min(len(alone), len(both)) and alone[split] == both[split]:
        split += 1
    ids = begin + both
    data = run("logits", "--ids", ",".join(map(str, ids)), "--all", "--format", "npy")[128:]
    n = len(data) // 4 // len(ids)
    logprobs, greedy = [], True
    for i in range(split + len(begin), len(ids)):
        row = struct.unpack_from(f"<{n}f", data, 4 * n * (i - 1))
        top = max(row)
        logprobs.append(row[ids[i]] - top - math.log(math.fsum(math.exp(x - top) for x in row)))
        greedy = greedy and row.index(top) == ids[i]
    return ids[split + len(begin):], logprobs, greedy


prompts = ["Once upon a time", "The king had a daughter, and the dau", "", "Once upon a time there"]
ends = [" there was", "ghter was", " was a poor man who had a wife and many children.", "s", "", " \n", "Zwölf 🦙"]
pairs = [(p, c) for p in prompts for c in ends] + [("A" * 300, " B"), ("Once", " upon a time" * 60)]
wanted = [reference(*pair) for pair in pairs]

lines = "".join(json.dumps({"prompt": p, "continuation": c}) + "\n" for p, c in pairs)
found = [json.loads(line) for line in run("score", "--jsonl", *options, text=lines.encode()).splitlines()]
assert len(found) == len(pairs)
for pair, (ids, logprobs, greedy), told in zip(pairs, wanted, found):
    assert told["tokens"] == ids, (pair, told, ids)
    assert told["greedy"] == greedy, (pair, told)
    assert all(abs(a - b) < 2e-5 for a, b in zip(told["logprobs"], logprobs)), (pair, told, logprobs)
    assert abs(told["logprob"] - math.fsum(told["logprobs"])) < 1e-5
assert sum(told["greedy"] and len(told["tokens"]) > 0 for told in found) > 0

# As text: a prompt, and a continuation a line.
text = run("score", "-p", prompts[0], *options, text="".join(c.strip("\n") + "\n" for c in ends[:5]).encode())
for line, told in zip(text.decode().splitlines(), found):
    logprob, n, greedy = line.split("\t")
    assert (int(n), int(greedy)) == (len(told["tokens"]), told["greedy"])
    assert abs(float(logprob) - told["logprob"]) < 1e-5
END
ok "log-probabilities" "$PYTHON" "$T/check.py" "$TINYGPT"
ok "small batches" "$PYTHON" "$T/check.py" "$TINYGPT" -b 3 -t 1

# The same bits whatever is evaluated together.
seq 1 40 | sed 's/.*/ went away and & came back/' >"$T/lines"
run score -p "The fox" -f "$T/lines"
status 0
cp "$T/out" "$T/one"
run score -p "The fox" -f "$T/lines" -t 3 -b 5
out_is "$T/one"
run score -p "The fox" -f "$T/lines" --precise
ok "but not of other arithmetic" [ "$(cmp -s "$T/out" "$T/one"; echo $?)" = 1 ]

# Lines that cannot be scored; those before them are.
printf '%s\n' '{"continuation": "x"}' '{"prompt": "x"}' >"$T/lines"
run score --jsonl -f "$T/lines"
status 2
err_has "$T/lines, line 2: no continuation (allowed: the strings prompt and continuation)"
ok "one line is there" [ "$(wc -l <"$T/out")" = 1 ]
for line in '' '[1]' '{"continuation": 1}' '{"continuation": "a", "continuation": "a"}' '{"continuation": "a", "more": 1}' '{"continuation": "\xff"}'; do
    printf '%s\n' "$line" >"$T/lines"
    run score --jsonl -f "$T/lines"
    status 2
    out ''
    err_has "$T/lines, line 1: "
done
yes word | head -n 4000 | tr '\n' ' ' >"$T/lines"
run score -p "A" -f "$T/lines"
status 2
err_has "$T/lines, line 1: "
run score -p "A" -f "$T/none"
status 9
: >"$T/empty"
run score -p "A" -f "$T/empty"
status 0
out ''
finish
