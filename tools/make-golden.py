#!/usr/bin/env python3
"""Writes tests/golden: tiny random models and the logits that they must give.

Every model is saved as a Hugging Face folder, read back by transformers in float64 with eager attention,
and asked for the logits of random ids. Some also become GGUF files, whose logits are those of the
dequantised weights. cases.txt lists them for tests/model/test_golden.c, a line each:

    <model> <ids.npy> <logits.npy> <stride> <float|quant>

where the logits are those of the last position and of every stride-th before it, ascending. The same
versions give the same files; to add a case, add a line to FOLDERS or GGUFS and run this again.
Needs numpy, torch, transformers, safetensors and gguf from PyPI.
"""
import copy
import json
import pathlib
import shutil
import tempfile
import zlib

import numpy as np
import safetensors.torch
import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.models.gpt2 import modeling_gpt2
from transformers.models.llama import modeling_llama

import gguf_convert

OUT = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden"


# ---- the models ----------------------------------------------------------------------------------

# Numbers that a reader could get wrong are far from common defaults, and large enough to be noticed.

def gpt2(n_embd, n_head, n_layer, **more):
    return dict(architectures=["GPT2LMHeadModel"], model_type="gpt2", n_embd=n_embd, n_head=n_head,
                n_layer=n_layer, n_positions=80, layer_norm_epsilon=1e-3, vocab_size=33,
                activation_function="gelu_new", bos_token_id=0, eos_token_id=0) | more


def llama(n_embd, n_head, n_head_kv, n_ff, **more):
    return dict(architectures=["LlamaForCausalLM"], model_type="llama", hidden_size=n_embd,
                num_attention_heads=n_head, num_key_value_heads=n_head_kv, intermediate_size=n_ff,
                num_hidden_layers=2, hidden_act="silu", rms_norm_eps=1e-3, max_position_embeddings=128,
                rope_parameters=dict(rope_type="default", rope_theta=1e4), vocab_size=33,
                bos_token_id=0, eos_token_id=0) | more


# Wavelengths 2π·θ^(2i/d) of these lie in all three ranges: kept, blended, and divided by the factor.
LLAMA3 = dict(factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=32)

# name: (config, stored type, tokens, stride, how it is saved)
FOLDERS = {
    "gpt2-tanh": (gpt2(10, 2, 2, vocab_size=259), "F16", 20, 1, []),  # head_dim 5; all 256 bytes
    "gpt2-erf": (gpt2(14, 2, 2, n_inner=30, activation_function="gelu", tie_word_embeddings=False),
                 "F32", 66, 1, ["bare", "masks"]),
    "gpt2-layer-scale": (gpt2(12, 3, 3, n_inner=20, scale_attn_by_inverse_layer_idx=True), "BF16", 66, 1,
                         ["merges.txt"]),
    "gpt2-unscaled": (gpt2(14, 2, 1, n_inner=17, scale_attn_weights=False,
                           activation_function="gelu_pytorch_tanh"), "F16", 66, 1, ["bare"]),
    "gpt2-long": (gpt2(12, 2, 2, n_inner=24, n_positions=304), "F16", 300, 1, []),
    "llama-plain": (llama(20, 2, 2, 22), "F32", 66, 1, ["masks"]),
    "llama-9-3": (llama(18, 9, 3, 30, head_dim=6, tie_word_embeddings=True), "BF16", 66, 1, []),
    "llama-8-2": (llama(16, 8, 2, 26, head_dim=10), "F16", 66, 1, []),
    "llama-one-kv": (llama(15, 5, 1, 21, head_dim=14, vocab_size=31), "BF16", 66, 1, []),
    "llama-biases": (llama(16, 4, 2, 19, attention_bias=True, mlp_bias=True), "F32", 66, 1, []),
    "llama-linear": (llama(16, 2, 1, 20, rope_theta=5e3, rope_parameters=None,
                           rope_scaling=dict(type="linear", factor=2.5)), "F16", 66, 1, []),
    "llama-linear-new": (llama(16, 4, 2, 20, rope_parameters=dict(
        rope_type="linear", rope_theta=1e4, factor=4.0)), "F16", 66, 1, []),
    "llama-3": (llama(15, 3, 1, 20, head_dim=12, rope_parameters=dict(
        rope_type="llama3", rope_theta=5e3, **LLAMA3)), "BF16", 66, 1, []),
    "llama-3-old": (llama(18, 2, 1, 20, head_dim=14, rope_theta=1e3, rope_parameters=None,
                          rope_scaling=dict(rope_type="llama3", **LLAMA3)), "F16", 66, 1, []),
    "llama-shards": (llama(20, 5, 5, 22, mlp_bias=True), "mixed", 66, 1, ["shards"]),
    "llama-long": (llama(12, 4, 2, 16, head_dim=6, max_position_embeddings=2560), "F16", 2400, 97, []),
}

