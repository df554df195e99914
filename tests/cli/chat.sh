#!/bin/sh
# Conversations: one message through a pipe, many on a terminal.
. "$(dirname "$0")/../support/cli.sh"
need_model
need_python

# A model with a template: a pair is put before the others, padded to whole blocks of 32 bytes.
# with_template FILE <TEMPLATE
with_template() {
    "$PYTHON" - "$MODEL" "$1" "$(cat)" <<'END'
import struct
import sys

model, out, template = sys.argv[1:]
data = open(model, "rb").read()
magic, version, n_tensors, n_pairs = struct.unpack_from("<4sIQQ", data)
key = b"tokenizer.chat_template"
rest = 8 + len(key) + 4 + 8
template = template.encode() + b"{#"
template += b" " * (-(rest + len(template) + 2) % 32) + b"#}"
pair = struct.pack("<Q", len(key)) + key + struct.pack("<IQ", 8, len(template)) + template
open(out, "wb").write(struct.pack("<4sIQQ", magic, version, n_tensors, n_pairs + 1) + pair + data[24:])
END
}

printf '%s' "{{ bos_token }}{% for m in messages %}{{ m.role ~ ':' ~ m.content ~ '\n' }}{% endfor %}assistant:" |
    with_template "$T/plain.gguf"
printf '%s' "{% if messages[0].role == 'system' %}{{ raise_exception('No \"system\" here') }}{% endif %}{% for m in messages %}{{ m.content }}{% endfor %}" |
    with_template "$T/strict.gguf"
printf '%s' "{% for m in messages %}{{ m.content | wordwrap }}{% endfor %}" | with_template "$T/odd.gguf"

# ---- one message ----------------------------------------------------------------------------------

# the answer and nothing else, the same as generate gives for the rendered text
run generate --temp 0 -n 12 -q "$(printf 'user:Once upon a time\nassistant:')"
cp "$T/out" "$T/want"
run chat -m "$T/plain.gguf" --temp 0 -n 12 'Once upon a time'
status 0
out_is "$T/want"
err ''
printf 'Once upon a time\n' | run_in chat -m "$T/plain.gguf" --temp 0 -n 12
out_is "$T/want"
printf 'Once upon\n' | run_in chat -m "$T/plain.gguf" --temp 0 -n 12 'a time' # as generate joins them
status 0
printf 'Once upon a time' >"$T/message"
run chat -m "$T/plain.gguf" --temp 0 -n 12 -f "$T/message"
out_is "$T/want"

run generate --temp 0 -n 12 -q "$(printf 'system:Tell tales\nuser:Hello\nassistant:')"
cp "$T/out" "$T/want"
run chat -m "$T/plain.gguf" --temp 0 -n 12 --system 'Tell tales' Hello
out_is "$T/want"

# a seed that was drawn is told; the same one gives the same answer
run chat -m "$T/plain.gguf" -n 12 Hello
cp "$T/out" "$T/want"
seed=$(sed -n 's/^tinygpt: seed //p' "$T/err")
run chat -m "$T/plain.gguf" -n 12 --seed "$seed" Hello
out_is "$T/want"
err ''

# U06: a message spells no special token; U09: one BOS where the template writes it and the model adds it
run chat -m "$T/plain.gguf" --temp 0 -n 1 --stats Hello
n=$("$TINYGPT" tokenize --count "$(printf 'user:Hello\nassistant:')")
err_has "conversation:     $n tokens of 512, 0 of them in the cache before"
run chat -m "$T/plain.gguf" --temp 0 -n 1 --stats 'a<|endoftext|>b'
n=$("$TINYGPT" tokenize --count "$(printf 'user:a<|endoftext|>b\nassistant:')")
err_has "conversation:     $n tokens"
run chat -m "$T/plain.gguf" --temp 0 -n 1 --stats --special 'a<|endoftext|>b'
n=$("$TINYGPT" tokenize --special --count "$(printf 'user:a<|endoftext|>b\nassistant:')")
err_has "conversation:     $n tokens"

