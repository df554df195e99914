#!/usr/bin/env python3
"""Turns a Hugging Face folder (gpt2 or llama) into a GGUF file, laid out as llama.cpp lays it out.

    tools/gguf_convert.py FOLDER OUT.gguf --type Q8_0 [--name NAME] [--license TEXT] [--bos] [--context N]

load(), for the other scripts here, is the way back: a transformers model with a GGUF's dequantised
weights. Needs numpy, torch, transformers, safetensors and gguf from PyPI.
"""
import argparse
import json
import pathlib

import gguf
import numpy as np
import torch
from transformers import AutoModelForCausalLM, GPT2Config, LlamaConfig

TYPES = {t.name: t for t in gguf.GGMLQuantizationType if t.name in "F32 F16 BF16 Q8_0 Q4_0 Q4_1".split()}
FILE_TYPES = {name: gguf.LlamaFileType[("ALL_" if name == "F32" else "MOSTLY_") + name] for name in TYPES}
ARCH = {"gpt2": gguf.MODEL_ARCH.GPT2, "llama": gguf.MODEL_ARCH.LLAMA}
CONV1D = ("c_attn.weight", "c_proj.weight", "c_fc.weight")  # [n_in, n_out]: the other way round


def gguf_name(arch, n_layer, name):
    names = gguf.get_tensor_name_map(ARCH[arch], n_layer)
    return names.get_name(name, try_suffixes=(".weight", ".bias"))


def rotated_heads(config, name):
    """Heads of a matrix whose rows a GGUF permutes; 0 for all others."""
    if ".q_proj." in name:
        return config.num_attention_heads
    return config.num_key_value_heads if ".k_proj." in name else 0


def permute(w, n_head, back=False):
    """The halves of each head that rotate together (rows i and i + d/2) become neighbours, or back."""
    split = (n_head, -1, 2) if back else (n_head, 2, w.shape[0] // n_head // 2)
    return w.reshape(*split, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)


def pre_tokenizer(tokenizer):
    """The name that llama.cpp gives to the pre-tokenizer of a tokenizer.json."""
    pre = tokenizer["pre_tokenizer"]
    if pre["type"] == "ByteLevel" and pre["use_regex"]:
        return "gpt-2"
    if pre["type"] == "Sequence" and [p["type"] for p in pre["pretokenizers"]] == ["Digits", "ByteLevel"]:
        return "smollm"
    raise SystemExit("no name known for this pre-tokenizer")


def add_tokenizer(writer, folder, config, add_bos):
    tokenizer = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    vocab = dict(tokenizer["model"]["vocab"])
    special = {t["id"] for t in tokenizer["added_tokens"] if t["special"]}
    vocab.update((t["content"], t["id"]) for t in tokenizer["added_tokens"])
    text = {i: t for t, i in vocab.items()}
    ids = range(config.vocab_size)
    kind = gguf.TokenType
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre_tokenizer(tokenizer))
    writer.add_token_list([text.get(i, f"[PAD{i}]") for i in ids])
    writer.add_token_types([kind.CONTROL if i in special else kind.NORMAL if i in text else kind.UNUSED
                            for i in ids])
    merges = tokenizer["model"]["merges"]
    writer.add_token_merges([m if isinstance(m, str) else " ".join(m) for m in merges])
    writer.add_bos_token_id(config.bos_token_id)
    writer.add_eos_token_id(config.eos_token_id)
    writer.add_add_bos_token(add_bos)