FLOATS, QUANTS = ["F32", "F16", "BF16"], ["Q8_0", "Q4_0", "Q4_1"]
# The float types share one reference: these weights are representable in all three.
GGUFS = {
    "gpt2": (gpt2(32, 4, 1, n_inner=96), ["F16", "Q4_0"]),
    "llama": (llama(32, 4, 2, 32, num_hidden_layers=1, head_dim=16, attention_bias=True,
                    rope_parameters=dict(rope_type="llama3", rope_theta=5e3, **LLAMA3)), FLOATS + QUANTS),
    "llama-wide": (llama(64, 8, 2, 96, tie_word_embeddings=True, rope_parameters=dict(
        rope_type="linear", rope_theta=1e4, factor=4.0)), QUANTS),
}


# ---- float64 all the way: transformers takes RMSNorm and Llama's softmax in float32 -----------------

def rms_norm(self, x):
    return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)


def attention(module, q, k, v, mask, scaling, **more):
    k, v = (modeling_llama.repeat_kv(x, module.num_key_value_groups) for x in (k, v))
    return modeling_gpt2.eager_attention_forward(module, q, k, v, mask, scaling)


modeling_llama.LlamaRMSNorm.forward = rms_norm
modeling_llama.eager_attention_forward = attention


def reference(model, ids):
    with torch.no_grad():
        out = model(torch.from_numpy(ids.astype(np.int64))[None], output_attentions=True)
    logits = out.logits[0]
    peak = torch.stack([a[0, :, 1:].amax(-1).mean() for a in out.attentions]).mean()
    print(f"  largest |logit| {logits.abs().max():.1f}, mean largest attention weight {peak:.2f}")
    return logits.numpy().astype(np.float32)


# ---- weights ---------------------------------------------------------------------------------------

def random_weight(name, shape, tied, rng):
    """Scaled so that attention is peaked and logits reach about 10; no norm or bias is 1 or 0."""
    w = torch.randn(shape, generator=rng)
    if name.endswith("bias"):
        return 0.3 * w
    if len(shape) == 1:
        return 1 + 0.3 * w
    if name.endswith(("wte.weight", "wpe.weight", "embed_tokens.weight")):
        return w * (3 / shape[1] ** 0.5 if tied else 1)
    n_in = shape[0] if name.endswith(gguf_convert.CONV1D) else shape[1]
    w /= n_in ** 0.5
    if name.endswith("c_attn.weight"):
        w[:, : 2 * n_in] *= 2
    return w * {"q_proj": 2, "k_proj": 2, "lm_head": 3}.get(name.split(".")[-2], 1)


def random_weights(name, spec):
    config = AutoConfig.for_model(**copy.deepcopy(spec))
    rng = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    tied = config.tie_word_embeddings
    shapes = AutoModelForCausalLM.from_config(config).state_dict()
    return {k: random_weight(k, w.shape, tied, rng)
            for k, w in shapes.items() if not (tied and k == "lm_head.weight")}


def in_type(weights, stored):
    """Rounds to the stored type; "mixed" takes the three in turn, and norms in float32."""
    kinds = dict(F32=torch.float32, F16=torch.float16, BF16=torch.bfloat16)
    if stored != "mixed":
        return {k: w.to(kinds[stored]) for k, w in weights.items()}
    order = list(kinds.values())
    return {k: w if w.ndim == 1 else w.to(order[i % 3]) for i, (k, w) in enumerate(weights.items())}


# ---- files -----------------------------------------------------------------------------------------

