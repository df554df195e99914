#!/bin/sh
# A model written anew: what comes out, and that nothing is left where nothing should be.
. "$(dirname "$0")/../support/cli.sh"
need_model

nothing_left() {
    ok "no file is left" [ ! -e "$1" ]
    ok "nor a part of one" [ -z "$(find "$T" -name '*.tmp')" ]
}

# usage
while IFS='|' read -r args message; do
    # shellcheck disable=SC2086
    run quantize $args
    status 2
    out ''
    err "tinygpt: error: $message"
done <<'MESSAGES'
|quantize needs IN, a model, and OUT, the file to write
a --type f16|quantize needs IN, a model, and OUT, the file to write
a b|no type: give one with --type (--type help lists them)
a b c --type f16|quantize takes IN OUT, not 'c' too
a b -m c|unknown option -m (see tinygpt quantize --help)
a b --type q9|unknown type 'q9' (allowed: F32, F16, BF16, Q8_0, Q6_K, Q5_K_M, Q5_K_S, Q5_1, Q5_0, Q4_K_M, Q4_K_S, IQ4_NL, Q4_1, Q4_0, Q3_K_L, Q3_K_M, Q3_K_S, Q2_K)
MESSAGES
run quantize --type help
status 0
err ''
out_has 'Q4_K_M'

# F32 and back: the same bytes, but for the two keys on types, which stand last
run quantize -q "$MODEL" "$T/f32.gguf" --type f32
status 0
out ''
err ''
run quantize "$T/f32.gguf" "$T/again.gguf" --type F32 -t 3
status 0
err_has "$T/again.gguf: "
err_has '32.00 bits each; 0 of '
ok "the same file" cmp -s "$T/f32.gguf" "$T/again.gguf"
run logits --ids 1,2,3 --format npy --precise
cp "$T/out" "$T/logits.npy"
run logits --ids 1,2,3 --format npy --precise --blas off -m "$T/f32.gguf"
status 0

# the same bits for any number of threads, and at every type a model that runs
for type in F16 BF16 Q8_0 Q5_K_M Q5_1 Q4_K_M IQ4_NL Q3_K_M; do
    run quantize -q -t 1 "$T/f32.gguf" "$T/one.gguf" --type $type
    status 0
    run quantize -q -t 3 "$T/f32.gguf" "$T/three.gguf" --type $type
    status 0
    ok "threads do not matter to $type" cmp -s "$T/one.gguf" "$T/three.gguf"
    run generate -q -n 4 --temp 0 -m "$T/one.gguf" "Once upon a time"
    status 0
done

# what is quantised already
run quantize "$T/one.gguf" "$T/no.gguf" --type q4_0
status 3
one_error
err_has 'is quantised already (found '
nothing_left "$T/no.gguf"
run quantize -q "$T/one.gguf" "$T/yes.gguf" --type q4_0 --requantize
status 0
run quantize -q "$T/one.gguf" "$T/yes.gguf" --type f32 # which loses nothing
status 0

# a model in parts becomes one file
need_python
"$PYTHON" - "$T" <<'PYTHON'
import struct, sys
s = lambda t: struct.pack("<Q", len(t)) + t
for no in range(2):
    pairs = [s(b"split.count") + struct.pack("<IH", 2, 2), s(b"split.no") + struct.pack("<IH", 2, no),
             s(b"split.tensors.count") + struct.pack("<Ii", 5, 2)]
    pairs = [s(b"general.architecture") + struct.pack("<I", 8) + s(b"none")] * (no == 0) + pairs
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, len(pairs)) + b"".join(pairs)
    head += s(b"blk.%d.ffn_up.weight" % no) + struct.pack("<IQQIQ", 2, 32, 4, 0, 0)
    with open(f"{sys.argv[1]}/part-{no + 1:05}-of-00002.gguf", "wb") as f:
        f.write(head + bytes(-len(head) % 32) + struct.pack("<128f", *range(128)))
PYTHON
run quantize "$T/part-00001-of-00002.gguf" "$T/joined.gguf" --type q8_0
status 0
err_has '2 of 2 tensors quantised'
run inspect --tensors -m "$T/joined.gguf"
status 0
out_has 'blk.1.ffn_up.weight'

# SentencePiece: scores take the place of merges, and texts become the same tokens
mkdir "$T/spm"
cp tests/token/data/small-c.json "$T/spm/tokenizer.json"
"$PYTHON" - "$T/spm" <<'PYTHON'
import json, struct, sys
tokenizer = json.load(open(f"{sys.argv[1]}/tokenizer.json", encoding="utf-8"))
n = 1 + max([*tokenizer["model"]["vocab"].values(), *(t["id"] for t in tokenizer["added_tokens"])])
json.dump(dict(model_type="llama", vocab_size=n, hidden_size=4, intermediate_size=4, num_hidden_layers=1,
               num_attention_heads=1, max_position_embeddings=64, rms_norm_eps=1e-5),
          open(f"{sys.argv[1]}/config.json", "w"))
layer = "model.layers.0."
shapes = {"model.embed_tokens": (n, 4), "model.norm": (4,), layer + "input_layernorm": (4,),
          layer + "post_attention_layernorm": (4,)}
shapes |= {layer + name: (4, 4) for name in ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
                                             "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj")}
head, at = {}, 0
for name, shape in shapes.items():
    size = 4 * shape[0] * (shape[1] if len(shape) > 1 else 1)
    head[name + ".weight"] = dict(dtype="F32", shape=shape, data_offsets=[at, at + size])
    at += size
