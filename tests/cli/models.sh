#!/bin/sh
# Which model is used, and one clear line for each that cannot be.
. "$(dirname "$0")/../support/cli.sh"

# not there, or nothing that could be read
run generate -m "$T/missing.gguf" "Once"
status 9
out ''
one_error
err_has "$T/missing.gguf"

: >"$T/empty"
printf 'GGUF' >"$T/short"
printf 'hello, this is no model at all, whatever it is called' >"$T/text"
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n' >"$T/lfs"
printf '<!DOCTYPE html><html><body>404</body></html>' >"$T/html"
printf 'PK\003\004aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa' >"$T/zip"
printf '{"model_type": "gpt2", "n_layer": 12, "n_embd": 768}' >"$T/json"
mkdir "$T/folder"
for file in empty short text lfs html zip json folder; do
    for command in "generate x" "tokenize x" "logits --ids 1" "inspect"; do
        # shellcheck disable=SC2086
        run $command -m "$T/$file"
        status 3
        out ''
        one_error
        err_has "$T/$file"
    done
done
mkfifo "$T/fifo"
run generate -m "$T/fifo" x # must not block
status 3
one_error
run generate -m /dev/null x
status 3
one_error

# a type that is known, and not supported: Q3_K under the number of IQ3_S, which has blocks of the same size
"$PYTHON" - tests/golden/gguf/llama-blocks.q3_k.gguf "$T/iq3_s" <<'EOF'
import struct
import sys

data, name = bytearray(open(sys.argv[1], "rb").read()), b"blk.0.ffn_up.weight"
at = data.index(name) + len(name) + 4 + 2 * 8
assert struct.unpack_from("<I", data, at) == (11,)
struct.pack_into("<I", data, at, 21)
open(sys.argv[2], "wb").write(data)
EOF
run logits -m "$T/iq3_s" --ids 1,2
status 3
out ''
one_error
err_has 'blk.0.ffn_up.weight'
err_has 'IQ3_S'

need_model

# cut anywhere
size=$(wc -c <"$MODEL")
for n in 1 23 24 100 5000 $((size / 2)) $((size - 1)); do
    head -c "$n" "$MODEL" >"$T/cut"
    run generate -m "$T/cut" x
    status 3
    out ''
    one_error
done

# the choice: -m, TINYGPT_MODEL, the tree of the program, the installed share folder
TINYGPT_MODEL=$T/env run generate x
status 9
err_has "$T/env"
TINYGPT_MODEL=$T/env run generate -n 0 -m "$MODEL" x
status 0
TINYGPT_MODEL=$T/env run generate -m "$T/option" x
status 9
err_has "$T/option"
for words in "generate x -m" inspect; do # a variable that was not set, perhaps
    # shellcheck disable=SC2086
    run $words ""
    status 2
    err 'tinygpt: error: the name of the model is empty'
done
TINYGPT_MODEL='' run generate -n 0 x
status 0

mkdir -p "$T/alone/bin" "$T/tree/build/release" "$T/tree/models" "$T/prefix/bin" "$T/prefix/share/tinygpt"
for folder in alone/bin tree/build/release tree prefix/bin; do
    cp "$TINYGPT" "$T/$folder/tinygpt"
done
program=$TINYGPT
TINYGPT=$T/alone/bin/tinygpt
run generate -n 0 x
status 9
one_error
err_has 'no model: give one with -m or in TINYGPT_MODEL'
cp "$MODEL" "$T/tree/models"
cp "$MODEL" "$T/prefix/share/tinygpt"
for folder in tree/build/release tree prefix/bin; do
    TINYGPT=$T/$folder/tinygpt
    run generate -n 0 x
    status 0
    err ''
done
TINYGPT=$program

# names with blanks and letters beyond ASCII
cp "$MODEL" "$T/ein schönes Modell.gguf"
run generate -n 0 -m "$T/ein schönes Modell.gguf" x
status 0

