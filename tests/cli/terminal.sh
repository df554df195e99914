#!/bin/sh
# What a terminal gets, against what a pipe gets.
. "$(dirname "$0")/../support/cli.sh"
need_model
need_python
"$PYTHON" -c 'import pty; pty.openpty()' 2>/dev/null || {
    echo "no pseudo-terminals here"
    exit 77
}

# run_tty [-i] ARGS...: stdout on a terminal; with -i stdin as well
run_tty() {
    stdin=
    [ "$1" = -i ] && stdin=-i && shift
    echo "on a terminal: tinygpt $*" >"$T/what"
    "$PYTHON" tests/support/on_terminal.py $stdin "$TINYGPT" "$@" >"$T/out" 2>"$T/err" </dev/null
    echo $? >"$T/rc"
}

# whole lines, so that the shell's prompt stands where it should
run_tty generate -n 0 --echo 'a text'
status 0
out 'a text
'
run_tty generate -n 0 --echo 'a line
'
out 'a line
'
run_tty generate -n 0 'a text'
out ''

# R16: control bytes are shown, not obeyed; newline and tab pass
printf 'a\033[2Jb\r\tc\n\007\302\2331m\177' >"$T/text"
run_tty generate -n 0 --echo -f "$T/text"
status 0
out 'a\x1B[2Jb\x0D	c
\x07\xC2\x9B1m\x7F
'
run generate -n 0 --echo -f "$T/text"
out_is "$T/text"

# R14, R15: bad UTF-8 and incomplete tails are U+FFFD there, and untouched in a pipe
printf 'caf\303\251 \377 \345\255\345\255\227 \360\237' >"$T/text"
run_tty generate -n 0 --echo -f "$T/text"
out 'café � �字 �
'
run generate -n 0 --echo -f "$T/text"
out_is "$T/text"

# a character that several tokens make comes whole: bytes decoded one by one
ids=$(printf '\345\255\227\360\237\231\202' | "$TINYGPT" tokenize --ids --no-bos -f -)
run_tty tokenize --decode "$ids"
out '字🙂
'

# R15, R16: a model that writes bytes that are no text, or a terminal's commands
for byte in '\377' '\033' '\345'; do
    id=$(printf "$byte" | "$TINYGPT" tokenize --ids --no-bos)
    set -- generate -n 3 --temp 0 --logit-bias "$id+1000" --ignore-eos x
    run "$@"
    status 0
    printf "$byte$byte$byte" >"$T/three"
    out_is "$T/three"
    case $byte in *377) shown='���' ;; *345) shown='���' ;; *) shown='\x1B\x1B\x1B' ;; esac
    run_tty "$@"
    out "$shown
"
    run "$@" --json
    ok "R15: bytes beside the text" "$PYTHON" -c 'import json, sys
choice, want = json.load(open(sys.argv[1]))["choices"][0], open(sys.argv[2], "rb").read()
assert choice["text"] == want.decode("utf-8", "replace"), choice
assert bytes(choice["bytes"]) == want if choice["text"].encode() != want else "bytes" not in choice, choice' "$T/out" "$T/three"
done

# generated text is the same on both
run generate -n 30 --temp 0 "Once upon a time"
{ cat "$T/out" && echo; } >"$T/plain"
run_tty generate -n 30 --temp 0 "Once upon a time"
out_is "$T/plain"

# nothing to read from, and nothing that a terminal can show
run_tty -i generate
status 2
one_error
err_has 'no text: give it as an argument'
run_tty -i tokenize
status 2
run_tty logits --ids 1 --format npy
status 2
err 'tinygpt: error: npy is no text for a terminal: use -o FILE or a pipe'
run_tty -i generate -n 0 --echo 'not joined'
status 0
out 'not joined
'

# colours: for a terminal that knows them, unless someone would not have them
cat >"$T/colors.py" <<'PYTHON'
import os, sys
sys.path.insert(0, "tests/support")
import screen
program = sys.argv[1]
for words, more, styles in (([], {}, True), ([], {"NO_COLOR": "1"}, False), ([], {"NO_COLOR": ""}, True),
                            ([], {"TERM": "dumb"}, False), (["--color", "never"], {}, False),
                            (["--color", "always"], {"NO_COLOR": "1", "TERM": "dumb"}, True)):
    env = {k: v for k, v in os.environ.items() if k != "NO_COLOR"} | {"TERM": "xterm"} | more
    status, out, shown = screen.run([program, "generate", *words, "-m", "/no/model", "x"], env=env)
    assert status == 9 and shown.text().startswith("tinygpt: error: /no/model: "), shown.text()
    assert (shown.styles > 0) == styles, (words, more)
PYTHON
ok "colours" "$PYTHON" "$T/colors.py" "$TINYGPT"
run generate --color always -m /no/model x
err "tinygpt: $(printf '\033[1;31merror:\033[0m') /no/model: cannot be opened: No such file or directory"
run generate -m /no/model x
err 'tinygpt: error: /no/model: cannot be opened: No such file or directory'

finish