text = json.dumps(head).encode()
with open(f"{sys.argv[1]}/model.safetensors", "wb") as f:
    f.write(struct.pack("<Q", len(text)) + text + struct.pack("<f", 0.5) * (at // 4))
PYTHON
run quantize "$T/spm" "$T/spm.gguf" --type f16
status 0
for text in "The hen and the fox" "  spaces   here " "ein schöner Tag, 12 €" "" "<s>x</s>" "$(printf 'a\nb\t')"; do
    run tokenize --ids --special -m "$T/spm" "$text"
    status 0
    cp "$T/out" "$T/ids"
    run tokenize --ids --special -m "$T/spm.gguf" "$text"
    out_is "$T/ids"
done

# bad input
printf 'no model' >"$T/bad"
head -c 100000 "$MODEL" >"$T/cut"
for in in "$T/bad" "$T/cut"; do
    run quantize "$in" "$T/no.gguf" --type f16
    status 3
    one_error
    nothing_left "$T/no.gguf"
done
run quantize "$T/missing" "$T/no.gguf" --type f16
status 9
one_error
nothing_left "$T/no.gguf"

# what may not be written, and what stays as it is
cp "$T/f32.gguf" "$T/in.gguf"
ln -s in.gguf "$T/link.gguf"
ln "$T/in.gguf" "$T/hard.gguf"
for to in in link hard; do
    run quantize "$T/in.gguf" "$T/$to.gguf" --type q8_0
    status 2
    one_error
    err_has 'is read from, and cannot be written to'
done
ok "the input is as it was" cmp -s "$T/f32.gguf" "$T/in.gguf"
printf 'a text that someone wrote' >"$T/text"
cp "$T/text" "$T/text.was"
run quantize "$T/in.gguf" "$T/text" --type q8_0
status 2
one_error
err_has 'exists and is no GGUF file: it is not replaced'
ok "the text is as it was" cmp -s "$T/text" "$T/text.was"
mkdir "$T/folder"
mkfifo "$T/fifo"
for to in folder fifo missing/file; do
    run quantize "$T/in.gguf" "$T/$to" --type q8_0
    status 9
    one_error
    err_has "$T/$to"
done
run quantize -q "$T/in.gguf" "$T/link2.gguf" --type q8_0
ln -s link2.gguf "$T/link3.gguf"
run quantize -q "$T/in.gguf" "$T/link3.gguf" --type q4_0 # replaces what the link leads to
status 0
ok "a link stays" [ -h "$T/link3.gguf" ]
run inspect --tensors -m "$T/link2.gguf"
out_has 'Q4_0 '
if [ "$(id -u)" != 0 ]; then
    mkdir -m 555 "$T/locked"
    run quantize "$T/in.gguf" "$T/locked/no.gguf" --type q8_0
    status 9
    one_error
    chmod 755 "$T/locked"
fi

# no room: a limit on the size of files stands for a full disk
cp "$T/link2.gguf" "$T/old.gguf"
(
    ulimit -f 1000 # blocks of 512 or 1024 bytes
    run quantize "$T/in.gguf" "$T/old.gguf" --type f32
)
status 7
one_error
err_has 'no room for'
ok "the old file is as it was" cmp -s "$T/link2.gguf" "$T/old.gguf"
ok "nothing else is there" [ -z "$(find "$T" -name '*.tmp')" ]

# interrupted: a sparse file of 2^30 numbers takes seconds
need_python
"$PYTHON" - "$T/huge.gguf" <<'PYTHON'
import struct, sys
s = lambda t: struct.pack("<Q", len(t)) + t
head = b"GGUF" + struct.pack("<IQQ", 3, 1, 1) + s(b"general.architecture") + struct.pack("<I", 8) + s(b"none")
head += s(b"blk.0.ffn_up.weight") + struct.pack("<IQQIQ", 2, 1 << 20, 1 << 10, 0, 0)
with open(sys.argv[1], "wb") as f:
    f.write(head + bytes(-len(head) % 32))
    f.truncate(f.tell() + (4 << 30))
PYTHON
for signal in INT TERM HUP; do
    cp "$T/link2.gguf" "$T/old.gguf"
    "$PYTHON" - "$TINYGPT" "$T" $signal >"$T/out" 2>"$T/err" <<'PYTHON'
import glob, os, signal, stat, subprocess, sys, time
program, folder, name = sys.argv[1:]
p = subprocess.Popen([program, "quantize", f"{folder}/huge.gguf", f"{folder}/old.gguf", "--type", "q4_k_m", "-t", "1"],
                     preexec_fn=lambda: [signal.signal(s, signal.SIG_DFL) for s in (signal.SIGINT, signal.SIGHUP)])


def writes():  # into a file without a name, or a temporary one
    for f in glob.glob(f"/proc/{p.pid}/fd/*"):
        try:
            found = os.stat(f)
        except OSError:
            continue
        if stat.S_ISREG(found.st_mode) and found.st_size > 0 and (found.st_nlink == 0 or os.readlink(f).endswith(".tmp")):
            return True
    return False


end = time.time() + 20
while time.time() < end and not writes():
    time.sleep(0.01)
time.sleep(0.2)
begun = time.time()
p.send_signal(getattr(signal, "SIG" + name))
status = p.wait(20)
assert time.time() - begun < 2, "slow to stop"
sys.exit(status)
PYTHON
    echo $? >"$T/rc"
    case $signal in INT) status 130 ;; TERM) status 143 ;; HUP) status 129 ;; esac
    err ''
    ok "the old file is as it was" cmp -s "$T/link2.gguf" "$T/old.gguf"
    ok "nothing else is there" [ -z "$(find "$T" -name '*.tmp')" ]
done

finish
