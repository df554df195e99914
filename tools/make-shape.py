#!/usr/bin/env python3
"""Writes a GGUF of GPT-2 124M's shape with random weights: for measuring speed where real weights cannot be
had. Needs numpy and gguf (PyPI).

    tools/make-shape.py build/models/gpt2-f32.gguf F32
    tools/make-shape.py build/models/gpt2-q8_0.gguf Q8_0
"""
import argparse

import gguf
import numpy as np

N_LAYER, N_EMBD, N_HEAD, N_FF, N_CTX, N_VOCAB = 12, 768, 12, 3072, 1024, 50257


def byte_letters():
    """The letters that GPT-2's vocabulary writes bytes with."""
    plain = [b for b in range(256) if 33 <= b <= 126 or 161 <= b <= 172 or 174 <= b <= 255]
    rest = [b for b in range(256) if b not in plain]
    return [chr(b) for b in plain] + [chr(256 + i) for i in range(len(rest))]


def vocabulary():
    letters = byte_letters()
    pairs = [a + b for a in letters for b in letters]
    tokens = letters + pairs[: N_VOCAB - 1 - len(letters)] + ["<|endoftext|>"]
    merges = [f"{t[0]} {t[1]}" for t in tokens[len(letters):-1]]
    return tokens, merges


def tensors():
    """Name, shape and spread; norms are ones with zero bias."""
    yield "token_embd", (N_VOCAB, N_EMBD), 0.02
    yield "position_embd", (N_CTX, N_EMBD), 0.01
    for i in range(N_LAYER):
        for name, n_out, n_in in (("attn_qkv", 3 * N_EMBD, N_EMBD), ("attn_output", N_EMBD, N_EMBD),
                                  ("ffn_up", N_FF, N_EMBD), ("ffn_down", N_EMBD, N_FF)):
            yield f"blk.{i}.{name}", (n_out, n_in), 0.02
        yield f"blk.{i}.attn_norm", (N_EMBD,), None
        yield f"blk.{i}.ffn_norm", (N_EMBD,), None
    yield "output_norm", (N_EMBD,), None


def write(path, type_name):
    rng = np.random.default_rng(1)
    kind = gguf.GGMLQuantizationType[type_name]
    out = gguf.GGUFWriter(path, "gpt2")
    out.add_file_type(gguf.LlamaFileType.ALL_F32 if type_name == "F32" else gguf.LlamaFileType.MOSTLY_Q8_0)
    out.add_name("random weights of GPT-2 124M's shape")
    out.add_context_length(N_CTX)
    out.add_embedding_length(N_EMBD)
    out.add_block_count(N_LAYER)
    out.add_feed_forward_length(N_FF)
    out.add_head_count(N_HEAD)
    out.add_layer_norm_eps(1e-5)
    tokens, merges = vocabulary()
    out.add_tokenizer_model("gpt2")
    out.add_tokenizer_pre("gpt-2")
    out.add_token_list(tokens)
    out.add_token_types([gguf.TokenType.NORMAL] * (N_VOCAB - 1) + [gguf.TokenType.CONTROL])
    out.add_token_merges(merges)
    out.add_bos_token_id(N_VOCAB - 1)
    out.add_eos_token_id(N_VOCAB - 1)

    def matrix(name, data):
        if type_name == "F32" or data.ndim == 1 or name.startswith("position"):
            out.add_tensor(name, data)
        else:
            out.add_tensor(name, gguf.quants.quantize(data, kind), raw_dtype=kind)

    for name, shape, spread in tensors():
        if spread is None:
            matrix(f"{name}.weight", np.ones(shape, np.float32))
            matrix(f"{name}.bias", np.zeros(shape, np.float32))
            continue
        data = (spread * rng.standard_normal(shape)).astype(np.float32)
        matrix(f"{name}.weight", data)
        if name.startswith("blk."):
            matrix(f"{name}.bias", np.zeros(shape[0], np.float32))
        if name == "token_embd":
            matrix("output.weight", data)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path")
    parser.add_argument("type", choices=["F32", "Q8_0"])
    args = parser.parse_args()
    write(args.path, args.type)
