"""R01, R02: stdout without a reader, full, closed, or too short: of every command that writes there."""
import os
import resource
import subprocess

from process import PROGRAM, check, done, end, folder, limit, run, start

LINES = b"Once upon a time\nThe fox\n"
GREEDY = ("generate", "--temp", "0", "-n", "3")
COMMANDS = [  # words, and what stdin brings
    ((*GREEDY, "Once"), None), ((*GREEDY, "--json", "Once"), None), ((*GREEDY, "--jsonl", "Once"), None),
    ((*GREEDY, "--n-best", "3", "Once"), None), ((*GREEDY, "--each-line"), LINES),
    ((*GREEDY, "--each-line", "--jsonl"), LINES), ((*GREEDY, "--echo", "-n", "0", "Once"), None),
    (("chat", "--temp", "0", "-n", "3", "--chat-template", "chatml", "Who?"), None),
    (("tokenize", "Once"), None), (("tokenize", "--ids", "Once"), None), (("tokenize", "--count", "Once"), None),
    (("tokenize", "--json", "Once"), None), (("tokenize", "--decode", "700,701"), None),
    *((("logits", "--ids", "1,2", "--all", "--format", format), None) for format in ("text", "json", "npy")),
    (("logits", "--ids", "1", "-o", "/dev/stdout"), None), (("logits", "--attention", "help"), None),
    (("inspect",), None), (("inspect", "--json", "--tensors"), None), (("inspect", "--tensors"), None),
    (("bench", "-q", "-p", "1", "-n", "0", "-r", "1", "-t", "1", "-m", "tests/golden/gguf/llama.f32.gguf"), None),
    (("perplexity",), LINES), (("perplexity", "--json"), LINES),
    (("score", "-p", "Once upon"), LINES), (("score", "--jsonl"), b'{"prompt": "Once", "continuation": " upon"}\n'),
    (("quantize", "--type", "help"), None), (("list", "--catalog"), None), (("list", "-q", "--json"), None),
    (("completion", "bash"), None), (("help",), None), (("help", "generate"), None), (("help", "--man"), None),
    (("--help",), None), (("--version",), None), (("generate", "--help"), None), (("score", "--version"), None),
]
NOTHING = {"pull", "rm"}  # the one is tests/fetch's, and writes a path; the other writes nothing

names = {line.split()[0] for line in run("--help").out.decode().splitlines() if line.startswith("  ") and line[2:3].isalpha()}
missing = names - {words[0] for words, _ in COMMANDS} - NOTHING
check(names and not missing, f"commands that are not tested here: {missing}")

where = folder()
for words, text in COMMANDS:
    told = " ".join(words)
    whole = run(*words, text=text)
    check(whole.status == 0 and whole.out and not whole.err, f"{told}: {whole}")

    ours, theirs = os.pipe()
    os.close(ours)
    ended = run(*words, text=text, stdout=theirs)
    os.close(theirs)
    check(ended.status == 141 and not ended.err, f"R01 {told}: {ended}")

    for name, target, prepare in (
            ("full", "/dev/full", lambda: None), ("closed", "/dev/null", lambda: os.close(1)),
            ("too short", where / "short", limit(resource.RLIMIT_FSIZE, 1))):
        with open(target, "wb") as out:
            ended = run(*words, text=text, stdout=out, prepare=prepare)
        check(ended.status == 9 and ended.one_error(), f"R02 {name}: {told}: {ended}")

# R01: within one token, and what is there is saved
process = start("generate", "-t", "1", "-q", "--seed", "1", "-n", "400", "--ignore-eos", "--session", where / "s", "Once upon a time")
os.read(process.stdout.fileno(), 1)
process.stdout.close()
process.stdout = None
ended = end(process)
check(ended.status == 141 and not ended.err, f"R01 in the middle: {ended}")
tokens = run("generate", "-n", "1", "--temp", "0", "--stats", "--session", where / "s").err.decode()
saved = int(next(line.split()[2].strip(",") for line in tokens.splitlines() if line.startswith("reused tokens")))
check(saved < 100, f"R01: {saved} tokens of 400 were made after the reader had gone")
done()
