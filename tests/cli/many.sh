#!/bin/sh
# Many prompts: one a line, text or objects; several texts of one; each is what it is alone.
. "$(dirname "$0")/../support/cli.sh"
need_model
need_python

cat >"$T/prompts" <<'EOF'
Once upon a time
The fox said to the hen
There was once a king who had three daughters, and the youngest of them
There was once a king who had three daughters, and the eldest of them said: "Dear father
one\two

Once upon a time
EOF
escape() { sed -z 's/\\/\\\\/g; s/\n/\\n/g; s/\r/\\r/g'; }

# each line's text is the text alone
while IFS= read -r line; do
    "$TINYGPT" generate -q -n 30 --seed 4 -- "$line" </dev/null | escape
    echo
done <"$T/prompts" >"$T/alone"
for more in "" "--parallel 1" "--parallel 2 -b 3" "--parallel 3 -t 1" "--lookup" "-c 64" "--lookup --draft 3 --parallel 4"; do
    # shellcheck disable=SC2086
    run generate -q -n 30 --seed 4 --each-line -f "$T/prompts" $more
    status 0
    err ''
    out_is "$T/alone"
done
run_in generate -q -n 30 --seed 4 --each-line <"$T/prompts"
out_is "$T/alone"
run generate -n 5 --each-line -f "$T/prompts" --stats
status 0
ok "one seed is told" [ "$(grep -c '^tinygpt: seed' "$T/err")" -eq 1 ]
ok "all are counted" grep -qx 'generated tokens: 35' "$T/err"
printf 'a\r\nb' | run_in generate --temp 0 -n 3 --each-line --chomp --echo
ok "--chomp takes the carriage return, and the last line needs no end" [ "$(cut -c 1 "$T/out" | tr -d '\n')" = ab ]
ok "no carriage return" sh -c "! grep -q 'r' '$T/out' || ! grep -qF '\\r' '$T/out'"
run generate --each-line
status 0
out ''

# objects: fields of their own, null for none; one object each, in order
cat >"$T/in.jsonl" <<'EOF'
{"prompt": "Once upon a time", "max_tokens": 7, "seed": 4, "custom_id": "first"}

{"prompt": "The fox", "temperature": 0, "n": 3, "stop": null, "max_tokens": 4, "custom_id": 2}
{"prompt": "The fox", "temperature": 0, "stop": [".", "y"], "logprobs": 3, "echo": true}
{"prompt": "", "temperature": 0, "max_tokens": 1, "ignore_eos": true, "logit_bias": {"700": 100}}
{"prompt": "a\u0000b", "max_tokens": 2, "top_k": 1, "frequency_penalty": 0.5, "repeat_last_n": -1}
{"prompt": "x", "max_tokens": 0}
EOF
run generate --each-line --jsonl -f "$T/in.jsonl" -n 12 --seed 9
status 0
cat >"$T/check.py" <<'EOF'
import json, sys
a = [json.loads(line) for line in open(sys.argv[1])]
assert len(a) == 6
assert all(x["object"] == "text_completion" and x["model"].endswith("tales.gguf") for x in a)
for x in a:
    n = sum(1 for c in x["choices"])
    assert [c["index"] for c in x["choices"]] == list(range(n))
    assert x["usage"]["total_tokens"] == x["usage"]["prompt_tokens"] + x["usage"]["completion_tokens"]
    assert {"stop", "length"} >= {c["finish_reason"] for c in x["choices"]}
    t = x["timings"]
    assert abs(t["decoded_tokens"] - t["decode_seconds"] * t["decoded_tokens_per_second"]) < 0.01 * t["decoded_tokens"] + 0.01
