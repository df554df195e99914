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

# weights that are no numbers: found while running, never sampled from
if command -v "$PYTHON" >/dev/null 2>&1; then
    "$PYTHON" tests/support/spoil.py "$MODEL" "$T/nan.gguf"
    run generate -m "$T/nan.gguf" -n 3 x
    status 8
    out ''
    ok "the position is told" grep -q '^tinygpt: error: .*position' "$T/err"
    run logits -m "$T/nan.gguf" --ids 1 --format npy -o "$T/nan.npy"
    status 8
    ok "no file" [ ! -e "$T/nan.npy" ]

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
    run logits -m "$T/large.gguf" --ids 1,2
    status 0
    err_has 'clamped'
fi

finish
