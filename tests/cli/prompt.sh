#!/bin/sh
# Where the prompt comes from and how its parts are joined: --echo -n 0 writes it as it was read.
. "$(dirname "$0")/../support/cli.sh"
need_model

printf 'from a file' >"$T/file"
printf 'line\n' >"$T/line"
: >"$T/empty"

# one source
run generate -n 0 --echo "an argument"
status 0
out 'an argument'
err ''
run generate -n 0 --echo -p "an option"
status 0
out 'an option'
run generate -n 0 --echo -f "$T/file"
status 0
out 'from a file'
run_in generate -n 0 --echo -f - <"$T/file"
status 0
out 'from a file'
printf 'a pipe' | run_in generate -n 0 --echo
status 0
out 'a pipe'
run_in generate -n 0 --echo <"$T/file"
status 0
out 'from a file'
run generate -n 0 --echo -- --temp
out '--temp'
mkfifo "$T/fifo"
printf 'a fifo' >"$T/fifo" &
run generate -n 0 --echo -f "$T/fifo"
status 0
out 'a fifo'

# a pipe beside another source comes first, as whole lines
printf 'piped' | run_in generate -n 0 --echo "argument"
out 'piped
argument'
printf 'piped\n' | run_in generate -n 0 --echo -p "option"
out 'piped
option'
printf 'piped\n\n' | run_in generate -n 0 --echo -f "$T/file"
out 'piped

from a file'
printf '' | run_in generate -n 0 --echo "argument"
out 'argument'
printf 'piped' | run_in generate -n 0 --echo ""
out 'piped
'
printf 'piped' | run_in generate -n 0 --echo --no-stdin "argument"
out 'argument'
# what is no pipe is left alone
run_in generate -n 0 --echo "argument" <"$T/file"
out 'argument'

# R06, R07, R08: nothing is changed or trimmed
for text in 'a\nb\n' 'a\r\nb\r\n' '\r' '\n\n' ' a ' '\0' 'a\0b\0' '\357\273\277bom' '\377\376\200' 'cut \345\255'; do
    # shellcheck disable=SC2059
    printf "$text" >"$T/text"
    run_in generate -n 0 --echo -f - <"$T/text"
    status 0
    out_is "$T/text"
    run generate -n 0 --echo -f "$T/text"
    status 0
    out_is "$T/text"
done

# R08: --chomp: one newline, LF or CRLF
while IFS='|' read -r text want; do
    # shellcheck disable=SC2059
    printf "$text" | run_in generate -n 0 --echo --chomp
    # shellcheck disable=SC2059
    printf "$want" >"$T/chomped"
    out_is "$T/chomped"
done <<'END'
a|a
a\n|a
a\r\n|a
a\n\n|a\n
a\r|a\r
\na|\na
END

# unreadable, or not there
run generate -f "$T/nothing"
status 9
out ''
err "tinygpt: error: $T/nothing: cannot open: No such file or directory"
run generate -f "$T"
status 9
err "tinygpt: error: $T: cannot read: Is a directory"

# after two seconds without a byte one line says what is being waited for
(sleep 3 && printf 'late') | run_in generate -n 0 --echo
status 0
out 'late'
err 'tinygpt: waiting for text from stdin (--no-stdin to go without)'
(sleep 3 && printf 'late') | run_in generate -q -n 0 --echo
err ''

# R06, R07: bytes of any kind are text like any other, and come back
for text in 'a\0b' '\0' '\377\376\200' '\r\n\0\r' '\355\240\200 \300\257' '\357\273\277\0'; do
    # shellcheck disable=SC2059
    printf "$text" >"$T/text"
    run_in tokenize --ids --no-bos <"$T/text"
    status 0
    err ''
    tr -d '\n' <"$T/out" >"$T/ids"
    run tokenize --decode "$(cat "$T/ids")"
    out_is "$T/text"
done

finish