assert a[0]["custom_id"] == "first" and a[0]["seed"] == 4 and a[0]["usage"]["completion_tokens"] == 7
assert a[1]["custom_id"] == 2 and a[1]["seed"] == 9 and len(a[1]["choices"]) == 3
assert len({c["text"] for c in a[1]["choices"]}) == 1 and a[1]["usage"]["completion_tokens"] == 12
stopped = a[2]["choices"][0]
assert stopped["finish_reason"] == "stop" and stopped["text"].startswith("The fox")
assert not {".", "y"} & set(stopped["text"])
tokens = stopped["logprobs"]["content"]
text = b"".join(bytes(t["bytes"]) for t in tokens).decode()
assert text.startswith(stopped["text"][len("The fox"):])
assert "".join(t["token"] for t in tokens[:-1]) in stopped["text"]
for t in tokens:  # U17, and greedy: the likeliest was taken
    top = t["top_logprobs"]
    assert len(top) == 3 and top == sorted(top, key=lambda u: (-u["logprob"], u["id"]))
    assert (top[0]["id"], top[0]["logprob"]) == (t["id"], t["logprob"]) and t["logprob"] < 0
    assert bytes(t["bytes"]).decode() == t["token"]
assert a[3]["usage"]["completion_tokens"] == 1 and a[3]["choices"][0]["logprobs"] is None
assert a[5]["usage"]["completion_tokens"] == 0
EOF
ok "the objects are right" "$PYTHON" "$T/check.py" "$T/out"
"$TINYGPT" generate -q -n 7 --seed 4 "Once upon a time" </dev/null >"$T/alone"
ok "an object's text is the text alone" "$PYTHON" -c "import json, sys
assert json.loads(open('$T/out').readline())['choices'][0]['text'] == open('$T/alone').read()"

# what is wrong with a line is told, and the others go on
i=0
: >"$T/long"
while [ $i -lt 700 ]; do
    printf 'Once upon a time ' >>"$T/long"
    i=$((i + 1))
done
cat >"$T/bad.jsonl" <<EOF
{"prompt": "The", "max_tokens": 1}
{"prompt": "The", "max_token": 1}
{"prompt": 7}
{"max_tokens": 7}
{"prompt": "The", "temperature": -1}
{"prompt": "The", "temperature": "1"}
{"prompt": "The", "max_tokens": 1.5}
{"prompt": "The", "seed": -1}
{"prompt": "The", "stop": [""]}
{"prompt": "The", "stop": [1]}
{"prompt": "The", "echo": 1}
{"prompt": "The", "n": 0}
{"prompt": "The", "logit_bias": {"a": 1}}
{"prompt": "The", "logit_bias": {"99999": 1}}
{"prompt": "The", "prompt": "Two"}
{"prompt": "$(cat "$T/long")"}
The
[]
{"prompt": "The", "max_tokens": 1}
EOF
run generate --each-line --jsonl -f "$T/bad.jsonl" --temp 0
status 2
ok "an answer for each line" [ "$(wc -l <"$T/out")" -eq 19 ]
ok "an error for each but two" [ "$(grep -c '^{"error": {"type": "invalid_request_error", "message": ' "$T/out")" -eq 17 ]
ok "their lines are named" [ "$(grep -c '^tinygpt: error: line [0-9]*: ' "$T/err")" -eq 17 ]
err_has 'tinygpt: error: 17 of 19 lines could not be continued'
err_has 'line 2: unknown field "max_token"'
err_has 'line 5: "temperature" must be a number from 0 to 100'

# whatever goes first, objects are objects: a bad line has its error, and the others are no text for that
good='{"prompt": "The fox", "max_tokens": 2}'
echo "$good" | run_in generate --each-line --jsonl --temp 0 -n 2
ok "an answer" "$PYTHON" -c "import json; a = json.load(open('$T/out'))['choices'][0]['text']; open('$T/good', 'w').write(a)"
cat >"$T/check.py" <<'EOF'
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
good = open(sys.argv[2]).read()
assert len(lines) == 3 and "error" in lines[0], lines
assert all(line["choices"][0]["text"] == good for line in lines[1:]), lines
EOF
for bad in '{"prompt": "The fox"' '{}' '{"prompts": "The fox"}' ' { "prompt": 7 }' '{"prompt": "The", "prompt": "Two"}' \
    "{\"prompt\": \"$(cat "$T/long")\"}" '{"prompt": "\ud800"}'; do
    printf '%s\n%s\n\n%s\n' "$bad" "$good" "$good" | run_in generate --each-line --jsonl --temp 0 -n 2
    status 2
    err_has 'tinygpt: error: line 1: '
    ok "one error, two answers: $(printf %.60s "$bad")" "$PYTHON" "$T/check.py" "$T/out" "$T/good"
    printf '%s\n%s\n\n%s\n' "$bad" "$good" "$good" | run_in generate -q --each-line --temp 0 -n 2
    ok "without --jsonl, too: $(printf %.60s "$bad")" [ "$(sed '1d' "$T/out" | sort -u)" = "$(cat "$T/good")" ]
