"""R09, R10, R12: prompts that are empty, or too large for anything: refused before they are encoded, with little memory
and in little time."""
import resource
import subprocess

from process import MODEL, check, done, folder, run

MIB = 1 << 20
where = folder()


def peak():
    """Of all processes so far."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024


# ---- R10 ---------------------------------------------------------------------------------------------

sparse, line = where / "sparse", where / "line"
for path, n in ((sparse, 2 << 30), (line, 128 * MIB)):
    with path.open("wb") as f:
        f.truncate(n)
lettered = where / "letters"
lettered.write_bytes(b"a" * (20 * MIB))
WORDS = [(words, sparse) for words in (("generate", "-n", "1"), ("logits",), ("chat", "--chat-template", "chatml"),
                                       ("tokenize", "--count"), ("perplexity",), ("generate", "-n", "1", "-c", "1048576"))]
WORDS += [(words, lettered) for words in (("generate", "-n", "1"), ("logits", "-c", "100"), ("generate", "-n", "1", "--each-line"),
                                          ("chat", "--chat-template", "chatml"), ("score", "-p", "a"), ("score", "--jsonl"))]
WORDS += [(("generate", "-n", "1", "--each-line", *more), line) for more in ((), ("--jsonl",))]
for words, path in WORDS:
    with path.open("rb") as f:
        for ended in (run(*words, "-f", path), run(*words, stdin=f)):
            check(ended.status == 2 and b"too long" in ended.err and ended.seconds < 20, f"R10 {' '.join(words)} of {path.name}: {ended}")
            check(peak() < 100 * MIB, f"R10 {' '.join(words)} of {path.name}: {peak() / MIB:.0f} MiB")
cat = subprocess.Popen(["cat", sparse], stdout=subprocess.PIPE)
ended = run("generate", "-n", "1", stdin=cat.stdout)
check(ended.status == 2 and ended.one_error(), f"R10 through a pipe: {ended}")
cat.stdout.close()
cat.wait()
with sparse.open("rb") as f:
    ended = run("logits", "--ids", "-", stdin=f)
check(ended.status == 2 and ended.one_error(), f"R10 ids: {ended}")

# a line that is too long is one bad line, and the others go on
for jsonl in (False, True):
    good = b'{"prompt": "The fox", "max_tokens": 2}\n' if jsonl else b"The fox\n"
    bad = b'{"prompt": "' + b"a" * MIB + b'"}\n' if jsonl else b"a" * MIB + b"\n"
    huge = bad.replace(b"a" * MIB, b"a" * (30 * MIB))
    ended = run("generate", "--each-line", "--temp", "0", "-n", "2", *["--jsonl"] * jsonl, text=good + bad + huge + good)
    answers = ended.out.split(b"\n")
    check(ended.status == 2 and len(answers) == 5 and ended.err.count(b"too long") == 2, f"R10 a long line: {ended}")
    check(answers[0] and answers[3] and (jsonl or (answers[0] == answers[3] and not answers[1] and not answers[2])),
          f"R10 a long line: {answers}")

# no bound is too narrow: what fits the context is taken, whatever it is spelled with
for text in (b" " * 500, b"\xff" * 500, "e\u0301".encode() * 160, b"Once upon a time " * 125, b"\n" * 511):
    n = int(run("tokenize", "--count", text=text).out)
    ended = run("generate", "-n", "0", "-c", "512", "--echo", text=text)
    check((ended.status == 0 and ended.out == text) == (n <= 512), f"R10 {n} tokens: {ended}")

# ---- R12: one token too many, with both counts -------------------------------------------------------

text = b"Once upon a time there was a king"
n = int(run("tokenize", "--count", text=text).out)
for command in ("generate", "logits"):
    check(run(command, *["-n", "0"] * (command == "generate"), "-c", n, text=text).status == 0, f"R12 {command}: it fits")
    ended = run(command, "-c", n - 1, text=text)
    check(ended.status == 2 and ended.one_error() and f"has {n} tokens and the context {n - 1} positions".encode() in ended.err,
          f"R12 {command}: {ended}")

# ---- R09: nothing to begin with ----------------------------------------------------------------------

nameless = where / "nameless.gguf"
data = MODEL.read_bytes()
for key in (b"tokenizer.ggml.bos_token_id", b"tokenizer.ggml.eos_token_id", b"tokenizer.ggml.add_bos_token"):
    check(data.count(key) == 1, f"R09 {key} is in the model")
    data = data.replace(key, key[:-2] + b"xx")
nameless.write_bytes(data)
for words, text in ((("generate", ""), b""), (("generate", "--each-line"), b"\n")):
    ended = run(*words, "-m", nameless, text=text)
    check(ended.status == 2 and b"the prompt is empty, and the model has no token to begin a text with" in ended.err, f"R09: {ended}")
    ended = run(*words, "-q", "-n", "5", text=text)
    check(ended.status == 0 and ended.out, f"R09 with a token to begin with: {ended}")
ended = run("generate", "-q", "-n", "5", "-m", nameless, "Once")
check(ended.status == 0 and ended.out, f"R09 with a prompt: {ended}")
done()
