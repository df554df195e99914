#!/bin/sh
# R38 of the fault catalogue, and more of closed and broken descriptors; tests/runtime/streams.py has R01 and R02.
. "$(dirname "$0")/../support/cli.sh"
need_model

# a reader that goes away in the middle has what came until then
{
    "$TINYGPT" generate --temp 0 -n 1000 --ignore-eos "Once upon a time" </dev/null 2>"$T/err"
    echo $? >"$T/rc"
} | head -c 10 >"$T/out"
echo 'generate | head -c 10' >"$T/what"
status 141
err ''
ok "ten bytes" [ "$(wc -c <"$T/out")" -eq 10 ]

# R38: stdout closed: an error, and no file is written into
for args in "generate -n 5 --temp 0 x" "tokenize x" "inspect" "--version"; do
    echo "tinygpt $args >&-" >"$T/what"
    # shellcheck disable=SC2086
    "$TINYGPT" $args </dev/null >&- 2>"$T/err"
    echo $? >"$T/rc"
    status 9
    one_error
done
"$TINYGPT" logits --ids 1 --format npy -o "$T/x.npy" </dev/null >&- 2>"$T/err"
echo $? >"$T/rc"
echo 'tinygpt logits -o FILE >&-' >"$T/what"
status 0
run logits --ids 1 --format npy
out_is "$T/x.npy"

# stdin closed: fine when it is not needed, an error when it is
"$TINYGPT" generate -n 0 --echo x <&- >"$T/out" 2>"$T/err"
echo $? >"$T/rc"
echo 'tinygpt generate -n 0 --echo x <&-' >"$T/what"
status 0
out 'x'
"$TINYGPT" generate -n 0 --echo <&- >"$T/out" 2>"$T/err"
echo $? >"$T/rc"
status 9
one_error

# stderr closed: the text goes where it should
"$TINYGPT" generate -n 0 --echo x </dev/null >"$T/out" 2>&-
echo $? >"$T/rc"
echo 'tinygpt generate -n 0 --echo x 2>&-' >"$T/what"
status 0
out 'x'
"$TINYGPT" generate -m "$T/missing" x </dev/null >"$T/out" 2>&-
echo $? >"$T/rc"
status 9
out ''
"$TINYGPT" generate -n 0 --echo x <&- >&- 2>&-
echo $? >"$T/rc"
status 9

finish
