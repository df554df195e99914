#!/bin/sh
# The README's examples on the model that comes along, benchmarks too: each line runs as it stands.
. "$(dirname "$0")/../support/cli.sh"
need_model
need_python

sed -n -e '/^These run as they stand/,/^These need a model/s/^    //p' \
    -e '/^## Benchmarks/,/^The columns/s/^    //p' README.md | grep . >"$T/examples"
ok "there are examples" [ "$(wc -l <"$T/examples")" -gt 5 ]
ln -s "$(cd "$(dirname "$TINYGPT")" && pwd)/${TINYGPT##*/}" "$T/tinygpt"
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
