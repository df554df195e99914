#!/bin/sh
# Commands, options, help: what needs no model.
. "$(dirname "$0")/../support/cli.sh"

run
status 2
out ''
err 'tinygpt: error: no command (see tinygpt --help)'

run genrate "Once upon a time"
status 2
out ''
err "tinygpt: error: unknown command 'genrate' (did you mean generate?)"

run "Once upon a time"
status 2
err "tinygpt: error: unknown command 'Once upon a time' (see tinygpt --help)"

run -q generate
status 2
err 'tinygpt: error: the command comes first, then its options (see tinygpt --help)'

for flag in -h --help; do
    run $flag
    status 0
    err ''
    for command in generate tokenize logits inspect bench quantize pull list rm; do
        out_has "  $command "
    done
done

for command in generate tokenize logits inspect bench quantize pull list rm; do
    for flag in -h --help; do
        run $command --quiet $flag --unknown
        status 0
        err ''
        out_has "usage: tinygpt $command [options]"
        case $command in
        quantize | pull | list | rm) ;;
        *) out_has "-m, --model MODEL" ;;
        esac
        ok "help fits 80 columns" [ "$(wc -L <"$T/out")" -le 80 ]
    done
done

run rm --help
ok "no heading without options" [ "$(grep -c '^options:' "$T/out")" -eq 0 ]
run generate --help
ok "repetition is told once an option" [ "$(grep -c repeated "$T/out")" -eq 2 ] # --logit-bias and --stop

run --version
status 0
err ''
out_has 'tinygpt 0.1.0'
ok "the version is one line" [ "$(wc -l <"$T/out")" -eq 1 ]
cp "$T/out" "$T/version"
run generate --version
status 0
out_is "$T/version"

# options: wrong name, other command's name, wrong form, missing argument, values out of range
while IFS='|' read -r args message; do
    # shellcheck disable=SC2086
    run $args
    status 2
    out ''
    err "tinygpt: error: $message"
done <<'END'
generate --tmep 1|unknown option --tmep (did you mean --temp?)
generate --max-token 1|unknown option --max-token (did you mean --max-tokens?)
generate --format npy|generate has no option --format; logits has one
generate -z|unknown option -z (see tinygpt generate --help)
generate -temp 1|-temp: long options take two dashes: --temp
generate --echo=yes|--echo takes no argument
generate -p|-p needs an argument: STR
generate one two|generate takes [PROMPT], not 'two' too (quote a text of several words)
logits one|logits takes options only, not 'one'
inspect a b|inspect takes [MODEL], not 'b' too (quote a text of several words)
generate --temp nan x|--temp: 'nan' is not a number from 0 to 100
generate --temp inf x|--temp: 'inf' is not a number from 0 to 100
generate --temp -0.1 x|--temp: '-0.1' is not a number from 0 to 100
generate --temp 0x1 x|--temp: '0x1' is not a number from 0 to 100
generate --temp 1e400 x|--temp: '1e400' is not a number from 0 to 100
generate --temp 0,5 x|--temp: '0,5' is not a number from 0 to 100
generate --temp 1x x|--temp: '1x' is not a number from 0 to 100
generate --top-p 1.01 x|--top-p: '1.01' is not a number from 0 to 1
generate --min-p -1 x|--min-p: '-1' is not a number from 0 to 1
generate --top-k -1 x|--top-k: '-1' is not a whole number from 0 to 2147483647
generate --top-k 1.5 x|--top-k: '1.5' is not a whole number from 0 to 2147483647
generate -n -2 x|-n: '-2' is not a whole number from -1 to 1048576
generate -n 1e3 x|-n: '1e3' is not a whole number from -1 to 1048576
generate -t -1 x|-t: '-1' is not a whole number from 0 to 512
generate -t 513 x|-t: '513' is not a whole number from 0 to 512
generate -c 0 x|-c: '0' is not a whole number from 1 to 1048576
generate -b 0 x|-b: '0' is not a whole number from 1 to 65536
generate --seed -1 x|--seed: '-1' is not a whole number from 0 to 18446744073709551615
generate --seed 18446744073709551616 x|--seed: '18446744073709551616' is not a whole number from 0 to 18446744073709551615
generate --kv-type f8 x|--kv-type: 'f8' is not one of f32|f16|bf16|q8_0|q4
generate --blas maybe x|--blas: 'maybe' is not one of on|off
logits --format csv|--format: 'csv' is not one of text|json|npy
generate -p a -f b|the text is given more than once (as an argument, with -p or with -f)
generate a -p b|the text is given more than once (as an argument, with -p or with -f)
generate --no-stdin|no text: give it as an argument, with -f FILE, or through a pipe (tinygpt generate --help)
logits --no-stdin|no text: give it with -p, -f FILE, or through a pipe (tinygpt logits --help)
logits --ids 1 -p x|--ids takes the place of a text: give one of them
tokenize --ids --json x|choose one of --ids, --count, --json and --decode
tokenize --decode 1 x|--decode takes ids and no text beside them
bench -o npy|-o: 'npy' is not one of md|csv|json|jsonl
bench -p 0 -n 0|nothing to measure: -p 0 leaves the prompt out and -n 0 the rest
bench -p 0,0 -n 0-0|nothing to measure: -p 0 leaves the prompt out and -n 0 the rest
bench -r 0|-r: '0' is not a whole number from 1 to 1000
bench -d 1-|-d: '1-' is not a list (1,2 or 1-8 or 1-9+2 or 1-8*2) of up to 64 from 0 to 1048576
bench --kv-type f16,f8|--kv-type: 'f16,f8' is not a list, separated by commas, of f32|f16|bf16|q8_0|q4
bench --attention none|--attention: 'none' is none (--attention help lists them)
bench text|bench takes options only, not 'text'
list x|list takes options only, not 'x'
rm --catalog x|rm has no option --catalog; list has one
inspect a -m b|the model is given twice: as a and with -m
END

# the locale changes nothing: neither the point of numbers nor the case of letters
for locale in tr_TR.UTF-8 de_DE.UTF-8 C; do
    LC_ALL=$locale run generate --temp 0.5 --top-p 0,5 x
    status 2
    err "tinygpt: error: --top-p: '0,5' is not a number from 0 to 1"
    LC_ALL=$locale run INSPECT
    status 2
done

# what the user typed is shown without its control bytes
run "$(printf 'a\033[2Jb')"
err "tinygpt: error: unknown command 'a\\x1B[2Jb' (see tinygpt --help)"

finish
