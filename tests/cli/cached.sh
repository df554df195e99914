#!/bin/sh
# list, rm and -m NAME on a cache laid out as the hub's own tools lay it out.
. "$(dirname "$0")/../support/cli.sh"
need_model

COMMIT=0123456789abcdef0123456789abcdef01234567

# add_model OWNER/NAME FILE: a snapshot with one file, a link to a blob
add_model() {
    folder=$HF_HOME/hub/models--$(echo "$1" | sed 's,/,--,')
    sum=$(sha256sum "$MODEL" | cut -d ' ' -f 1)
    mkdir -p "$folder/blobs" "$folder/refs" "$folder/snapshots/$COMMIT"
    cp "$MODEL" "$folder/blobs/$sum"
    touch -a -d '3 days ago' "$folder/blobs/$sum"
    printf %s $COMMIT >"$folder/refs/main"
    ln -s "../../blobs/$sum" "$folder/snapshots/$COMMIT/$2"
}

run list
status 0
out ''
err 'tinygpt: no models on this machine yet: tinygpt pull NAME fetches one (--catalog tells names)'
run list -q --json
status 0
out '[]
'
err ''

add_model owner/tales tales.gguf
add_model Qwen/Qwen3-0.6B-GGUF Qwen3-0.6B-Q8_0.gguf # not really
one=$HF_HOME/hub/models--owner--tales/snapshots/$COMMIT/tales.gguf
two=$HF_HOME/hub/models--Qwen--Qwen3-0.6B-GGUF/snapshots/$COMMIT/Qwen3-0.6B-Q8_0.gguf
for again in 1 2; do # looking is no use
    run list
    status 0
    err ''
    out "NAME                        SIZE  LICENSE           USED  PATH
qwen3-0.6b              6.90 MiB  apache-2.0  3 days ago  $two
owner/tales:tales.gguf  6.90 MiB  mit         3 days ago  $one
"
done
run list --json
status 0
out_has '"name": "owner/tales:tales.gguf"'
out_has '"alias": "qwen3-0.6b"'
out_has '"license": "mit"'
out_has '"size": 7233824'
out_has "\"path\": \"$one\""
out_has "\"commit\": \"$COMMIT\""

# what pull knows
run list --catalog
status 0
err ''
out_has 'openai-community/gpt2'
run list --catalog --json
out_has '"name": "gpt2"'

# each of its names
run tokenize --ids "Once upon"
cp "$T/out" "$T/ids"
for name in owner/tales owner/tales:tales.gguf qwen3-0.6b Qwen/Qwen3-0.6B-GGUF:Q8_0 hf:owner/tales; do
    run tokenize --ids "Once upon" -m "$name"
    status 0
    out_is "$T/ids"
    TINYGPT_MODEL=$name run tokenize --ids "Once upon"
    out_is "$T/ids"
done
run inspect owner/tales
status 0
out_has "$one"

# what is not there
while IFS='|' read -r name message; do
    run tokenize x -m "$name"
    status 9
    out ''
    err "tinygpt: error: $message"
done <<END
gpt2|gpt2 is not on this machine: tinygpt pull gpt2 fetches it (525 MiB, mit)
gtp2|no file and no model 'gtp2' (did you mean gpt2?)
nothing|no file and no model 'nothing' (tinygpt list tells those that are here, and with --catalog those that pull knows)
owner/tals|no file and no model 'owner/tals' (did you mean owner/tales?)
some/repository:Q8_0|no file and no model 'some/repository:Q8_0' (hf:some/repository:Q8_0 would be pulled)
some/file.gguf|some/file.gguf: cannot be opened: No such file or directory
https://example.org/a.gguf|https://example.org/a.gguf is not on this machine: fetch it first, with tinygpt pull
./a.gguf|./a.gguf: cannot be opened: No such file or directory
/no/such/model|/no/such/model: cannot be opened: No such file or directory
END

# a path wins
mkdir "$T/owner"
echo nonsense >"$T/owner/tales"
(
    program=$(realpath "$TINYGPT")
    cd "$T" || exit 1
    TINYGPT=$program run tokenize x -m owner/tales
)
status 3

# on a terminal: what fits it
if command -v "$PYTHON" >/dev/null && "$PYTHON" -c 'import pty; pty.openpty()' 2>/dev/null; then
    for more in '' --catalog; do
        # shellcheck disable=SC2086
        "$PYTHON" tests/support/on_terminal.py "$TINYGPT" list --color never $more >"$T/out" 2>"$T/err" </dev/null
        ok "no line is wider" [ "$(wc -L <"$T/out")" -lt 80 ]
    done
    out_has '...'
fi

# removing
run rm
status 2
err 'tinygpt: error: rm needs the name of a model (tinygpt list tells them)'
run rm owner/tels
status 9
err "tinygpt: error: no model 'owner/tels' on this machine (did you mean owner/tales?)"
run rm nothing/like-it
status 9
one_error
ok "all is there" [ -f "$one" ]
# D06
for name in rm 'inspect -m'; do
    run $name 'http://user:secret@127.0.0.1:1/x?signature'
    status 9
    one_error
    ok "no secret is shown" [ -z "$(grep -e secret -e signature "$T/err")" ]
done
# a name that would be obeyed by a terminal, as a suggestion
ln -s ../../blobs/"$(basename "$(readlink "$one")")" "$(dirname "$one")/$(printf 'b\302\2332J.gguf')"
run rm ownr/tales:bx2J.gguf
status 9
err_has 'b\xC2\x9B2J.gguf'
rm "$(dirname "$one")"/b*

[ -x "$TINYGPT_NO_CURL" ] && TINYGPT=$TINYGPT_NO_CURL # the other half of this by a program that cannot fetch
run rm owner/tales:tales.gguf qwen3-0.6b
status 0
out ''
err 'tinygpt: removed owner/tales:tales.gguf, 6.90 MiB freed
tinygpt: removed qwen3-0.6b, 6.90 MiB freed'
ok "nothing is left" [ -z "$(find "$HF_HOME" -name '*.gguf' -o -size +1000)" ]
run list
out ''
status 0

# WITH_CURL=0
[ -x "$TINYGPT_NO_CURL" ] || finish
add_model owner/tales tales.gguf
run list
out_has 'owner/tales:tales.gguf'
run tokenize --ids "Once upon" -m hf:owner/tales
status 0
out_is "$T/ids"
run pull --offline owner/tales
status 0
out "$one
"
run pull owner/other
status 2
err 'tinygpt: error: this tinygpt was built without libcurl (make WITH_CURL=0): it cannot fetch'
run tokenize x -m hf:owner/other
status 2
one_error
# and nothing speaks of what it cannot do
for name in smollm2 https://host/m.gguf owner/other no-such-model smolm2; do
    run tokenize x -m "$name"
    one_error
    ok "$name: no word of pull" [ -z "$(grep -e pull -e 'did you mean' "$T/err")" ]
done
HF_HOME=$T/nowhere run list
status 0
err 'tinygpt: no models on this machine yet'
finish
