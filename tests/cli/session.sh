#!/bin/sh
# Sessions that are saved and gone on with: M61 to M68, R01, R03, R30, R34 to R37, R40 of the fault catalogue.
. "$(dirname "$0")/../support/cli.sh"
need_model
S=$T/folder/s
mkdir "$T/folder"
gen() {
    run generate -q -t 1 "$@"
}
only_session() {
    [ "$(ls -A "$T/folder")" = s ] || fail "$1: the folder should hold the session alone: $(ls -A "$T/folder")"
}

# Two runs are one: with nothing new, with draws, penalties and guesses, and with more text.
gen --seed 5 -n 24 "Once upon a time"
cp "$T/out" "$T/whole"
gen --seed 5 -n 9 --session "$S" "Once upon a time"
status 0
cp "$T/out" "$T/first"
gen -n 15 --lookup --session "$S"
status 0
cat "$T/first" "$T/out" >"$T/both"
ok "two runs are one" cmp -s "$T/both" "$T/whole"
only_session "saving"
for more in "--temp 0" "--seed 3 --repeat-penalty 1.3 --kv-type q8_0" "--seed 4 --kv-type q4 --temp 1.5 --window 10 --keep 2"; do
    rm "$S"
    # shellcheck disable=SC2086
    gen $more -n 20 "Once upon a time" && cp "$T/out" "$T/whole"
    # shellcheck disable=SC2086
    gen $more -n 8 --session "$S" "Once upon a time" && cp "$T/out" "$T/first"
    # shellcheck disable=SC2086
    gen ${more#--seed ?} -n 12 --session "$S" ""
    cat "$T/first" "$T/out" >"$T/both"
    ok "two runs are one with $more" cmp -s "$T/both" "$T/whole"
done

# A session changes no text: a prompt that begins like the saved one gives what it gives alone, sooner.
rm "$S"
gen -n 5 --temp 0 "Once upon a time there was a king who" && cp "$T/out" "$T/whole"
gen -n 0 --session "$S" "Once upon a time there was a king"
out ''
run generate -t 1 --temp 0 -n 5 --stats --session "$S" "Once upon a time there was a king who"
out_is "$T/whole"
n=$("$TINYGPT" tokenize --count "Once upon a time there was a king" </dev/null)
err_has "reused tokens:    $n, of the session"
run generate -t 1 --temp 0 -n 5 --stats --session "$S" "Another text"
ok "nothing in common but the beginning" grep -qE 'reused tokens: +1,|shared|peak' "$T/err"
# --append
rm "$S"
gen -n 3 --temp 0 "Once upon a time" && cp "$T/out" "$T/a"
gen -n 3 --temp 0 --session "$S" "Once upon a time"
gen -n 4 --temp 0 --session "$S" --append ", the fox"
status 0
cp "$T/out" "$T/appended"
gen -n 4 --temp 0 "Once upon a time$(cat "$T/a"), the fox"
out_is "$T/appended"
# a stop is no part of the text, nor is the end
rm "$S"
gen -n 9 --temp 0 --session "$S" --stop "$(head -c 12 "$T/whole" | tail -c 5)" "Once upon a time there was a king who"
cp "$T/out" "$T/a"
gen -n 3 --temp 0 --session "$S"
cat "$T/a" "$T/out" >"$T/both"
ok "goes on where a stop came" [ "$(head -c 6 "$T/both")" = "$(head -c 6 "$T/whole")" ]

# what does not go together
run generate --session "$S" --n-best 2 "a"
status 2
run generate --session "$S" --each-line
status 2
run generate --append "a"
status 2
one_error

# M61 to M68 from the command line: one line, status 4, and the file as it was
cp "$S" "$T/kept"
refused() {
    run generate -q -n 2 --session "$@" "Once"
    status 4
    out ''
    one_error
}
refused "$S" --kv-type f32
err_has 'type of the cached keys (found f16, allowed f32)'
refused "$S" -m tests/golden/gguf/llama.f32.gguf
err_has 'saved with another model'
head -c 1000 "$T/kept" >"$T/cut" && refused "$T/cut"
err_has 'it was cut short'
{ cat "$T/kept" && printf x; } >"$T/more" && refused "$T/more"
: >"$T/empty" && refused "$T/empty"
mkfifo "$T/fifo" && refused "$T/fifo"
err_has 'a FIFO'
refused "$T"
refused /dev/null
head -c 5000 /dev/zero >"$T/zeros" && refused "$T/zeros"
err_has 'not a saved session'
text="Once upon a time there was a king who had three daughters"
n=$("$TINYGPT" tokenize --count "$text")
gen -n 2 --temp 0 --ignore-eos --session "$T/longer" "$text"
too_long() { # M63, whatever the prompt is
    run "$@" --session "$T/longer" -n 2 -c "$n"
    status 4
    err "tinygpt: error: $T/longer: tokens (found $((n + 2)), allowed $n: the context, which -c sets)"
}
too_long generate Once
too_long generate --no-stdin
too_long generate "$text"
too_long generate --append Once
too_long generate --append "$text"
too_long chat --chat-template chatml Once
ok "a refused file stays" cmp -s "$S" "$T/kept"

# R40
(umask 0 && gen -n 1 --session "$T/open" "Once")
ok "R40: mode" [ "$(stat -c %a "$T/open")" = 600 ]

# R34: no room, or no folder: the text is there, the old file stays, nothing else is left
no_room() {
    for limit in 1 20 100; do
        (
            ulimit -f $limit
            "$TINYGPT" generate -q -t 1 -n 2 --temp 0 --session "$S" "Once upon" </dev/null 2>"$T/err" | cat >"$T/out"
        )
        ok "R34: text" [ -s "$T/out" ]
        err_has 'no room for'
        ok "R34: the old file" cmp -s "$S" "$T/kept"
        only_session "R34"
    done
    (ulimit -f 1 && "$TINYGPT" generate -q -n 2 --session "$S" "Once upon" </dev/null >/dev/null 2>&1)
    ok "R34: status" [ $? -eq 7 ]
}
# Under `make coverage` a limit would stop the counts, and what clang's OpenMP keeps in files, too.
[ -n "$LLVM_PROFILE_FILE" ] || no_room
gen -n 2 --session "$T/none/s" "Once"
status 9
ok "the text comes first" [ -s "$T/out" ]

# R01: the reader goes away; R03: Ctrl-C. Both save, and what is saved goes on.
rm "$S"
("$TINYGPT" generate -t 1 --seed 1 -n 300 --ignore-eos --session "$S" "Once upon a time" </dev/null 2>"$T/err" &&
    echo 0 >"$T/rc" || echo $? >"$T/rc") | head -c 40 >"$T/out"
status 141
only_session "R01"
gen -n 1 --session "$S"
status 0
# Starts the program with these arguments, and waits for its first text.
start() {
    : >"$T/out"
    "$TINYGPT" generate -q -t 1 --seed 1 -n 400 --ignore-eos --session "$S" "$@" </dev/null >"$T/out" 2>"$T/err" &
    pid=$!
    while [ ! -s "$T/out" ]; do sleep 0.02; done
}
end() {
    kill -TERM $pid
    wait $pid
    echo $? >"$T/rc"
}
rm "$S"
start "Once upon a time"
end
status 143
only_session "R03"
cp "$T/out" "$T/first"
gen -n 10 --session "$S" --ignore-eos && cat "$T/first" "$T/out" >"$T/both"
gen --seed 1 -n 410 --ignore-eos "Once upon a time"
ok "R03: goes on" [ "$(head -c "$(wc -c <"$T/both")" "$T/out")" = "$(cat "$T/both")" ]

# R30: the model overwritten while it runs: status 9 and no session; replaced by renaming (R29), it does not matter
cp "$MODEL" "$T/model.gguf"
cp "$S" "$T/kept"
for how in overwrite replace; do
    start -m "$T/model.gguf" "Once"
    if [ $how = overwrite ]; then touch "$T/model.gguf"; else cp "$MODEL" "$T/new" && mv "$T/new" "$T/model.gguf"; fi
    end
    [ $how = overwrite ] || continue
    err_has 'was overwritten while in use'
    ok "R30: the old session stays" cmp -s "$S" "$T/kept"
done
err ''
ok "R29: the session is saved" [ "$(cmp "$S" "$T/kept" | wc -l)" -eq 1 ]
touch -d '1 hour ago' "$T/model.gguf"
run generate -q -t 1 -n 2 --session "$S" -m "$T/model.gguf" "Once"
status 0

# R35: killed at random moments: the old session or the new one, never another. (Around every call of the system, and when
# these fail: tests/faults.) $T/kept: the old one; $T/new: the one that this run makes of it.
old_or_new() {
    cmp -s "$S" "$T/kept" || cmp -s "$S" "$T/new" || fail "R35: $1: neither the old session nor the new one"
}
gen -n 1 --temp 0 --session "$T/kept" "Once"
cp "$T/kept" "$S"
gen -n 1 --temp 0 --session "$S" "Once upon a time"
cp "$S" "$T/new"
# KILLS is how many
i=0
while [ $i -lt "${KILLS:-12}" ]; do
    cp "$T/kept" "$S"
    timeout -s KILL "0.$(printf %03d $(($(od -An -N2 -tu2 /dev/urandom) % 150)))" \
        "$TINYGPT" generate -q -t 1 -n 1 --temp 0 --session "$S" "Once upon a time" </dev/null >/dev/null 2>&1
    old_or_new "killed at random"
    i=$((i + 1))
done 2>/dev/null
rm -f "$T/folder/".s.*
# R36: the last one wins
cp "$T/kept" "$S"
for i in 1 2 3 4; do
    "$TINYGPT" generate -q -t 1 -n 1 --temp 0 --session "$S" "Once upon a time" </dev/null >/dev/null 2>&1 &
done
wait
ok "R36" cmp -s "$S" "$T/new"
only_session "R36"

# chat: a conversation goes on, from the cache; what is no conversation is refused
talk() {
    run chat -t 1 --chat-template chatml -n 6 --temp 0 --stats --session "$T/chat" "$@"
}
talk --system "Be brief." "Who are you?"
status 0
err_has ' 0 of them in the cache before'
cp "$T/out" "$T/first"
talk "And who am I?"
status 0
ok "the conversation is in the cache" grep -qE ' [1-9][0-9]+ of them in the cache before' "$T/err"
ok "and in the file" grep -qaF '["system","Be brief."],["user","Who are you?"],["assistant",' "$T/chat"
ok "both turns" grep -qaF '["user","And who am I?"]' "$T/chat"
run chat -t 1 --chat-template chatml -n 6 --session "$S" "a"
status 4
err_has 'no conversation'
cp "$T/chat" "$T/was"
for more in Once "--append Once" "--no-stdin -n 0"; do
    # shellcheck disable=SC2086
    run generate -t 1 --session "$T/chat" $more
    status 4
    out ''
    err "tinygpt: error: $T/chat: a conversation, and no text (chat goes on with it)"
done
ok "and a conversation stays one" cmp "$T/was" "$T/chat"

finish
