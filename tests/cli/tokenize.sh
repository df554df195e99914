#!/bin/sh
# Texts as tokens and tokens as text.
. "$(dirname "$0")/../support/cli.sh"
need_model

# ids: digits, single spaces, one newline, no other byte
printf 'Once upon a time, there was a fox.\n' >"$T/text"
run_in tokenize -m "$MODEL" --ids --no-bos -f - <"$T/text"
status 0
err ''
ok "ids alone" grep -qxE '[0-9]+( [0-9]+)*' "$T/out"
ok "one line" [ "$(wc -l <"$T/out")" -eq 1 ]
cp "$T/out" "$T/ids"
n=$(wc -w <"$T/ids")

run_in tokenize --ids --no-bos <"$T/text"
out_is "$T/ids"
run tokenize --ids --no-bos -f "$T/text"
out_is "$T/ids"
run tokenize --count --no-bos -f "$T/text"
out "$n
"

# and back, however they are separated
run tokenize --decode "$(cat "$T/ids")"
status 0
out_is "$T/text"
run tokenize --decode "$(tr ' ' ',' <"$T/ids")"
out_is "$T/text"
run_in tokenize --decode - <"$T/ids"
out_is "$T/text"
tr ' ' '\n' <"$T/ids" | run_in tokenize --decode -
out_is "$T/text"
run tokenize --decode ""
status 0
out ''

# nothing
run tokenize --ids --no-bos ""
status 0
out '
'
run tokenize --count --no-bos ""
out '0
'

# the table: a line for a token, bytes escaped
run tokenize --no-bos -f "$T/text"
status 0
ok "a line for each token" [ "$(wc -l <"$T/out")" -eq "$n" ]
ok "ids in the table" [ "$(awk '{ printf "%s%s", s, $1; s = " " }' "$T/out")" = "$(cat "$T/ids")" ]
out_has '\n"'

# wrong ids
for ids in x 1,x 1.5 -1 99999999 "1 2,,three"; do
    run tokenize --decode "$ids"
    status 2
    out ''
    one_error
    err_has 'is not a whole number from 0 to '
done

# all bytes, and back
i=0
: >"$T/bytes"
while [ $i -lt 256 ]; do
    # shellcheck disable=SC2059
    printf "\\$(printf %o $i)" >>"$T/bytes"
    i=$((i + 1))
done
run_in tokenize --ids --no-bos -f - <"$T/bytes"
status 0
err ''
cp "$T/out" "$T/ids"
run_in tokenize --decode - <"$T/ids"
status 0
out_is "$T/bytes"

# R17: special tokens: their text is plain text unless --special
end=$("$TINYGPT" inspect --json </dev/null | sed -n 's/^ *"eos": \([0-9]*\),*/\1/p')
run tokenize --decode "$end"
out ''
run tokenize --special --decode "$end"
name=$(cat "$T/out")
ok "a special token has a name" [ -n "$name" ]
run tokenize --ids --no-bos "$name"
ok "plain text" [ "$(wc -w <"$T/out")" -gt 1 ]
run tokenize --ids --no-bos --special "$name"
out "$end
"

# JSON, read by another program
if command -v "$PYTHON" >/dev/null 2>&1; then
    run_in tokenize --json --no-bos -f - <"$T/bytes"
    status 0
    ok "JSON" "$PYTHON" - "$T/out" "$T/bytes" "$T/ids" <<'END'
import json, sys
told = json.load(open(sys.argv[1], encoding="utf-8"))
data = open(sys.argv[2], "rb").read()
ids = [int(word) for word in open(sys.argv[3]).read().split()]
tokens = told["tokens"]
assert told["count"] == len(tokens)
assert [t["id"] for t in tokens] == ids
assert b"".join(bytes(t["bytes"]) for t in tokens) == data
assert all(t["text"] == bytes(t["bytes"]).decode("utf-8", "replace") for t in tokens)
END
    run tokenize --json --no-bos ""
    ok "empty JSON" "$PYTHON" -c 'import json, sys; assert json.load(sys.stdin)["tokens"] == []' <"$T/out"

    # U02: a GGUF that does not say how it cuts texts
    "$PYTHON" -c 'import sys
sys.stdout.buffer.write(open(sys.argv[1], "rb").read().replace(b"tokenizer.ggml.pre", b"tokenizer.ggml.old"))' "$MODEL" >"$T/old.gguf"
    run tokenize --ids "Once upon a time"
    cp "$T/out" "$T/want"
    run tokenize -m "$T/old.gguf" --ids "Once upon a time"
    out_is "$T/want"
    err "tinygpt: warning: $T/old.gguf does not say how it cuts texts (tokenizer.ggml.pre): as GPT-2 does, perhaps wrongly"
fi

finish
