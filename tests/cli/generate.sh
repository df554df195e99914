#!/bin/sh
# What generate writes, counts, refuses and repeats.
. "$(dirname "$0")/../support/cli.sh"
need_model

# a story, with no option at all
run generate "Once upon a time"
status 0
ok "a story has some length" [ "$(wc -c <"$T/out")" -gt 100 ]
ok "the seed is told" grep -qx 'tinygpt: seed [0-9]*' "$T/err"

# R20: the seed that was told repeats the text; so does a given one; another gives another text
run generate -n 40 "Once upon a time"
seed=$(sed -n 's/^tinygpt: seed //p' "$T/err")
cp "$T/out" "$T/first"
run generate -n 40 --seed "$seed" "Once upon a time"
status 0
err ''
out_is "$T/first"
run generate -n 40 --seed 1 "Once upon a time"
cp "$T/out" "$T/first"
run generate -n 40 --seed 2 "Once upon a time"
ok "another seed gives another text" [ "$(cmp "$T/first" "$T/out" | wc -l)" -eq 1 ]
run generate -n 5 --seed 18446744073709551615 "Once upon a time"
status 0

# the same text for any number of threads and any batch, and without mapping the file
for more in "-t 1" "-t 2" "-t 3 -b 1" "-b 2" "-b 7 -c 512" "--no-mmap" "-c 1024"; do
    # shellcheck disable=SC2086
    run generate -q -n 40 --seed 1 $more "Once upon a time"
    status 0
    out_is "$T/first"
done
OMP_NUM_THREADS=2 run generate -n 40 --seed 1 "Once upon a time"
status 0
out_is "$T/first"
OMP_NUM_THREADS=1,2 run generate -v -n 0 "Once upon a time"
err_has 'tinygpt: 1 thread,'
run generate -t 512 -n 1 --temp 0 "Once upon a time"
status 0
err_has 'tinygpt: warning: 512 threads on'

# R19: argmax: no seed, always the same
run generate -n 20 --temp 0 "Once upon a time"
status 0
err ''
cp "$T/out" "$T/best"
run generate -n 20 --top-k 1 "Once upon a time"
err ''
out_is "$T/best"
run generate -n 20 --top-p 0 --seed 3 "Once upon a time"
out_is "$T/best"
run generate -n 20 --min-p 1 --seed 3 "Once upon a time"
out_is "$T/best"
for more in "--top-k 0" "--top-k 4096" "--top-k 2147483647" "--top-p 1 --min-p 0 --top-k 0" "--typical 0" "--typical 1e-30 --top-p 1e-30"; do
    # shellcheck disable=SC2086
    run generate -n 20 --seed 3 -q $more "Once upon a time"
    status 0
    ok "R19: $more gives text" [ -s "$T/out" ]
done

# a shorter run is the beginning of a longer one; --echo puts the prompt before it
run generate -n 7 --temp 0 "Once upon a time"
head -c "$(wc -c <"$T/out")" "$T/best" >"$T/want"
cp "$T/want" "$T/short"
out_is "$T/short"
run generate -n 20 --temp 0 --echo "Once upon a time"
{ printf 'Once upon a time' && cat "$T/best"; } >"$T/echoed"
out_is "$T/echoed"
run generate -n 0 "Once upon a time"
status 0
out ''

# counts
run generate -n 12 --temp 0 --ignore-eos --stats "Once upon a time"
status 0
out_has ''
ok "stats: prompt" grep -qE '^prompt tokens:    [0-9]+ in [0-9.]+ s, [0-9.]+ tokens/s$' "$T/err"
ok "stats: generated" grep -qx 'generated tokens: 12' "$T/err"
ok "stats: decoded" grep -qE '^decoded tokens:   11 in [0-9.]+ s, [0-9.]+ tokens/s$' "$T/err"
ok "stats: first token" grep -qE '^first token:      [0-9.]+ s$' "$T/err"
ok "stats: memory" grep -qE '^peak memory:      [0-9.]+ MiB$' "$T/err"
ok "stats: five lines" [ "$(wc -l <"$T/err")" -eq 5 ]
n=$("$TINYGPT" tokenize --count "Once upon a time" </dev/null)
ok "stats: count of the prompt" grep -q "^prompt tokens:    $n in" "$T/err"
run generate -n 1 --temp 0 --stats "Once upon a time"
status 0
ok "one token has no rate" grep -q '^decoded tokens:   0 in .* s, 0.0 tokens/s$' "$T/err"