# R21: weights that are no numbers: found while running by every command, never sampled from
if command -v "$PYTHON" >/dev/null 2>&1; then
    "$PYTHON" tests/support/spoil.py "$MODEL" "$T/nan.gguf"
    "$PYTHON" tests/support/spoil.py "$MODEL" "$T/layer.gguf" blk.3.attn_norm.weight 5 inf
    echo '["a tale"]' >"$T/text"
    for args in "generate -n 3 -q x" "generate -n 3 --json -q x" "generate -n 3 -q --n-best 2 x" "logits -p x" "logits -p x --format npy" \
        "chat -q --chat-template chatml x" "perplexity -f $T/text" "perplexity --json -f $T/text" "score -p x -f $T/text" \
        "bench -q -p 4 -n 0 -r 1 -t 1"; do
        # shellcheck disable=SC2086
        run $args -m "$T/nan.gguf"
        status 8
        one_error
        err_has 'non-finite numbers at position '
        err_has ', first behind layer 6 of 7'
        # shellcheck disable=SC2086
        run $args -m "$T/layer.gguf"
        status 8
        err_has 'non-finite numbers at position 0, first behind layer 3 of 7'
    done
    run generate -m "$T/nan.gguf" -n 3 x
    out ''
    printf 'x\ny\n' | run_in generate -m "$T/nan.gguf" -n 3 -q --each-line
    status 8
    out ''
    run generate -m "$T/layer.gguf" -n 3 -q --session "$T/session" x
    status 8
    ok "R21: no session" [ ! -e "$T/session" ]
    run logits -m "$T/nan.gguf" --ids 1 --format npy -o "$T/nan.npy"
    status 8
    ok "R21: no file" [ ! -e "$T/nan.npy" ]
    run logits -m "$T/nan.gguf" --ids 1,2,3 --all -b 1 --no-bos
    err_has 'at position 0'

    # what would hide it: a router that passes the expert over, a cache that holds no infinity
    "$PYTHON" tests/support/spoil.py tests/golden/gguf/mixtral.f16.gguf "$T/router.gguf" blk.0.ffn_gate_inp.weight 32 nan
    run logits -m "$T/router.gguf" --ids 1,2
    status 8
    "$PYTHON" tests/support/spoil.py tests/golden/gguf/qwen2.f16.gguf "$T/inf.gguf" blk.0.attn_v.bias 3 inf
    for kv in f32 f16 bf16 q8_0 q4; do
        run logits -m "$T/inf.gguf" --ids 1,2 --kv-type $kv
        status 8
    done
    "$PYTHON" tests/support/spoil.py tests/golden/gguf/qwen2.f16.gguf "$T/large.gguf" blk.0.attn_v.bias 3 1e5
    # R22: beyond f16: clamped, counted, told once; and what holds it
    for args in "logits --ids 1,2" "generate -n 8 --temp 0 --no-bos a" "perplexity -f $T/text" "score -p a -f $T/text"; do
        # shellcheck disable=SC2086
        run $args -m "$T/large.gguf"
        status 0
        ok "R22: once" [ "$(grep -c 'clamped (--kv-type f32 holds them)' "$T/err")" -eq 1 ]
        # shellcheck disable=SC2086
        run $args -m "$T/large.gguf" --kv-type f32
        status 0
        ok "R22: f32 holds it" sh -c "! grep -q clamped '$T/err'"
    done
    run logits -m "$T/large.gguf" --ids 1,2,3 -q
    status 0
    err ''
    run logits -m "$T/large.gguf" --ids 1,2,3 --all -b 1 -t 1
    cp "$T/err" "$T/told"
    run logits -m "$T/large.gguf" --ids 1,2,3 --all -t 2
    ok "R22: the count does not depend on batch and threads" cmp -s "$T/err" "$T/told"

    # R23: weights that are subnormal, or make what is: the same bits for any number of threads
    "$PYTHON" tests/support/spoil.py "$MODEL" "$T/tiny.gguf" blk.0.attn_norm.weight 0-255 1e-39
    "$PYTHON" tests/support/spoil.py "$MODEL" "$T/small.gguf" blk.2.ffn_norm.weight 0-255 1e-37
    for model in tiny small; do
        run logits -m "$T/$model.gguf" --ids 5,6,7,8 --all --format npy -t 1
        status 0
        cp "$T/out" "$T/want"
        for t in 2 3 8; do
            run logits -m "$T/$model.gguf" --ids 5,6,7,8 --all --format npy -t $t
            out_is "$T/want"
        done
    done
fi

finish
