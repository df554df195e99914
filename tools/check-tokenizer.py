#!/usr/bin/env python3
"""Compares the tokenizer with the reference on many texts.

    make build/release/tests/token/driver
    python3 tools/check-tokenizer.py [--n 200000] [--text FILE]... [--gguf FILE]... [--folder DIR]... [--no-pieces]

needs the PyPI packages tokenizers and gguf. For each model, N random strings and each text, as a whole and by
eight lines, must give the ids that the package gives, with special tokens as text (and a quarter of the strings
with them as tokens), and decode to the same bytes, but for those that the vocabulary lacks. A DIR holds
tokenizer.json, or vocab.json and merges.txt of GPT-2; weights are not needed. Last, the pieces of every
pre-tokenizer are compared with those of the reference's regular expression.
"""
import argparse
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

import hard_texts

ROOT = pathlib.Path(__file__).resolve().parent.parent


def split(regex):
    return pre_tokenizers.Split(Regex(regex), "isolated")


byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
PRE = {name: ([pre_tokenizers.Digits(individual_digits=True)] if digits else []) + [split(spellings[0])]
       for name, (digits, spellings) in hard_texts.PATTERNS.items()}


def merges_of(scores):
    """What the scores of tokens (text to score) mean: the pairs that make each, the highest score first."""
    found = []
    for token, score in scores.items():
        pairs = [(token[:i], token[i:]) for i in range(1, len(token)) if token[:i] in scores and token[i:] in scores]
        found += [(score, len(left), left, right) for left, right in pairs]
    found.sort(key=lambda x: (x[0], x[1]), reverse=True)
    return [(left, right) for _, _, left, right in found]


def sentencepiece_reference(get):
    tokens, scores, types = get("tokens"), get("scores"), get("token_type")
    plain = {t: s for t, s, ty in zip(tokens, scores, types) if ty in (1, 4) and " " not in t}
    unknown = tokens[get("unknown_token_id", 0)]
    tokenizer = Tokenizer(models.BPE({t: i for i, t in enumerate(tokens)}, merges_of(plain), byte_fallback=True,
                                     unk_token=unknown, fuse_unk=True))
    prefix = get("add_space_prefix", True)
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581")] * prefix + [normalizers.Replace(" ", "\u2581")])
    tokenizer.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()]
                                          + [decoders.Strip(" ", 1, 0)] * prefix)
    tokenizer.add_tokens([AddedToken(t, special=ty in (2, 3), normalized=ty == 4 and not prefix)
                          for t, ty in zip(tokens, types) if ty in (2, 3, 4)])
    return tokenizer


def gguf_reference(path):
    import gguf

    fields = gguf.GGUFReader(path).fields
    get = lambda key, *absent: (fields["tokenizer.ggml." + key].contents()
                                if "tokenizer.ggml." + key in fields or not absent else absent[0])
    if get("model") == "llama":
        return sentencepiece_reference(get)
    pre, tokens = get("pre"), get("tokens")
    types = get("token_type") if "tokenizer.ggml.token_type" in fields else [1] * len(tokens)
    pre = {"llama3": "llama-bpe", "llama-v3": "llama-bpe", "gpt2": "gpt-2"}.get(pre, pre)
    merges = [tuple(m.split(" ")) for m in get("merges")]
    tokenizer = Tokenizer(models.BPE({t: i for i, t in enumerate(tokens)}, merges, ignore_merges=pre == "llama-bpe"))
    if pre == "qwen2":
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(PRE[pre] + [byte_level])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_tokens([AddedToken(t, special=ty in (2, 3), normalized=False)
                          for t, ty in zip(tokens, types) if ty in (2, 3, 4)])
    return tokenizer


def folder_reference(path):
    if (path / "tokenizer.json").exists():
        return Tokenizer.from_file(str(path / "tokenizer.json"))
    tokenizer = Tokenizer(models.BPE.from_file(str(path / "vocab.json"), str(path / "merges.txt")))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    if tokenizer.token_to_id("<|endoftext|>") is not None:
        tokenizer.add_special_tokens(["<|endoftext|>"])
    return tokenizer


def with_weights(path, into):
    """A folder as the program wants it, with the vocabulary of `path`, and no tensor."""
    for name in ("tokenizer.json", "tokenizer_config.json", "vocab.json", "merges.txt"):
        if (path / name).exists():
            (into / name).symlink_to((path / name).resolve())
    (into / "config.json").write_text(json.dumps({"model_type": "gpt2"}))
    (into / "model.safetensors").write_bytes(struct.pack("<Q", 2) + b"{}")
    return into


class Driver:
    def __init__(self, program, *args):
        self.args = [program, *map(str, args)]

    def run(self, texts):
        data = b"".join(struct.pack("<I", len(t)) + t for t in texts)
        done = subprocess.run(self.args, input=data, stdout=subprocess.PIPE, check=True)
        self.out, self.at = done.stdout, 0

    def u32(self):
        self.at += 4
        return struct.unpack_from("<I", self.out, self.at - 4)[0]

    def ids(self):
        n = self.u32()
        self.at += 4 * n
        return list(struct.unpack_from(f"<{n}i", self.out, self.at - 4 * n))

    def bytes(self):
        n = self.u32()
        self.at += n
        return self.out[self.at - n : self.at]


def byte_table():
    printable = [b for b in range(256) if 33 <= b <= 126 or 161 <= b <= 255 and b != 173]
    rest = [b for b in range(256) if b not in printable]
    return {**{b: chr(b) for b in printable}, **{b: chr(256 + i) for i, b in enumerate(rest)}}


