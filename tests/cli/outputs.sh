#!/bin/sh
# An output that would take the place of an input is refused before any work, whatever links are between the two; one
# that takes its own place, and what is no file, are not.
. "$(dirname "$0")/../support/cli.sh"
need_model

cp "$MODEL" "$T/model.gguf"
cp -r tests/golden/llama-shards "$T/folder"
echo '{}' >"$T/folder/generation_config.json"
echo 'Once upon a time' >"$T/text"
printf '{%% for m in messages %%}{{ m.content }}{%% endfor %%}' >"$T/template"
run perplexity -q -f "$T/text" --save-logits "$T/base"
mkdir "$T/was"
cp -r "$T/model.gguf" "$T/folder" "$T/text" "$T/template" "$T/base" "$T/was"

# refused INPUT "WORDS... OUT WORDS...": where OUT is the input, by its name, by another and by links
refused() {
    ln -s "$1" "$T/symbolic"
    ln "$1" "$T/hard"
    for output in "$1" "$T/./${1#"$T/"}" "$T/symbolic" "$T/hard"; do
        # shellcheck disable=SC2086
        run_in ${2%OUT*} "$output" ${2#*OUT} <"$T/text"
        status 2
        out ''
        err "tinygpt: error: $output: is read from, and cannot be written to"
    done
    rm "$T/symbolic" "$T/hard"
}

logits="logits -m $T/model.gguf -p Once -o OUT"
refused "$T/model.gguf" "$logits"
refused "$T/text" "logits -m $T/model.gguf -f $T/text -o OUT"
refused "$T/text" "logits -m $T/model.gguf -o OUT"
for file in model-00002-of-00002.safetensors model.safetensors.index.json config.json tokenizer.json generation_config.json; do
    refused "$T/folder/$file" "logits -m $T/folder --ids 1,2 -o OUT"
done
perplexity="perplexity -m $T/model.gguf -f $T/was/text --kl $T/base --save-logits OUT"
refused "$T/model.gguf" "$perplexity"
refused "$T/base" "$perplexity"
refused "$T/text" "perplexity -m $T/model.gguf -f $T/text --save-logits OUT"
refused "$T/model.gguf" "generate -m $T/model.gguf --session OUT Once"
refused "$T/text" "generate -m $T/model.gguf -f $T/text --session OUT"
chat="chat -m $T/model.gguf --chat-template $T/template -n 1 --session OUT"
refused "$T/model.gguf" "$chat"
refused "$T/template" "$chat"
refused "$T/model.gguf" "quantize $T/model.gguf OUT --type f16 --requantize"
refused "$T/folder/model-00001-of-00002.safetensors" "quantize $T/folder OUT --type f16"
refused "$T/folder/tokenizer.json" "quantize $T/folder OUT --type f16"
for name in model.gguf folder text template base; do
    ok "$name is as it was" diff -r "$T/was/$name" "$T/$name"
done

# no name at all
for words in "$logits" "$perplexity" "generate -m $T/model.gguf -n 1 --session OUT Once" "$chat" \
    "quantize $T/model.gguf OUT --type f16"; do
    # shellcheck disable=SC2086
    run ${words%OUT*} "" ${words#*OUT}
    status 2
    out ''
    err "tinygpt: error: the name of the file to write is empty"
done

# its own older output, a name beside the inputs, and what is no file
for output in "$T/logits" "$T/folder/logits" "$T/folder/logits" /dev/null; do
    run logits -m "$T/folder" --ids 1,2 -o "$output"
    status 0
done
run logits -m "$T/folder" --ids 1,2 -o /dev/stdout
status 0
out_is "$T/logits"
"$TINYGPT" logits -m "$T/folder" --ids 1,2 -o /dev/stdout </dev/null | cat >"$T/piped"
ok "through a pipe" cmp -s "$T/logits" "$T/piped"
mkfifo "$T/fifo"
timeout 60 cat "$T/fifo" >"$T/piped" &
run logits -m "$T/folder" --ids 1,2 -o "$T/fifo"
status 0
wait
ok "through a FIFO" cmp -s "$T/logits" "$T/piped"
for file in 1 2; do
    run perplexity -m "$T/model.gguf" -f "$T/text" --save-logits "$T/saved"
    status 0
    run generate -q -m "$T/model.gguf" --session "$T/session" -n "$file" Once
    status 0
    run quantize -q "$T/folder" "$T/out.gguf" --type f16
    status 0
done

# Answers to lines do not go behind the lines, where they would be lines without an end; a text is read whole before it
# is continued.
for words in "generate -q --each-line -n 1 --temp 0" "score -p Once"; do
    for from in "$T/text" -; do
        cp "$T/was/text" "$T/text"
        echo "tinygpt $words -f $from >>text" >"$T/what"
        # shellcheck disable=SC2086,SC2094
        "$TINYGPT" $words -f "$from" <"$T/text" >>"$T/text" 2>"$T/err"
        echo $? >"$T/rc"
        status 2
        err "tinygpt: error: /dev/stdout: is read from, and cannot be written to"
        ok "the lines are as they were" cmp "$T/was/text" "$T/text"
    done
done
# shellcheck disable=SC2094
"$TINYGPT" generate -q -n 3 --temp 0 --chomp -f "$T/text" >>"$T/text" 2>"$T/err" </dev/null
echo $? >"$T/rc"
status 0
err ''
ok "the text is continued" [ "$(wc -c <"$T/text")" -gt "$(wc -c <"$T/was/text")" ]

finish
