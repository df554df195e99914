#!/bin/sh
# What inspect tells, in both forms.
. "$(dirname "$0")/../support/cli.sh"
need_model
need_python

run inspect
status 0
err ''
for label in model format architecture parameters weights layers embedding heads feed-forward \
    vocabulary 'trained for' positions tokenizer 'begin of text' 'end of text' memory; do
    ok "$label is told" grep -q "^$label  *[^ ]" "$T/out"
done
cp "$T/out" "$T/plain"
run inspect "$MODEL"
status 0
run inspect -m "$MODEL"
status 0
run inspect --tensors
status 0
ok "tensors are listed" [ "$(wc -l <"$T/out")" -gt $(($(wc -l <"$T/plain") + 10)) ]

run inspect --json --tensors -c 512
cp "$T/out" "$T/512"
run inspect --json --tensors -c 1024 --kv-type f32
status 0
err ''
ok "JSON" "$PYTHON" - "$T/out" "$T/512" <<'END'
import json, math, sys
more, less = (json.load(open(name)) for name in sys.argv[1:])
assert more["supported"] is True
assert len(more["tensors"]) == more["n_tensors"]
assert sum(t["bytes"] for t in more["tensors"]) == more["weight_bytes"]
assert sum(math.prod(t["shape"]) for t in more["tensors"]) == more["n_params"]
assert more["memory"]["n_ctx"] == 1024 and less["memory"]["n_ctx"] == 512
assert more["memory"]["kv_bytes"] == 4 * less["memory"]["kv_bytes"] > 0
assert more["tokenizer"]["n_tokens"] == more["n_vocab"]
END

# weights laid anew: all that products read of this model, and none of one in floats
run inspect --interleave
status 0
ok "what is laid anew is told" grep -q '^interleaved  .* MiB of the weights, not shared$' "$T/out"
run inspect --interleave --json
ok "and is less than all" "$PYTHON" - "$T/out" <<'END'
import json, sys
m = json.load(open(sys.argv[1]))
assert 0.9 * m["weight_bytes"] < m["memory"]["interleaved_bytes"] <= m["weight_bytes"]
END
run inspect --interleave --json -m tests/golden/llama-plain
ok "none of floats" grep -q '"interleaved_bytes": 0' "$T/out"

# what cannot be run is told, and why
cp -r tests/golden/llama-plain "$T/other"
sed 's/"silu"/"mish"/' tests/golden/llama-plain/config.json >"$T/other/config.json"
run inspect "$T/other"
status 0
ok "the reason" grep -q '^not supported  .*hidden_act is not supported (found "mish"' "$T/out"
cp tests/golden/llama-plain/config.json "$T/other"
rm "$T/other"/tokenizer*
run inspect "$T/other"
status 0
ok "no tokenizer" grep -q '^tokenizer .*no tokenizer: neither tokenizer.json' "$T/out"

finish