done
printf 'The fox\n%s\n' "$good" | run_in generate --each-line --jsonl --temp 0 -n 2
ok "a text, then an object" [ "$(grep -cF "\"text\": \"$(cat "$T/good")\"" "$T/out")" -eq 2 ]
printf '\357\273\277%s\r\n%s\n' "$good" "$good" | run_in generate --each-line --jsonl --temp 0 -n 2
status 0
ok "a byte-order mark" [ "$(grep -cF "\"text\": \"$(cat "$T/good")\"" "$T/out")" -eq 2 ]
printf 'The\n{ and\n{"a": 1}\n' | run_in generate -q --each-line --jsonl --temp 0 -n 1
status 0
ok "texts that begin with a brace" [ "$(grep -c '"text": ' "$T/out")" -eq 3 ]

{ echo The && cat "$T/long" && echo && echo The; } >"$T/lines"
run generate --each-line -f "$T/lines" -n 2 --temp 0
status 2
ok "an empty line for a bad one" [ "$(wc -l <"$T/out")" -eq 3 -a -z "$(sed -n 2p "$T/out")" ]
err_has 'line 2: the prompt has'

# a program may write a line and wait for its answer
ok "a conversation by lines" "$PYTHON" - "$TINYGPT" <<'EOF'
import signal, subprocess, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)  # a background job ignores it, and so would what it starts
p = subprocess.Popen([sys.argv[1], "generate", "-q", "--each-line", "--temp", "0", "-n", "5"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
seen = set()
for _ in range(3):
    p.stdin.write(b"Once upon a time\n")
    p.stdin.flush()
    seen.add(p.stdout.readline())
p.stdin.close()
assert len(seen) == 1 and p.wait() == 0
p = subprocess.Popen(p.args, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # and Ctrl-C ends the waiting
p.stdin.write(b"Once upon a time\n")
p.stdin.flush()
p.stdout.readline()
p.send_signal(signal.SIGINT)
assert p.wait(timeout=20) == 130
EOF

# several texts of one prompt: streams of one seed, the first as without
run generate -q -n 20 --seed 5 "Once upon a time"
escape <"$T/out" >"$T/first"
run generate -q -n 20 --seed 5 --n-best 6 "Once upon a time"
status 0
ok "a line each" [ "$(wc -l <"$T/out")" -eq 6 ]
ok "the first is the one without" [ "$(head -n 1 "$T/out")" = "$(cat "$T/first")" ]
ok "they differ" [ "$(sort -u "$T/out" | wc -l)" -gt 4 ]
cp "$T/out" "$T/six"
run generate -q -n 20 --seed 5 --n-best 6 --parallel 2 "Once upon a time"
out_is "$T/six"
run generate -n 20 --seed 5 --n-best 6 --json "Once upon a time"
err ''
ok "the same as JSON" "$PYTHON" -c "import json
texts = [c['text'].replace('\\\\', '\\\\\\\\').replace('\n', '\\\\n') for c in json.load(open('$T/out'))['choices']]
assert texts == open('$T/six').read().splitlines()"

# what does not go together
for more in "--json --jsonl" "--logprobs 3" "--each-line --json" "--each-line -p x" "--each-line --no-stdin" "--logit-bias 5" \
    "--logit-bias 5+-1" "--logit-bias x+1" "--logit-bias 5+nan" "--logit-bias 5+10001" "--stop="; do
    # shellcheck disable=SC2086
    run generate $more "Once"
    status 2
    out ''
    one_error
done

finish