# U30: tokens/s times seconds are the tokens, for any number of threads
for t in 1 2; do
    run generate -n 60 --temp 0 --ignore-eos --stats -t $t "Once upon a time"
    ok "U30: -t $t" awk '/^(prompt|decoded) tokens/ { d = $3 - $5 * $7; if (d * d > ($7 * 0.0006 + 0.1) ^ 2) exit 1 }' "$T/err"
done

# quiet and verbose
run generate -q -n 3 "Once upon a time"
status 0
err ''
run generate -v -n 3 --temp 0 "Once upon a time"
status 0
err_has 'tinygpt: model '
err_has 'context 256'

# R12, R13: the context: full, too short, sized by need
run generate -c 16 -n 100 --temp 0 --ignore-eos "Once upon a time"
status 0
err 'tinygpt: context full: 16 positions (-c sets it)'
run generate -q -c 16 -n 100 --temp 0 --ignore-eos "Once upon a time"
status 0
err ''
run generate -c 2 "Once upon a time there was"
status 2
out ''
one_error
err_has 'tokens and the context 2 positions (-c sets it)'
# R13: a window slides over it on request, and what it keeps is no more than there is
run generate -c 96 -n 80 --temp 0 --ignore-eos --window 16 --keep 4 "Once upon a time"
status 0
err ''
run generate -c 96 -n 80 --temp 0 --window 16 --keep 97 "Once upon a time"
status 2
one_error
err_has '--keep'
run generate -n 80 --temp 0 --window 16 --keep 96 -c 96 "Once upon a time"
status 0
for keep in -1 1048577; do
    run generate --keep $keep --window 16 x
    status 2
    one_error
done
run generate --keep 4 x
status 2
one_error
# U21: prompt and text together fill the context
run generate -c $((n + 4)) -n 100 --temp 0 --ignore-eos --stats "Once upon a time"
status 0
err_has 'tinygpt: context full'
err_has 'generated tokens: 4'
run generate -c "$n" -n 5 --temp 0 --ignore-eos --stats "Once upon a time"
status 0
out ''
err_has 'tinygpt: context full'
err_has 'generated tokens: 0'
run generate -v -n 300 --temp 0 "Once upon a time"
err_has 'context 512'

# a prompt beyond the trained length is refused, unless -c says to go on
trained=$("$TINYGPT" inspect </dev/null | sed -n 's/^trained for *//p')
i=0
: >"$T/long"
while [ $i -le "$trained" ]; do
    printf 'Once upon a time ' >>"$T/long"
    i=$((i + 1))
done
run generate -n 1 -f "$T/long"
status 2
one_error
err_has "and the context $trained positions"
head -c $((trained * 5)) "$T/long" >"$T/longer"
run generate -n 1 --temp 0 -c $((trained * 2)) -f "$T/longer"
status 0
err "tinygpt: warning: going past the $trained positions that the model was trained for: expect worse text"

# an empty prompt starts from the model's own beginning
run generate -n 8 --temp 0 ""
status 0
ok "an empty prompt gives text" [ -s "$T/out" ]
err ''
run generate -n 8 --temp 0
status 0
run generate -n 8 --temp 0 --no-bos ""
status 0

# cache types and precision
for more in "--kv-type f32" "--kv-type-k f32" "--kv-type-v f32" "--precise" "--blas off"; do
    # shellcheck disable=SC2086
    run generate -q -n 4 --temp 0 $more "Once upon a time"
    status 0
    ok "$more gives text" [ -s "$T/out" ]
done

# what was asked for and has no use is told
run generate -n 4 --temp 0 --precise --interleave "Once upon a time"
status 0
err "tinygpt: warning: --interleave is left out: --precise reads the rows of a matrix one by one"
TINYGPT_ISA=avx3 run generate -n 4 --temp 0 "Once upon a time"
status 0
err "tinygpt: warning: TINYGPT_ISA is avx3, none of scalar, avx2 and avx512: the best level is used"
TINYGPT_ISA=scalar run generate -n 4 --temp 0 "Once upon a time"
status 0
err ''

finish