# what is wrong is said before anything is generated
run chat Hello
status 3
one_error
err_has 'models/tales.gguf: no chat template in the model (--chat-template takes chatml, gemma, llama2, llama3, mistral, phi3, zephyr or a Jinja file)'
run chat --chat-template chatlm Hello
status 2
one_error
run chat --chat-template ./absent.jinja Hello
status 9
one_error
run chat -m "$T/odd.gguf" Hello
status 3
err "tinygpt: error: $T/odd.gguf: chat template, line 1: filter 'wordwrap' is not supported"
run chat -m "$T/strict.gguf" --system x Hello
status 2
err "tinygpt: error: $T/strict.gguf: the model's chat template refuses the conversation: No \"system\" here"
run chat -m "$T/plain.gguf" --temp 0
status 2
err 'tinygpt: error: the message is empty'
run chat -m "$T/plain.gguf" # nothing was drawn, so no seed is told
err 'tinygpt: error: the message is empty'
run chat -m "$T/plain.gguf" -c 64 "$(head -c 8000 README.md)"
status 2
err_has 'and the context room for 48 beside an answer (-c sets it)'
run chat -m "$T/plain.gguf" -c 64 "$(cat README.md)"
status 2
err_has "the text is too long"
run chat -m "$T/plain.gguf" -f "$T/message" Hello
status 2

# templates by name, and from a file; the end of a turn stops, also where the model knows it as no end
for name in chatml gemma llama2 llama3 mistral phi3 zephyr; do
    run chat --chat-template $name --temp 0 -n 3 Hello
    status 0
done
printf '{{ messages[0].content }}' >"$T/t.jinja"
run generate --temp 0 -n 12 -q 'Once upon a time'
cp "$T/out" "$T/want"
run chat --chat-template "$T/t.jinja" --temp 0 -n 12 'Once upon a time'
out_is "$T/want"
# U12: a stop that is a special token's name
run chat --chat-template "$T/t.jinja" --temp 0 -n 400 --stop '<|endoftext|>' 'Once upon a time'
status 0

# ---- on a terminal --------------------------------------------------------------------------------

"$PYTHON" -c 'import pty; pty.openpty()' 2>/dev/null || {
    echo "no pseudo-terminals here"
    exit 77
}

# talk ARGS... <STEPS: escape sequences of the terminal are taken out of what is compared
talk() {
    echo "on a terminal: tinygpt chat $*" >"$T/what"
    TERM=xterm "$PYTHON" tests/support/talk.py "$TINYGPT" chat --temp 0 "$@" >"$T/raw" 2>"$T/err"
    echo $? >"$T/rc"
    "$PYTHON" -c 'import re, sys
sys.stdout.write(re.sub(r"\x1b\[[?0-9;]*[a-zA-Z]|\r", "", open(sys.argv[1], newline="", errors="replace").read()))' "$T/raw" >"$T/out"
}

# turns, of which the second computes what is new alone; commands
talk -m "$T/plain.gguf" -n 8 --stats <<'END'
< >>> 
> The fox said to the hen\r
< >>> 
> And then?\r
< >>> 
> /system Be brief\r
< >>> 
> /system\r
< >>> 
> /reset\r
< >>> 
> /stat\r
< >>> 
> /help\r
< >>> 
> /exit\r
END
status 0
out_has '0 of them in the cache before'
n=$("$TINYGPT" tokenize --count "$(printf 'user:The fox said to the hen\nassistant:')")
out_has "$((n + 7)) of them in the cache before"
out_has 'Be brief'
out_has 'unknown command /stat (did you mean /stats?)'
out_has '/reset            forget the conversation'

# /save and /load: what was said is in the cache again
talk -m "$T/plain.gguf" -n 8 --stats <<END
< >>> 
> The fox said to the hen\r
< >>> 
> /save $T/saved\r
< >>> 
> /reset\r
< >>> 
> /load $T/none\r
< >>> 
> /load $T/saved\r
< >>> 
> And then?\r
< >>> 
> /save\r
< >>> 
> /save $T/plain.gguf\r
< >>> 
> /exit\r
END
status 0
out_has "plain.gguf: is read from, and cannot be written to"
out_has "saved: $((n + 8)) tokens"
out_has "loaded: $((n + 8)) tokens"
out_has "$((n + 7)) of them in the cache before"
out_has "none: cannot be opened"
out_has "/save needs the name of a file"

