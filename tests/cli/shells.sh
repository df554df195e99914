#!/bin/sh
# Completions in the shells that are here, help, and the manual page: all from the tables.
. "$(dirname "$0")/../support/cli.sh"

commands=$("$TINYGPT" --help | sed -n 's/^  \([a-z]*\) .*/\1/p')
ok "there are commands" [ "$(echo "$commands" | wc -l)" -gt 8 ]

for shell in bash fish zsh; do
    run completion $shell
    status 0
    err ''
    cp "$T/out" "$T/complete.$shell"
done
run completion
status 2
err 'tinygpt: error: completion needs a shell (found none, allowed bash fish zsh)'
run completion tcsh
status 2
err 'tinygpt: error: completion needs a shell (found tcsh, allowed bash fish zsh)'

# What is offered where WORDS... is typed, the last one unfinished: a word a line.
in_bash() {
    bash -c '. "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); compopt() { :; }; _tinygpt; printf "%s\n" "${COMPREPLY[@]}"' \
        "$T/complete.bash" tinygpt "$@" | sort | grep .
}
in_fish() {
    fish --no-config -c "source $T/complete.fish; complete -C 'tinygpt $*'" | cut -f 1 | sort
}

mkdir "$T/bin"
ln -s "$(realpath "$TINYGPT")" "$T/bin/tinygpt"
PATH=$T/bin:$PATH # whence the scripts take names of models
for shell in bash fish; do
    command -v $shell >/dev/null 2>&1 || continue
    echo "completion in $shell" >"$T/what"
    in_$shell "" >"$T/out"
    [ "$(cat "$T/out")" = "$(echo "$commands" | sort)" ] || fail "the commands should be offered"
    ok "generate in $shell" [ "$(in_$shell gen)" = generate ]
    ok "perplexity in $shell" [ "$(in_$shell help perp)" = perplexity ]
    ok "zsh in $shell" [ "$(in_$shell completion z)" = zsh ]
    in_$shell generate --kv-type "" >"$T/out"
    [ "$(tr '\n' ' ' <"$T/out")" = "bf16 f16 f32 q4 q8_0 " ] || fail "the types should be offered"
    [ "$(in_$shell pull gpt2-m)" = gpt2-medium ] || fail "names that pull knows should be offered"
    touch "$T/bin/Q6_file"
    [ "$(cd "$T/bin" && in_$shell quantize --type Q6)" = Q6_K ] || fail "types of quantize should be offered, and no files"
    touch "$T/bin/q8_file"
    [ "$(cd "$T/bin" && in_$shell inspect --kv-type q8)" = q8_0 ] || fail "no files should be offered as types"
    for command in $commands; do
        in_$shell "$command" -- >"$T/out"
        "$TINYGPT" help "$command" | sed -n 's/^  \(-., \|    \)--\([a-z0-9-]*\).*/--\2/p' | sort -u >"$T/options"
        ok "$shell: all options of $command" cmp -s "$T/out" "$T/options"
    done
done
if command -v zsh >/dev/null 2>&1; then
    ok "zsh reads its completion" zsh -n "$T/complete.zsh"
fi

for command in $commands; do
    run help "$command"
    status 0
    cp "$T/out" "$T/help"
    run "$command" --help
    out_is "$T/help"
done
run help
cp "$T/out" "$T/help"
run --help
out_is "$T/help"
run help generat
status 2
err "tinygpt: error: unknown command 'generat' (did you mean generate?)"

run help --man
status 0
cp "$T/out" "$T/tinygpt.1"
for command in $commands; do
    ok "the manual tells of $command" grep -q "^\.SS tinygpt $command" "$T/tinygpt.1"
done
if command -v groff >/dev/null 2>&1; then
    groff -man -ww -Tutf8 "$T/tinygpt.1" >"$T/out" 2>"$T/err"
    err ''
    out_has 'TINYGPT'
fi
finish
