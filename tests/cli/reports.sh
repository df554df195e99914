#!/bin/sh
# What users of other engines reported, by number: what comes out of the command line here.
. "$(dirname "$0")/../support/cli.sh"
need_model
need_python

best() { # argmax of 40 tokens
    run generate --temp 0 -n 40 --ignore-eos "$@" "Once upon a time"
    status 0
}
best
cp "$T/out" "$T/whole"

# U11: a stop is found across tokens and inside one, and nothing of it is written
"$PYTHON" - "$T" <<'EOF'
import os, sys
t = sys.argv[1]
whole = open(t + "/whole").read()
words = whole.split(" ")
for i, stop in enumerate([" ".join(words[5:8]), whole[9:11], words[12][1:3], whole[60:75]]):
    open(f"{t}/stop{i}", "w").write(stop)
    open(f"{t}/want{i}", "w").write(whole[:whole.index(stop)])
EOF
for i in 0 1 2 3; do
    best --stop "$(cat "$T/stop$i")" --stop "never there"
    out_is "$T/want$i"
done
best --stop "$(printf '%sx' "$(head -c 30 "$T/whole")")" # held back, and given in the end
out_is "$T/whole"

# U12: a stop that is the name of a special token stands for it
run generate --temp 0 -n 9 --ignore-eos --logit-bias 0+1000 --json "Once"
out_has '"text": "'
for more in "" --special; do
    # shellcheck disable=SC2086
    run generate --temp 0 -n 9 --logit-bias 0+1000 --stop '<|endoftext|>' --json --logprobs 0 $more "Once"
    status 0
    out_has '"text": ""'
    out_has '"finish_reason": "stop"'
    out_has '"content": []'
done

# U13: --ignore-eos gives as many tokens as -n says, however likely the end is
run generate -n 150 --ignore-eos --logit-bias 0+100 --seed 1 --stats "The end."
ok "U13" grep -qx 'generated tokens: 150' "$T/err"

# U14: a temperature of next to nothing is argmax, and needs no seed
for temp in 0 0.0 1e-9 1e-45; do
    run generate --temp $temp -n 40 --ignore-eos "Once upon a time"
    err ''
    out_is "$T/whole"
done

# U15: no window, no penalty; a heavy penalty over everything repeats no token
best --repeat-penalty 50 --presence-penalty 90 --repeat-last-n 0
out_is "$T/whole"
run generate --temp 0 -n 60 --ignore-eos --presence-penalty 100 --repeat-last-n -1 --json --logprobs 0 "Once upon a time"
ok "U15" "$PYTHON" -c "import json
ids = [t['id'] for t in json.load(open('$T/out'))['choices'][0]['logprobs']['content']]
assert len(ids) == len(set(ids)) == 60"

# U16: the ends of ranges
run generate --top-k 4000000000 "Once"
status 2
run generate -q --seed 3 -n 20 --top-k 2147483647 --top-p 1 --min-p 0 "Once upon a time"
cp "$T/out" "$T/all"
run generate -q --seed 3 -n 20 --top-k 0 --top-p 1 --min-p 0 "Once upon a time"
out_is "$T/all"

# U17: log-probabilities are those of `logits`, whatever the sampler does
run logits -p "Once upon a time" --top 5
awk '{ printf "%s %.3f\n", $1, $3 }' "$T/out" | head -n 6 >"$T/top"
run generate --seed 2 --temp 3 -n 1 --ignore-eos --logit-bias 5+9 --presence-penalty 3 --json --logprobs 5 "Once upon a time"
ok "U17" "$PYTHON" -c "import json
top = json.load(open('$T/out'))['choices'][0]['logprobs']['content'][0]['top_logprobs']
want = [l.split() for l in open('$T/top') if l[0].isdigit()]
assert [t['id'] for t in top] == [int(w[0]) for w in want][:5], (top, want)
assert all(abs(t['logprob'] - float(w[1])) < 2e-3 for t, w in zip(top, want)), (top, want)"

# U18, U19: the seed that is told repeats the run, on any number of threads
run generate -n 40 "Once upon a time"
cp "$T/out" "$T/first"
seed=$(sed -n 's/^tinygpt: seed //p' "$T/err")
for t in 1 2; do
    run generate -n 40 --seed "$seed" --temp 0.8 -t $t "Once upon a time"
    out_is "$T/first"
done

# U20: prompts of about a batch give the same logits for any batch
for n in 15 16 17; do
    ids=$(seq -s, 5 $((4 + n)))
    run logits --ids "$ids" --format npy -o "$T/a.npy" -b 16
    run logits --ids "$ids" --format npy -o "$T/b.npy" -b 512
    ok "U20: $n tokens" cmp "$T/a.npy" "$T/b.npy"
done