def byte_characters():
    """The characters that spell bytes in a byte-level vocabulary, common ones first."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in printable]
    spelling = {b: chr(b) for b in printable} | {b: chr(256 + i) for i, b in enumerate(others)}
    common = b" abcdefghijklmnopqrstuvwxyz.\n"
    return [spelling[b] for b in [*common, *(b for b in range(256) if b not in common)]]


def vocabulary(n_vocab):
    """<|endoftext|>, two merges, and as many bytes as fit."""
    tokens = ["<|endoftext|>", *byte_characters()[: n_vocab - 3], "th", "the"]
    return {t: i for i, t in enumerate(tokens)}, [["t", "h"], ["th", "e"]]


def write_tokenizer(folder, n_vocab, as_merges):
    vocab, merges = vocabulary(n_vocab)
    if as_merges:
        (folder / "vocab.json").write_text(json.dumps(vocab, separators=(",", ":")) + "\n")
        (folder / "merges.txt").write_text("#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in merges))
        return
    level = dict(type="ByteLevel", add_prefix_space=False, trim_offsets=True, use_regex=True)
    end = dict(id=0, content="<|endoftext|>", single_word=False, lstrip=False, rstrip=False,
               normalized=False, special=True)
    bpe = dict(type="BPE", dropout=None, unk_token=None, continuing_subword_prefix=None,
               end_of_word_suffix=None, fuse_unk=False, byte_fallback=False, ignore_merges=False,
               vocab=vocab, merges=merges)
    text = json.dumps(dict(version="1.0", truncation=None, padding=None, added_tokens=[end],
                           normalizer=None, pre_tokenizer=level, post_processor=None, decoder=level,
                           model=bpe), separators=(",", ":"))
    (folder / "tokenizer.json").write_text(text + "\n")


def write_shards(folder, weights):
    names = sorted(weights)
    parts = [names[0::2], names[1::2]]
    index = {}
    for i, part in enumerate(parts, 1):
        file = f"model-{i:05}-of-{len(parts):05}.safetensors"
        safetensors.torch.save_file({k: weights[k] for k in part}, folder / file, {"format": "pt"})
        index.update({k: file for k in part})
    total = sum(w.numel() * w.element_size() for w in weights.values())
    text = json.dumps(dict(metadata=dict(total_size=total), weight_map=index), indent=1, sort_keys=True)
    (folder / "model.safetensors.index.json").write_text(text + "\n")


def write_folder(folder, config, weights, how):
    folder.mkdir(parents=True)
    config = {k: v for k, v in config.items() if v is not None}
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    write_tokenizer(folder, config["vocab_size"], "merges.txt" in how)
    if "bare" in how:  # the names of a checkpoint that was saved without its head's class
        weights = {k.removeprefix("transformer."): w for k, w in weights.items()}
    if "masks" in how:  # buffers of old checkpoints, which nobody needs any more
        n = 4
        if config["model_type"] == "gpt2":
            weights = weights | {"h.0.attn.bias": torch.ones(1, 1, n, n).tril(),
                                 "h.0.attn.masked_bias": torch.tensor(-1e4)}
        else:
            weights = weights | {"model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(n)}
    if "shards" in how:
        write_shards(folder, weights)
    else:
        safetensors.torch.save_file(weights, folder / "model.safetensors", {"format": "pt"})


def read_folder(folder):
    model, info = AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float64, attn_implementation="eager", output_loading_info=True)
    assert not info["missing_keys"], info
    return model.eval()


def random_ids(name, n_tokens, n_vocab):
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    return rng.integers(0, n_vocab, n_tokens).astype(np.int32)


# ---- cases -----------------------------------------------------------------------------------------

def make_folder(name):
    spec, stored, n_tokens, stride, how = FOLDERS[name]
    print(name)
    folder = OUT / name
    write_folder(folder, spec, in_type(random_weights(name, spec), stored), how)
    ids = random_ids(name, n_tokens, spec["vocab_size"])
    logits = reference(read_folder(folder), ids)
    np.save(folder / "ids.npy", ids)
    np.save(folder / "logits.npy", logits[(n_tokens - 1) % stride :: stride])
    return [f"{name} {name}/ids.npy {name}/logits.npy {stride} float"]


def make_ggufs(name, n_tokens=66):
    spec, types = GGUFS[name]
    lines = []
    folder = OUT / "gguf"
    folder.mkdir(exist_ok=True)
    ids = random_ids(name, n_tokens, spec["vocab_size"])
    np.save(folder / f"{name}.ids.npy", ids)
    with tempfile.TemporaryDirectory() as scratch:
        source = pathlib.Path(scratch) / "model"
        weights = random_weights(name, spec)
        weights = {k: w.half().bfloat16().float() for k, w in weights.items()}
        write_folder(source, spec, weights, [])
        exact = reference(read_folder(source), ids)
        for t in types:
            print(name, t)
            file = f"gguf/{name}.{t.lower()}.gguf"
            gguf_convert.convert(source, OUT / file, t, name=f"golden {name}", license="mit")
            logits = reference(gguf_convert.load(OUT / file, torch.float64), ids)
            if t in FLOATS:
                assert np.abs(logits - exact).max() < 2e-6 * np.abs(exact).max(), t
                logits = exact
            kind = "float" if t in FLOATS else "quant"
            out = f"gguf/{name}.{kind if t in FLOATS else t.lower()}.logits.npy"
            np.save(OUT / out, logits)
            lines.append(f"{file} gguf/{name}.ids.npy {out} 1 {kind}")
    return lines


def main():
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    lines = [line for name in FOLDERS for line in make_folder(name)]
    lines += [line for name in GGUFS for line in make_ggufs(name)]
    (OUT / "cases.txt").write_text("".join(line + "\n" for line in lines))


main()