def check_model(name, reference, driver_args, program, everything, n_special):
    """Counts of texts that differ: all with special tokens as text, the first n_special with them as tokens."""
    table = byte_table()
    text_like = reference.model.byte_fallback  # SentencePiece's, whose spaces do not all come back
    lacking = {b for b in range(256) if reference.token_to_id(table[b]) is None}
    added = reference.get_added_tokens_decoder().values()
    strips = any(t.lstrip or t.rstrip for t in added)  # what these take along does not come back
    wrong = 0
    for special in (False, True):
        reference.encode_special_tokens = not special
        texts = everything[:n_special] if special else everything
        encoded = [t.encode() for t in texts]
        driver = Driver(program, *driver_args, *(["special"] if special else []))
        driver.run(encoded)
        bad_ids = bad_bytes = bad_dropped = n_ids = bad_again = 0
        backs, firsts = [], []
        step = 4096
        for start in range(0, len(texts), step):
            batch = texts[start : start + step]
            for text, raw, want in zip(batch, encoded[start:], reference.encode_batch(batch, add_special_tokens=False)):
                ids, dropped, back = driver.ids(), driver.u32(), driver.bytes()
                firsts.append(ids)
                backs.append(back)
                n_ids += len(ids)
                if ids != want.ids:
                    bad_ids += 1
                    if bad_ids < 4:
                        print("differs:", ascii(text)[:300], ids[:60], want.ids[:60])
                if text_like:
                    kept = reference.decode(want.ids, skip_special_tokens=False).encode()
                    comparable = True
                else:
                    if reference.normalizer is not None:  # of both: at an added token nothing composes
                        raw = reference.normalizer.normalize_str(text).encode()
                        again = back.decode("utf-8", "replace")
                        back = reference.normalizer.normalize_str(again).encode()
                    kept = bytes(b for b in raw if b not in lacking)
                    # An added token brings its bytes back even where the vocabulary lacks them.
                    comparable = not strips and (not lacking or not any(special or not t.special for t in added))
                    bad_dropped += dropped != len(raw) - len(kept) and comparable
                if back != kept and comparable:
                    bad_bytes += 1
                    if bad_bytes < 4:
                        print("bytes:", ascii(text)[:300], back[:100], kept[:100])
        if not special and (text_like or not lacking) and not strips:  # ids, bytes, ids
            driver.run(backs)
            for first, back in zip(firsts, backs):
                again = driver.ids(), driver.u32(), driver.bytes()
                bad_again += first != again[0]
                if first != again[0] and bad_again < 4:
                    print("again:", back[:200], first[:60], again[0][:60])
        print(f"{name}, special tokens as {'tokens' if special else 'text'}: {len(texts)} texts, {n_ids} ids: "
              f"{bad_ids} differ in ids, {bad_bytes} in bytes, {bad_dropped} in bytes left out, "
              f"{bad_again} when encoded again")
        wrong += bad_ids + bad_bytes + bad_dropped + bad_again
    return wrong


def check_pieces(name, program, texts):
    pre = pre_tokenizers.Sequence(PRE[name])
    driver = Driver(program, "-p", name)
    driver.run([t.encode() for t in texts])
    bad = 0
    for text in texts:
        lengths = driver.ids()
        want = [len(text[a:b].encode()) for _, (a, b) in pre.pre_tokenize_str(text)]
        if lengths != want:
            bad += 1
            if bad < 4:
                print("differs:", name, ascii(text)[:300], lengths[:60], want[:60])
    print(f"pieces of {name}: {len(texts)} texts, {bad} differ")
    return bad


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", default=str(ROOT / "build/release/tests/token/driver"))
    parser.add_argument("--n", type=int, default=200000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--text", type=pathlib.Path, action="append", default=[])
    parser.add_argument("--gguf", action="append", default=[])
    parser.add_argument("--folder", type=pathlib.Path, action="append", default=[])
    parser.add_argument("--no-pieces", action="store_true", help="leave the pre-tokenizers alone")
    args = parser.parse_args()

    whole = [p.read_bytes().decode("utf-8", "replace") for p in args.text]
    lines = []
    for text in whole:
        split_text = text.splitlines(keepends=True)
        lines += ["".join(split_text[i : i + 8]) for i in range(0, len(split_text), 8)]
    print(f"{sum(len(t.encode()) for t in whole)} bytes of text in {len(whole)} files, {len(lines)} times eight lines")
    wrong = 0
    for path in args.gguf + args.folder:
        reference = gguf_reference(path) if isinstance(path, str) else folder_reference(path)
        added = [t.content for t in reference.get_added_tokens_decoder().values()]
        texts = hard_texts.random_texts(args.n, args.seed, added) + lines + whole
        with tempfile.TemporaryDirectory() as tmp:
            model = path if isinstance(path, str) else with_weights(path, pathlib.Path(tmp))
            wrong += check_model(pathlib.Path(path).name, reference, [model], args.program, texts, args.n // 4)
    # Every code point stands in tests/token/data/digests.h.
    seen = [] if not args.no_pieces else list(hard_texts.PATTERNS.values())
    for name, pattern in hard_texts.PATTERNS.items():
        if pattern in seen:  # as another that was checked
            continue
        seen.append(pattern)
        wrong += check_pieces(name, args.program, hard_texts.random_texts(args.n, args.seed + 1) + lines)
    return 1 if wrong else 0


sys.exit(main())