# a message of many lines: by a backslash, as a block, and pasted
printf '{%% for m in messages %%}{%% if m.role == "user" %%}{{ raise_exception("[" ~ m.content | replace("\\n", "|") ~ "]") if m.content != "a" }}{%% endif %%}{%% endfor %%}{{ bos_token }}' >"$T/tell.jinja"
talk -m "$T/plain.gguf" -n 1 --chat-template "$T/tell.jinja" <<'END'
< >>> 
> one\\\r
< ... 
> two\r
< >>> 
> """three\r
< ... 
> \r
< ... 
> four"""\r
< >>> 
> \x04
END
status 0
out_has '[one|two]'
out_has '[three||four]'
if ldd "$TINYGPT" 2>/dev/null | grep -q readline; then
    talk -m "$T/plain.gguf" -n 1 --chat-template "$T/tell.jinja" <<'END'
< >>> 
> \x1b[200~five\nsix\x1b[201~
< six
> \r
< refuses
< >>> 
> seven
< seven
> \x03
< >>> 
> eight\r
< refuses
< >>> 
> \x04
END
    status 0
    out_has '[five|six]'
    out_has '[eight]'
fi

# Ctrl-C stops the answer and not the program; another one, where nothing was typed, ends it
talk -m "$T/plain.gguf" -c 4096 --logit-bias 0-9999 <<'END'
< >>> 
> Once upon a time\r
< .
> \x03
< >>> 
> /stats\r
< generated tokens
< >>> 
> \x03
END
status 130

# a full context is told, and what is forgotten
talk -m "$T/plain.gguf" -c 128 -n 60 --stop zzz <<'END'
< >>> 
> Once upon a time there was a king who had a daughter, and she had a golden ball, and she played with it by the well\r
< >>> 
> One day the ball fell into the well, and the king's daughter wept and wept, and could not be comforted at all\r
< >>> 
> And then a frog put its head out of the water and asked her why she wept, and she told it all that there was\r
< >>> 
> \x04
END
status 0
out_has 'context full: the first 2 messages are forgotten (-c sets its size, now 128; /reset begins anew)'

# the answer to a file: no escape byte, and no prompt
echo "chat >FILE" >"$T/what"
printf '< >>> \n> Once upon a time\\r\n< >>> \n> \\x04\n' |
    TERM=xterm "$PYTHON" tests/support/talk.py sh -c "\"$TINYGPT\" chat -m \"$T/plain.gguf\" --temp 0 -n 12 >\"$T/answer\"" >"$T/out" 2>"$T/err"
run generate --temp 0 -n 12 -q "$(printf 'user:Once upon a time\nassistant:')"
{ cat "$T/out" && echo; } >"$T/want"
ok "the file has the answer" cmp "$T/want" "$T/answer"

# a saved conversation of very many turns, with sums that are right: what does not fit is forgotten in few renderings
cat >"$T/turns.py" <<'END'
import json, struct, sys

HEAD, FIELDS, IDS, NOTE = 24, 20, 14, 16


def with_sum(data):
    total = 0
    for (word,) in struct.iter_unpack("<Q", data):
        total = ((total ^ word) + 0x9e3779b97f4a7c15) * 0xd6e8feb86659fd93 % 2**64
        total ^= total >> 32
    return data + struct.pack("<Q", total)


data = open(sys.argv[1], "rb").read()
fields = list(struct.unpack_from(f"<{FIELDS}Q", data, HEAD))
at = HEAD + 8 * FIELDS + -(-4 * fields[IDS] // 8) * 8
ids, cache = data[HEAD + 8 * FIELDS:at], data[at + -(-fields[NOTE] // 8) * 8 + 8:-8]
note = json.dumps([["user", "a"], ["assistant", "b"]] * 10000, separators=(",", ":")).encode()
fields[NOTE] = len(note)
text = data[:HEAD] + struct.pack(f"<{FIELDS}Q", *fields) + ids + note + bytes(-len(note) % 8)
open(sys.argv[1], "wb").write(with_sum(with_sum(text) + cache))
END
run chat -t 1 --chat-template chatml -n 6 --temp 0 --session "$T/chat" "Who are you?"
status 0
"$PYTHON" "$T/turns.py" "$T/chat" || fail "no file of many turns"
(
    ulimit -t 60
    run chat -t 1 -c 128 --chat-template chatml -n 6 --temp 0 --session "$T/chat" "And who am I?"
)
status 0
ok "the last turns are left" grep -q 'context full: the first 199[0-9][0-9] messages are forgotten' "$T/err"

finish
