#!/bin/sh
# The README's examples on the model that comes along, benchmarks too: each line runs as it stands. What is pulled
# there comes from a hub on the loopback interface, and is that model under other names.
. "$(dirname "$0")/../support/cli.sh"
need_model
need_python
need_pull

sed -n -e '/^## First texts/,/^## Chat/s/^    //p' -e '/^## Many prompts/,/^## Exit status/s/^    \([^{]\)/\1/p' \
    -e '/^## Benchmarks/,/^The columns/s/^    //p' README.md | grep . >"$T/examples"
ok "there are examples" [ "$(wc -l <"$T/examples")" -gt 30 ]
ln -s "$(cd "$(dirname "$TINYGPT")" && pwd)/${TINYGPT##*/}" "$T/tinygpt"
ln -s "$PWD/models" "$PWD/tests" "$T"
mkdir -p "$T/build" "$T/hub/smollm2" "$T/hub/qwen3"
cp "$MODEL" "$T/hub/smollm2/smollm2-360m-instruct-q8_0.gguf"
cp "$MODEL" "$T/hub/qwen3/Qwen3-0.6B-Q8_0.gguf"
"$PYTHON" tests/support/hub_server.py "$T" HuggingFaceTB/SmolLM2-360M-Instruct-GGUF="$T/hub/smollm2" \
    Qwen/Qwen3-0.6B-GGUF="$T/hub/qwen3" HuggingFaceTB/SmolLM2-135M-Instruct=tests/golden/llama-plain >"$T/endpoint" &
hub=$!
trap 'kill $hub; rm -rf "$T"' EXIT
while ! grep -q . "$T/endpoint"; do sleep 0.1; done
export "$(cat "$T/endpoint")"
cd "$T" || exit 1
while read -r line; do
    echo "$line" >what
    sh -c "$line" >out 2>err </dev/null
    echo $? >rc
    status 0
    ok "no error" test -z "$(grep error err)"
done <examples
ok "story.txt has text" [ -s story.txt ]
ok "logits.npy has 3 rows" [ "$(wc -c <logits.npy)" -gt $((3 * 4096 * 4)) ]
ok "bench.csv has a header and 8 rows" [ "$(wc -l <bench.csv)" -eq 9 ]

finish
