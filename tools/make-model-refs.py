#!/usr/bin/env python3
"""Writes the references that tests/models/run holds the engine to, on real models.

    tools/make-model-refs.py SmolLM2-135M-Instruct.Q4_1.gguf TEXT > tests/models/smollm2.json
    tools/make-model-refs.py gemma-3-270m-q4_k_m.gguf TEXT > tests/models/gemma3.json

transformers in float32 over the file's dequantised weights: greedy continuations, and the mean negative
log-likelihood of the first tokens of TEXT, an English text in the public domain. The tokenizer is built
from the file's vocabulary and its merges or scores. A continuation in which the two best logits nearly
tie would depend on the order of summation: it is refused, and another prompt has to be found.
Needs numpy, torch, transformers, tokenizers and gguf from PyPI.
"""
import hashlib
import json
import pathlib
import sys

import gguf
import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers

import gguf_convert

PROMPTS = ["The capital of France is", "Once upon a time"]
N_NEW, N_TEXT = 40, 2048


def byte_level(get):
    tok = Tokenizer(models.BPE({t: i for i, t in enumerate(get("tokens"))},
                               [tuple(m.split(" ")) for m in get("merges")]))
    assert get("pre") == "smollm", get("pre")
    tok.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                                 pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tok.decoder = decoders.ByteLevel()
    return tok


def sentencepiece(get):
    """Of the pairs at hand the one that makes the token of the best score is merged first."""
    tokens, scores = get("tokens"), get("scores")
    rank = {t: i for i, t in enumerate(tokens)}
    pairs = [(-scores[i], i, t[:k], t[k:]) for i, t in enumerate(tokens) for k in range(1, len(t))
             if t[:k] in rank and t[k:] in rank]
    tok = Tokenizer(models.BPE(rank, [(a, b) for _, _, a, b in sorted(pairs)], byte_fallback=True,
                               fuse_unk=True, unk_token=tokens[get("unknown_token_id")]))
    assert get("add_space_prefix") is False
    tok.normalizer = normalizers.Replace(" ", "▁")
    tok.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    return tok


def tokenizer(path):
    """With what begins a text."""
    fields = gguf.GGUFReader(path).fields

    def get(key):
        return fields[f"tokenizer.ggml.{key}"].contents()

    tok = dict(gpt2=byte_level, llama=sentencepiece)[get("model")](get)
    control = [t for t, kind in zip(get("tokens"), get("token_type")) if kind == gguf.TokenType.CONTROL]
    tok.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in control])
    bos = "tokenizer.ggml.add_bos_token" in fields and get("add_bos_token")
    return tok, [get("bos_token_id")] if bos else []


def continuation(model, tok, begin, prompt):
    ids = begin + tok.encode(prompt).ids
    out = model.generate(torch.tensor([ids]), max_new_tokens=N_NEW, do_sample=False,
                         return_dict_in_generate=True, output_logits=True)
    new = out.sequences[0, len(ids):].tolist()
    best, second = torch.stack([step[0].topk(2).values for step in out.logits]).T
    gap = float((best - second).min())
    assert gap > 1e-3, f"{prompt!r}: a near tie, {gap:.1e}"
    return dict(prompt=prompt, prompt_ids=ids, ids=new, text=tok.decode(new), smallest_gap=round(gap, 4))


def mean_nll(model, ids, at_once=64):
    """A few rows of logits at a time: all of them would be large."""
    total = 0.0
    with torch.no_grad():
        hidden = model.base_model(torch.tensor([ids])).last_hidden_state[0, :-1]
        for rows, wanted in zip(hidden.split(at_once), torch.tensor(ids[1:]).split(at_once)):
            logits = model.get_output_embeddings()(rows).double()
            total += float(logits.logsumexp(1).sub(logits.gather(1, wanted[:, None])[:, 0]).sum())
    return total / (len(ids) - 1)


def main():
    path, text = sys.argv[1:]
    model = gguf_convert.load(path, torch.float32)
    tok, begin = tokenizer(path)
    ids = (begin + tok.encode(pathlib.Path(text).read_text("utf-8")[: 16 * N_TEXT]).ids)[:N_TEXT]
    digest = hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()
    json.dump(dict(file=pathlib.Path(path).name, sha256=digest,
                   greedy=[continuation(model, tok, begin, p) for p in PROMPTS],
                   nll=dict(mean=mean_nll(model, ids), ids=ids)), sys.stdout, separators=(",", ":"))
    print()


main()