def add_config(writer, config, n_ctx):
    writer.add_context_length(n_ctx or config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_head_count(config.num_attention_heads)
    if config.model_type == "gpt2":
        writer.add_feed_forward_length(config.n_inner or 4 * config.n_embd)
        writer.add_layer_norm_eps(config.layer_norm_epsilon)
        return
    rope = config.rope_parameters
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_key_length(config.head_dim)
    writer.add_value_length(config.head_dim)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(config.vocab_size)
    writer.add_rope_dimension_count(config.head_dim)
    writer.add_rope_freq_base(rope["rope_theta"])
    if rope["rope_type"] == "linear":
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(rope["factor"])
    elif rope["rope_type"] not in ("default", "llama3"):
        raise SystemExit(f"rope type {rope['rope_type']} is not known here")


def default_inv_freq(config):
    dim = torch.arange(0, config.head_dim, 2, dtype=torch.float32)
    return 1.0 / (config.rope_parameters["rope_theta"] ** (dim / config.head_dim))


def convert(folder, out, type_name, name=None, license=None, add_bos=False, n_ctx=None):
    folder = pathlib.Path(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    config = model.config
    arch = config.model_type
    writer = gguf.GGUFWriter(out, arch)
    if name:
        writer.add_name(name)
    if license:
        writer.add_license(license)
    writer.add_file_type(FILE_TYPES[type_name])
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    add_config(writer, config, n_ctx)
    add_tokenizer(writer, folder, config, add_bos)
    if arch == "llama" and config.rope_parameters["rope_type"] == "llama3":
        factors = default_inv_freq(config) / model.model.rotary_emb.inv_freq
        writer.add_tensor("rope_freqs.weight", factors.numpy())
    for hf_name, w in model.state_dict().items():
        if hf_name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        w = w.numpy()
        w = w.T if hf_name.endswith(CONV1D) else w
        if n_head := rotated_heads(config, hf_name):
            w = permute(w, n_head)
        small = w.ndim == 1 or ".wpe." in hf_name  # stays in F32
        t = TYPES["F32" if small else type_name]
        data = gguf.quants.quantize(np.ascontiguousarray(w, np.float32), t)
        writer.add_tensor(gguf_name(arch, config.num_hidden_layers, hf_name), data, raw_dtype=t)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def read_config(reader):
    def get(key, default=None):
        field = reader.fields.get(key)
        return default if field is None else field.contents()

    arch = get("general.architecture")
    tied = not any(t.name == "output.weight" for t in reader.tensors)
    n_vocab = next(int(t.shape[1]) for t in reader.tensors if t.name == "token_embd.weight")
    n_embd, n_head = get(f"{arch}.embedding_length"), get(f"{arch}.attention.head_count")
    common = dict(vocab_size=n_vocab, hidden_size=n_embd, num_hidden_layers=get(f"{arch}.block_count"),
                  num_attention_heads=n_head, max_position_embeddings=get(f"{arch}.context_length"),
                  tie_word_embeddings=tied, attn_implementation="eager",
                  bos_token_id=get("tokenizer.ggml.bos_token_id"),
                  eos_token_id=get("tokenizer.ggml.eos_token_id"))
    if arch == "gpt2":
        return GPT2Config(n_inner=get("gpt2.feed_forward_length"),
                          layer_norm_epsilon=get("gpt2.attention.layer_norm_epsilon"), **common)
    names = {t.name for t in reader.tensors}
    rope = {"rope_type": "default", "rope_theta": get("llama.rope.freq_base", 10000.0)}
    if get("llama.rope.scaling.type", "none") == "linear":
        rope.update(rope_type="linear", factor=get("llama.rope.scaling.factor"))
    return LlamaConfig(intermediate_size=get("llama.feed_forward_length"),
                       num_key_value_heads=get("llama.attention.head_count_kv", n_head),
                       head_dim=get("llama.attention.key_length", n_embd // n_head),
                       rms_norm_eps=get("llama.attention.layer_norm_rms_epsilon"), rope_parameters=rope,
                       attention_bias="blk.0.attn_q.bias" in names,
                       mlp_bias="blk.0.ffn_up.bias" in names, **common)


def load(path, dtype):
    """A transformers model of the GGUF at `path`: its weights dequantised, then held in `dtype`."""
    reader = gguf.GGUFReader(path)
    config = read_config(reader)
    tensors = {t.name: t for t in reader.tensors}
    model = AutoModelForCausalLM.from_config(config, dtype=dtype).eval()
    for hf_name, w in model.state_dict().items():
        if hf_name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        t = tensors[gguf_name(config.model_type, config.num_hidden_layers, hf_name)]
        data = gguf.quants.dequantize(t.data, t.tensor_type).astype(np.float32)
        if n_head := rotated_heads(config, hf_name):
            data = permute(data, n_head, back=True)
        w.copy_(torch.from_numpy(data.T if hf_name.endswith(CONV1D) else data))
    if "rope_freqs.weight" in tensors:
        rotary = model.model.rotary_emb
        factors = torch.tensor(tensors["rope_freqs.weight"].data.tolist())
        rotary.inv_freq = default_inv_freq(config) / factors
        rotary.original_inv_freq = rotary.inv_freq
    return model


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder")
    parser.add_argument("out")
    parser.add_argument("--type", choices=TYPES, default="F16")
    parser.add_argument("--name", help="general.name")
    parser.add_argument("--license", help="general.license")
    parser.add_argument("--bos", action="store_true", help="texts begin with the BOS token")
    parser.add_argument("--context", type=int, help="positions it was trained on, where config.json allows more")
    args = parser.parse_args()
    convert(args.folder, args.out, args.type, args.name, args.license, args.bos, args.context)


if __name__ == "__main__":
    main()