# U21: 1,024 learned positions hold prompt and text
"$PYTHON" - tests/golden/gpt2-tanh "$T/gpt2" <<'EOF'
import json, os, struct, sys
source, out = sys.argv[1:]
os.mkdir(out)
raw = open(source + "/model.safetensors", "rb").read()
n = struct.unpack("<Q", raw[:8])[0]
head, data = json.loads(raw[8:8 + n]), raw[8 + n:]
at, body = 0, b""
for name, t in head.items():
    if name == "__metadata__":
        continue
    part = data[slice(*t["data_offsets"])]
    if name.endswith("wpe.weight"):
        row = len(part) // t["shape"][0]
        part = (part * (1024 // t["shape"][0] + 1))[:1024 * row]
        t["shape"][0] = 1024
    t["data_offsets"] = [len(body), len(body) + len(part)]
    body += part
head = json.dumps(head).encode()
open(out + "/model.safetensors", "wb").write(struct.pack("<Q", len(head)) + head + body)
config = json.load(open(source + "/config.json"))
config["n_positions"] = config["n_ctx"] = 1024
json.dump(config, open(out + "/config.json", "w"))
open(out + "/tokenizer.json", "w").write(open(source + "/tokenizer.json").read())
EOF
token=$("$TINYGPT" tokenize -m "$T/gpt2" --decode 5)
for n in 1020 1100; do
    i=0
    while [ $i -lt $n ]; do
        printf '%s' "$token"
        i=$((i + 1))
    done >"$T/text$n"
done
run generate -m "$T/gpt2" -f "$T/text1100"
status 2
one_error
err_has 'the prompt has 1100 tokens and the context 1024 positions'
run generate -m "$T/gpt2" -n 100 --ignore-eos --temp 0 --json -f "$T/text1020"
status 0
out_has '"completion_tokens": 4'
out_has '"finish_reason": "length"'

# U26: what a pipe brings goes before the argument; U27: a file's last newline stays
run tokenize --count "$(printf 'Once upon\na time')"
n=$(cat "$T/out")
echo 'Once upon' | run_in generate -n 1 --temp 0 --json 'a time'
out_has "\"prompt_tokens\": $n"
printf 'Once upon a time\n' >"$T/prompt"
run generate --echo -n 0 -f "$T/prompt"
out_is "$T/prompt"

# U28: no escape byte in what is no terminal, whatever the environment says; -q leaves the text
TERM=xterm CLICOLOR_FORCE=1 run generate --temp 0 -n 40 --ignore-eos -q "Once upon a time"
out_is "$T/whole"
err ''
TERM=xterm run generate --temp 0 -n 40 --stats -v "Once upon a time"
ok "no escape bytes" sh -c "! cat '$T/out' '$T/err' | od -An -tx1 | grep -q ' 1b'"

# U22, U23, U25: heads
cat >"$T/heads.py" <<'END'
import json, shutil, struct, subprocess, sys

tinygpt, folder = sys.argv[1:]


def logits(model, ids, *options):
    data = subprocess.run([tinygpt, "logits", "-m", model, "--ids", ",".join(map(str, ids)), "--all", "--format", "npy",
                           "--precise", *options], stdin=subprocess.DEVNULL, capture_output=True, check=True).stdout
    return struct.unpack(f"<{len(data[128:]) // 4}f", data[128:])


def variant(name, tied, change):
    """llama-plain with other tensors: {name: (entry, bytes)} goes through `change`."""
    path = f"{folder}/{name}"
    shutil.copytree("tests/golden/llama-plain", path)
    data = open(f"{path}/model.safetensors", "rb").read()
    (n,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8:8 + n])
    tensors = {k: (v, data[8 + n:][slice(*v["data_offsets"])]) for k, v in header.items() if k != "__metadata__"}
    change(tensors)
    header, body = {}, b""
    for k, (entry, part) in tensors.items():
        header[k] = dict(entry, data_offsets=[len(body), len(body) + len(part)])
        body += part
    text = json.dumps(header).encode()
    open(f"{path}/model.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + body)
    config = json.load(open(f"{path}/config.json"))
    json.dump(dict(config, tie_word_embeddings=tied), open(f"{path}/config.json", "w"))
    return path


def redundant(tensors):
    tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"]


ids = [1, 5, 9, 2, 7, 30, 11]
tied = logits(variant("tied", True, lambda t: t.pop("lm_head.weight")), ids)
assert tied != logits("tests/golden/llama-plain", ids)
assert tied == logits(variant("both", True, redundant), ids)
assert tied == logits(variant("apart", False, redundant), ids)

data = open("tests/golden/ids/66x33.npy", "rb").read()
start = 10 + struct.unpack_from("<H", data, 8)[0]
width = 8 if b"i8" in data[:start] else 4
ids = struct.unpack(f"<66{'q' if width == 8 else 'i'}", data[start:])
found = logits("tests/golden/llama-8-2", ids, "--kv-type", "f32")
data = open("tests/golden/llama-8-2/logits.npy", "rb").read()
start = 10 + struct.unpack_from("<H", data, 8)[0]
kind = "d" if b"f8" in data[:start] else "f"
wanted = struct.unpack(f"<{len(found)}{kind}", data[start:])
most = max(map(abs, wanted))
assert max(abs(a - b) for a, b in zip(found, wanted)) <= 1e-4 * max(1, most)
# Heads of 10 numbers are no whole block of q8_0: the rest of it is empty, and nothing has to be refused.
rounded = logits("tests/golden/llama-8-2", ids, "--kv-type", "q8_0")
error = max(abs(a - b) for a, b in zip(rounded, wanted))
assert 0 < error < 0.05 * most, (error, most)
END
ok "U22, U23, U25: heads tied, redundant, grouped, and of odd sizes" "$PYTHON" "$T/heads.py" "$TINYGPT" "$T"

# penalties, biases and typicality change the text, and lookup does not
for more in "--repeat-penalty 1.5" "--frequency-penalty 1" "--logit-bias 428-50"; do
    # shellcheck disable=SC2086
    best $more
    ok "$more changes it" sh -c "! cmp -s '$T/out' '$T/whole'"
done
best --typical 0.9
out_is "$T/whole"
run generate -q --seed 3 -n 60 --typical 0.2 "Once upon a time"
cp "$T/out" "$T/typical"
run generate -q --seed 3 -n 60 --typical 0.2 --lookup "Once upon a time"
out_is "$T/typical"

finish
