#!/bin/sh
# Rows of logits in their three formats.
. "$(dirname "$0")/../support/cli.sh"
need_model
need_python

run logits --ids 1,2,3 --all --format npy -o "$T/all.npy"
status 0
out ''
err ''
run logits --ids 1,2,3 --all --format npy
status 0
out_is "$T/all.npy"
run logits --ids "1 2 3" --format npy -o -
status 0
cp "$T/out" "$T/last.npy"
echo 1 2 3 | run_in logits --ids - --format npy
out_is "$T/last.npy"
run logits --ids 1,2,3 --all --format json
status 0
cp "$T/out" "$T/all.json"
run logits --ids 1,2,3 --all --top 4
status 0
cp "$T/out" "$T/all.txt"
run logits --ids 1,2,3 --all --format npy -b 1 -t 3
out_is "$T/all.npy"

ok "the formats agree" "$PYTHON" - "$T" "$("$TINYGPT" inspect --json </dev/null)" <<'END'
import ast, json, math, struct, sys

folder, told = sys.argv[1], json.loads(sys.argv[2])
n_vocab = told["n_vocab"]


def npy(name):
    data = open(f"{folder}/{name}", "rb").read()
    assert data[:8] == b"\x93NUMPY\x01\x00"
    (n,) = struct.unpack_from("<H", data, 8)
    assert (10 + n) % 64 == 0 and data[9 + n : 10 + n] == b"\n"
    head = ast.literal_eval(data[10 : 10 + n].decode("ascii"))
    assert head["descr"] == "<f4" and head["fortran_order"] is False
    rows, columns = head["shape"]
    assert columns == n_vocab
    assert len(data) == 10 + n + 4 * rows * columns
    values = struct.unpack(f"<{rows * columns}f", data[10 + n :])
    return [values[i * columns : (i + 1) * columns] for i in range(rows)]


rows = npy("all.npy")
assert len(rows) == 3
assert npy("last.npy") == rows[2:]

single = lambda x: struct.unpack("<f", struct.pack("<f", x))[0]
js = json.load(open(f"{folder}/all.json"))
assert js["n_vocab"] == n_vocab
assert [(r["position"], r["id"]) for r in js["rows"]] == [(0, 1), (1, 2), (2, 3)]
assert [tuple(map(single, r["logits"])) for r in js["rows"]] == rows

blocks = open(f"{folder}/all.txt").read().split("\n\n")
assert len(blocks) == 3
for i, (block, row) in enumerate(zip(blocks, rows)):
    lines = block.splitlines()
    assert lines[0].startswith(f"position {i}, after \"")
    best = sorted(range(n_vocab), key=lambda id: (-row[id], id))[:4]
    assert [int(line.split()[0]) for line in lines[1:]] == best
    assert all(abs(float(line.split()[1]) - row[id]) < 1e-6 for line, id in zip(lines[1:], best))
    lse = row[best[0]] + math.log(sum(math.exp(x - row[best[0]]) for x in row))
    assert all(abs(float(line.split()[2]) - (row[id] - lse)) < 4e-6 for line, id in zip(lines[1:], best))
END

# a text gives what its ids give
ids=$("$TINYGPT" tokenize --ids "Once upon a time" </dev/null)
run logits --ids "$ids" --format npy -o "$T/want.npy"
run logits -p "Once upon a time" --format npy
out_is "$T/want.npy"
printf 'Once upon a time' | run_in logits --format npy
out_is "$T/want.npy"
printf 'Once upon a time' >"$T/text"
run logits -f "$T/text" --format npy
out_is "$T/want.npy"

# wrong
for ids in x 1,x -1 99999999; do
    run logits --ids "$ids"
    status 2
    one_error
done
run logits --ids ""
status 2
err 'tinygpt: error: no tokens to evaluate'
run logits --ids "1 2 3" -c 2
status 2
err 'tinygpt: error: the prompt has 3 tokens and the context 2 positions (-c sets it)'

# -o: complete or not at all, and what is there stays until then
echo old >"$T/target"
ln -s target "$T/link"
run logits --ids 1 --format npy -o "$T/link"
status 0
ok "the link stays" [ -L "$T/link" ]
ok "the target is new" [ "$(wc -c <"$T/target")" -gt 1000 ]
echo old >"$T/target"
(
    ulimit -f 1
    run logits --ids 1 --format npy -o "$T/target"
)
status 7
one_error
ok "the old file stays" [ "$(cat "$T/target")" = old ]
run logits --ids 1 -o "$T/no/folder"
status 9
one_error
run logits --ids 1 -o "$T"
status 9
one_error
run logits --ids 99999999 -o "$T/never"
ok "no output without a result" [ ! -e "$T/never" ]
ok "nothing is left over" [ -z "$(find "$T" -name '*.tmp')" ]
mkfifo "$T/fifo"
cat "$T/fifo" >"$T/through" &
run logits --ids 1,2,3 --all --format npy -o "$T/fifo"
status 0
wait
ok "through a FIFO" cmp -s "$T/through" "$T/all.npy"
run logits --ids 1,2,3 --all --format npy -o /dev/stdout
status 0
out_is "$T/all.npy"
# Attention algorithms by name; all of them find the same token.
run logits --attention help
status 0
err ''
names=$(cut -d ' ' -f 1 "$T/out")
ok "auto is the first" [ "${names%%[!a-z0-9]*}" = auto ]
run logits --ids 1,2,3 --top 1
best=$(tail -n 1 "$T/out" | awk '{ print $1 }')
for name in $names; do
    run logits --ids 1,2,3 --top 1 --attention "$name" --kv-type bf16
    [ "$name" = bf16 ] && grep -q AVX512_BF16 "$T/err" && continue
    status 0
    ok "$name" [ "$(tail -n 1 "$T/out" | awk '{ print $1 }')" = "$best" ]
done
run logits --ids 1 --attention none
status 2
one_error
run logits --ids 1 --attention flash --window 2
status 2
one_error
run logits --ids 1 --attention bf16
status 2
one_error
run logits --ids 1,2,3 --all --format npy --window 3
out_is "$T/all.npy"

run logits --ids 1 -o /dev/full
status 9
one_error

finish
