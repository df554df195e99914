#!/bin/sh
# Closed, full and broken descriptors: R01, R02 and R38 of the fault catalogue.
. "$(dirname "$0")/../support/cli.sh"
need_model

# the reader goes away: quietly, at once, 141
{
    "$TINYGPT" generate --temp 0 -n 1000 --ignore-eos "Once upon a time" </dev/null 2>"$T/err"
    echo $? >"$T/rc"
} | head -c 10 >"$T/out"
echo 'generate | head -c 10' >"$T/what"
status 141
err ''
ok "ten bytes" [ "$(wc -c <"$T/out")" -eq 10 ]
{
    yes 'a text of some length' | head -n 20000 | "$TINYGPT" tokenize 2>"$T/err"
    echo $? >"$T/rc"
} | head -c 10 >"$T/out"
echo 'tokenize | head -c 10' >"$T/what"
status 141
err ''
{
    "$TINYGPT" logits --ids "1 2 3 4 5 6 7 8 9" --all --format npy </dev/null 2>"$T/err"
    echo $? >"$T/rc"
} | head -c 10 >"$T/out"
echo 'logits | head -c 10' >"$T/what"
status 141
err ''

# a full disk
if [ -c /dev/full ]; then
    for args in "generate -n 5 --temp 0 x" "tokenize x" "logits --ids 1" "inspect" "--help" "--version"; do
        echo "tinygpt $args >/dev/full" >"$T/what"
        # shellcheck disable=SC2086
        "$TINYGPT" $args </dev/null >/dev/full 2>"$T/err"
        echo $? >"$T/rc"
        status 9
        one_error
        err_has 'No space left on device'
    done
fi

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
