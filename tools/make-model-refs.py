#!/usr/bin/env python3
"""Writes the reference that tests/models/run holds the engine to, on a real model.

    tools/make-model-refs.py SmolLM2-135M-Instruct.Q4_1.gguf TEXT > tests/models/smollm2.json

transformers in float32 over the file's dequantised weights: greedy continuations, and the mean negative
log-likelihood of the first tokens of TEXT, an English text in the public domain. The tokenizer is built
from the file's vocabulary and merges. A continuation in which the two best logits nearly tie would
depend on the order of summation: it is refused, and another prompt has to be found.
Needs numpy, torch, transformers, tokenizers and gguf from PyPI.
"""
import hashlib
import json
import pathlib
import sys

import gguf
import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

import gguf_convert

PROMPTS = ["The capital of France is", "Once upon a time"]
N_NEW, N_TEXT = 40, 2048


def tokenizer(path):
    fields = gguf.GGUFReader(path).fields
    get = {key: fields[f"tokenizer.ggml.{key}"].contents() for key in ("tokens", "merges", "token_type", "pre")}
    assert get["pre"] == "smollm", get["pre"]
    vocab = {t: i for i, t in enumerate(get["tokens"])}
    tok = Tokenizer(models.BPE(vocab, [tuple(m.split(" ")) for m in get["merges"]]))
    tok.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                                 pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tok.decoder = decoders.ByteLevel()
    control = [t for t, kind in zip(get["tokens"], get["token_type"]) if kind == gguf.TokenType.CONTROL]
    tok.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in control])
    return tok


def continuation(model, tok, prompt):
    ids = tok.encode(prompt).ids
    out = model.generate(torch.tensor([ids]), max_new_tokens=N_NEW, do_sample=False,
                         return_dict_in_generate=True, output_logits=True)
    new = out.sequences[0, len(ids):].tolist()
    best, second = torch.stack([step[0].topk(2).values for step in out.logits]).T
    gap = float((best - second).min())
    assert gap > 1e-3, f"{prompt!r}: a near tie, {gap:.1e}"
    return dict(prompt=prompt, prompt_ids=ids, ids=new, text=tok.decode(new), smallest_gap=round(gap, 4))


def mean_nll(model, ids):
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0, :-1]
    wanted = logits.gather(1, torch.tensor(ids[1:])[:, None])[:, 0].double()
    return float(torch.stack([row.double().logsumexp(0) for row in logits]).sub(wanted).mean())


def main():
    path, text = sys.argv[1:]
    model = gguf_convert.load(path, torch.float32)
    tok = tokenizer(path)
    ids = tok.encode(pathlib.Path(text).read_text("utf-8")[: 16 * N_TEXT]).ids[:N_TEXT]
    digest = hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()
    json.dump(dict(file=pathlib.Path(path).name, sha256=digest,
                   greedy=[continuation(model, tok, p) for p in PROMPTS],
                   nll=dict(mean=mean_nll(model, ids), ids=ids)), sys.stdout, separators=(",", ":"))
    print()


main()
