#!/usr/bin/env python3
"""Turns a Hugging Face folder into a GGUF file, laid out as llama.cpp lays it out.

    tools/gguf_convert.py FOLDER OUT.gguf --type Q8_0 [--name NAME] [--license TEXT] [--bos] [--context N]

The architectures are rows of ARCHS. load(), for the other scripts here, is the way back: a transformers
model with a GGUF's dequantised weights. Needs numpy, torch, transformers, safetensors and gguf from PyPI.
"""
import argparse
import json
import math
import pathlib
import re
from typing import Callable, NamedTuple

import gguf
import numpy as np
import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM

# Of these the gguf package encodes only the first nine: the rest needs an `encode`.
TYPES = {t: gguf.GGMLQuantizationType[t] for t in
         "F32 F16 BF16 Q8_0 Q4_0 Q4_1 Q5_0 Q5_1 MXFP4 Q2_K Q3_K Q4_K Q5_K Q6_K IQ4_NL IQ4_XS".split()}
# Files whose experts have another type than the rest: (experts, rest).
MIXTURES = {"MXFP4_MOE": ("MXFP4", "Q8_0")}
# What stands in for a type of 256-wide blocks where rows are narrower.
NARROW = dict(Q2_K="Q4_0", Q3_K="Q4_0", Q4_K="Q5_0", Q5_K="Q5_1", Q6_K="Q8_0", IQ4_XS="IQ4_NL")
FILE_TYPES = {"F32": "ALL_F32", "Q3_K": "MOSTLY_Q3_K_S", "Q4_K": "MOSTLY_Q4_K_S", "Q5_K": "MOSTLY_Q5_K_S"}
CONV1D = ("c_attn.weight", "c_proj.weight", "c_fc.weight")  # gpt2's are [n_in, n_out]: the other way round


# ---- layouts: what a GGUF holds of a transformers tensor, and the way back -------------------------

class Layout(NamedTuple):
    match: str             # of the whole transformers name
    names: tuple           # the names to look up for the GGUF's tensors, one or several
    there: Callable        # (config, name, array) -> arrays
    back: Callable         # (config, name, arrays) -> array


def same(config, name, w):
    return [w]


def permute(w, n_head, back=False):
    """The halves of each head that rotate together (rows i and i + d/2) become neighbours, or back."""
    split = (n_head, -1, 2) if back else (n_head, 2, w.shape[0] // n_head // 2)
    return w.reshape(*split, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)


def rotated_heads(config, name):
    return config.num_attention_heads if ".q_proj." in name else config.num_key_value_heads


ROTATED = Layout(r"(.*\.[qk]_proj\..*)", (r"\1",),
                 lambda c, name, w: [permute(w, rotated_heads(c, name))],
                 lambda c, name, parts: permute(parts[0], rotated_heads(c, name), back=True))
TRANSPOSED = Layout(r"(.*(?:c_attn|c_proj|c_fc)\.weight)", (r"\1",),
                    lambda c, name, w: [w.T], lambda c, name, parts: parts[0].T)
PLUS_ONE = Layout(r"(.*norm\.weight)", (r"\1",),
                  lambda c, name, w: [w + 1], lambda c, name, parts: parts[0] - 1)


def regroup(w, outer, inner):
    """Rows in `outer` groups of `inner`, a like number each: the other way round."""
    return w.reshape(outer, inner, -1, *w.shape[1:]).swapaxes(0, 1).reshape(w.shape)


# Q, K and V of each head one below the other become all of Q, all of K, all of V.
HEADWISE_QKV = Layout(r"(.*\.query_key_value\..*)", (r"\1",),
                      lambda c, name, w: [regroup(w, c.num_attention_heads, 3)],
                      lambda c, name, parts: regroup(parts[0], 3, c.num_attention_heads))


def transposed(w):
    return w.swapaxes(1, 2)


def in_turns(parts):
    """[n][rows] of both: a row of the one, a row of the other."""
    return np.stack(parts, 2).reshape(len(parts[0]), -1, *parts[0].shape[2:])


# gpt_oss: [n_in, n_out] for each expert, gate and up in turns; biases are [n_expert, n_out].
INTERLEAVED_EXPERTS = (
    Layout(r"(.*\.experts)\.gate_up_proj", (r"\1.gate_proj.weight", r"\1.up_proj.weight"),
           lambda c, name, w: [transposed(w)[:, 0::2], transposed(w)[:, 1::2]],
           lambda c, name, parts: transposed(in_turns(parts))),
    Layout(r"(.*\.experts)\.gate_up_proj_bias", (r"\1.gate_proj.bias", r"\1.up_proj.bias"),
           lambda c, name, w: [w[:, 0::2], w[:, 1::2]], lambda c, name, parts: in_turns(parts)),
    Layout(r"(.*\.experts)\.down_proj", (r"\1.down_proj.weight",),
           lambda c, name, w: [transposed(w)], lambda c, name, parts: transposed(parts[0])),
    Layout(r"(.*\.experts)\.down_proj_bias", (r"\1.down_proj.bias",), same, lambda c, name, parts: parts[0]))
# The others: [n_out, n_in] for each expert, gate above up.
STACKED_EXPERTS = (
    Layout(r"(.*\.experts)\.gate_up_proj", (r"\1.gate_proj.weight", r"\1.up_proj.weight"),
           lambda c, name, w: np.split(w, 2, 1), lambda c, name, parts: np.concatenate(parts, 1)),
    Layout(r"(.*\.experts)\.down_proj", (r"\1.down_proj.weight",), same, lambda c, name, parts: parts[0]))
SINKS = Layout(r"(.*\.sinks)", (r"\1.weight",), same, lambda c, name, parts: parts[0])
PLAIN = Layout(r"(.*)", (r"\1",), same, lambda c, name, parts: parts[0])


# ---- architectures ---------------------------------------------------------------------------------

class Arch(NamedTuple):
    name: str              # general.architecture
    keys: dict             # attribute of the transformers configuration: key, or keys, behind "<name>."
    layouts: tuple = ()    # the first that matches a tensor's name counts
    implied: dict = {}     # attributes that follow from what was read; functions of the configuration so far
    rope: str = "theta"    # what is written: "theta", with scaling (else it is 10000), "n_rot" (else head_dim)


COMMON = dict(max_position_embeddings="context_length", hidden_size="embedding_length",
              num_hidden_layers="block_count", num_attention_heads="attention.head_count")
FF = dict(intermediate_size="feed_forward_length")
KV = dict(num_key_value_heads="attention.head_count_kv")
HEAD = dict(head_dim=("attention.key_length", "attention.value_length"))
RMS = dict(rms_norm_eps="attention.layer_norm_rms_epsilon")
LN = dict(layer_norm_eps="attention.layer_norm_epsilon")
WINDOW = dict(sliding_window="attention.sliding_window")
VOCAB = dict(vocab_size="vocab_size")
EXPERTS = dict(num_local_experts="expert_count", num_experts_per_tok="expert_used_count")
NO_PAD = dict(pad_token_id=lambda c: None)  # where the class has a default that tiny vocabularies lack

# by model_type; to add one, add a row
ARCHS = {
    "gpt2": Arch("gpt2", COMMON | dict(
        n_inner="feed_forward_length", layer_norm_epsilon="attention.layer_norm_epsilon"),
        (TRANSPOSED,), rope=None),
    "llama": Arch("llama", COMMON | FF | KV | HEAD | RMS | VOCAB, (ROTATED,), rope="n_rot theta"),
    "qwen2": Arch("qwen2", COMMON | FF | KV | RMS),
    "qwen3": Arch("qwen3", COMMON | FF | KV | HEAD | RMS),
    "gemma2": Arch("gemma2", COMMON | FF | KV | RMS | HEAD | WINDOW | dict(
        attn_logit_softcapping="attn_logit_softcapping", final_logit_softcapping="final_logit_softcapping"),
        (PLUS_ONE,), dict(query_pre_attn_scalar=lambda c: c["head_dim"]), rope=""),
    "gemma3_text": Arch("gemma3", COMMON | FF | KV | RMS | HEAD | WINDOW | dict(
        final_logit_softcapping="final_logit_softcapping"), (PLUS_ONE,),
        dict(query_pre_attn_scalar=lambda c: c["head_dim"])),
    "phi3": Arch("phi3", COMMON | FF | KV | RMS | WINDOW | dict(
        original_max_position_embeddings="rope.scaling.original_context_length"), implied=NO_PAD,
        rope="n_rot theta"),
    "smollm3": Arch("smollm3", COMMON | FF | KV | RMS | VOCAB, (ROTATED,), NO_PAD, rope="n_rot theta"),
    "olmo2": Arch("olmo2", COMMON | FF | KV | RMS, implied=NO_PAD),
    "gpt_neox": Arch("gptneox", COMMON | FF | LN | dict(use_parallel_residual="use_parallel_residual"),
                     (HEADWISE_QKV,), rope="n_rot"),
    "mixtral": Arch("llama", COMMON | FF | KV | HEAD | RMS | VOCAB | EXPERTS, (ROTATED, *STACKED_EXPERTS),
                    rope="n_rot theta"),
    "qwen3_moe": Arch("qwen3moe", COMMON | FF | KV | HEAD | RMS | EXPERTS | dict(
        moe_intermediate_size="expert_feed_forward_length"), STACKED_EXPERTS,
        dict(norm_topk_prob=lambda c: True)),
    "gemma": Arch("gemma", COMMON | FF | KV | HEAD | RMS, (PLUS_ONE,), rope=""),
    "phi": Arch("phi2", COMMON | FF | KV | LN, rope="n_rot"),
    "stablelm": Arch("stablelm", COMMON | FF | KV | LN | dict(use_parallel_residual="use_parallel_residual"),
                     rope="n_rot"),
    "starcoder2": Arch("starcoder2", COMMON | FF | KV | dict(norm_epsilon="attention.layer_norm_epsilon")),
    "granite": Arch("granite", COMMON | FF | KV | RMS | VOCAB | dict(
        attention_multiplier="attention.scale", embedding_multiplier="embedding_scale",
        residual_multiplier="residual_scale", logits_scaling="logit_scale"), (ROTATED,), rope="n_rot theta"),
    "gpt_oss": Arch("gpt-oss", COMMON | FF | KV | RMS | HEAD | WINDOW | EXPERTS | dict(
        intermediate_size=("feed_forward_length", "expert_feed_forward_length")),
        (*INTERLEAVED_EXPERTS, SINKS)),
}
ARCHS["mistral"] = ARCHS["llama"]  # whose window llama.cpp does not write


def gguf_name(arch, n_layer, name):
    kind = next(a for a, text in gguf.MODEL_ARCH_NAMES.items() if text == arch.name)
    found = gguf.get_tensor_name_map(kind, n_layer).get_name(name, try_suffixes=(".weight", ".bias"))
    assert found, f"{arch.name}: no name for {name}"
    return found


def parts_of(arch, config, name):
    """The layout of a transformers tensor, and the names of the GGUF's tensors."""
    layout = next(l for l in (*arch.layouts, PLAIN) if re.fullmatch(l.match, name))
    return layout, [gguf_name(arch, config.num_hidden_layers, re.sub(layout.match, n, name))
                    for n in layout.names]


# ---- RoPE --------------------------------------------------------------------------------------------

def head_dim(config):
    return getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads


def default_inv_freq(config):
    dim = torch.arange(0, head_dim(config), 2, dtype=torch.float32)
    return 1.0 / (config.rope_parameters["rope_theta"] ** (dim / head_dim(config)))


def add_rope(writer, arch, config):
    rope = config.rope_parameters
    if "full_attention" in rope:
        writer.add_rope_freq_base_swa(rope["sliding_attention"]["rope_theta"])
        rope = rope["full_attention"]
    kind = rope["rope_type"]
    if "n_rot" in arch.rope:
        writer.add_rope_dimension_count(int(head_dim(config) * rope.get("partial_rotary_factor", 1)))
    if "theta" not in arch.rope:
        assert rope["rope_theta"] == 10000 and kind == "default", rope
        return
    writer.add_rope_freq_base(rope["rope_theta"])
    if kind in ("linear", "yarn"):
        writer.add_rope_scaling_type(gguf.RopeScalingType(kind))
        writer.add_rope_scaling_factor(rope["factor"])
    if kind == "yarn":
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
        for key in ("beta_fast", "beta_slow"):
            if rope.get(key):
                getattr(writer, f"add_rope_scaling_yarn_{key}")(rope[key])
    if kind == "longrope":
        ratio = config.max_position_embeddings / rope["original_max_position_embeddings"]
        log = math.log(ratio) / math.log(rope["original_max_position_embeddings"])
        writer.add_rope_scaling_attn_factors(math.sqrt(1 + log) if ratio > 1 else 1.0)
    if kind not in ("default", "linear", "yarn", "longrope", "llama3"):
        raise SystemExit(f"rope type {kind} is not known here")


def rope_tensors(model):
    """Factors that frequencies are divided by."""
    rope = getattr(model.config, "rope_parameters", None) or {}
    if rope.get("rope_type") == "llama3":
        yield "rope_freqs.weight", default_inv_freq(model.config) / model.model.rotary_emb.inv_freq
    if rope.get("rope_type") == "longrope":
        yield "rope_factors_long.weight", torch.tensor(rope["long_factor"])
        yield "rope_factors_short.weight", torch.tensor(rope["short_factor"])


def read_rope(get, tensors):
    rope = dict(rope_type="default", rope_theta=get("rope.freq_base", 10000.0))
    kind = get("rope.scaling.type", "none")
    if kind in ("linear", "yarn"):
        rope.update(rope_type=kind, factor=get("rope.scaling.factor"))
    if kind == "yarn":
        rope.update(original_max_position_embeddings=get("rope.scaling.original_context_length"))
        rope.update({k: get(f"rope.scaling.yarn_{k}") for k in ("beta_fast", "beta_slow")
                     if get(f"rope.scaling.yarn_{k}")}, truncate=get("general.architecture") != "gpt-oss")
    if "rope_factors_long.weight" in tensors:
        rope.update(rope_type="longrope", attention_factor=get("rope.scaling.attn_factor"),
                    original_max_position_embeddings=get("rope.scaling.original_context_length"))
        for kind in ("long", "short"):
            rope[f"{kind}_factor"] = tensors[f"rope_factors_{kind}.weight"].data.tolist()
    if (n_rot := get("rope.dimension_count")) and get("attention.head_count"):
        width = get("attention.key_length", get("embedding_length") // get("attention.head_count"))
        rope.update(partial_rotary_factor=n_rot / width)
    if get("general.architecture") == "gemma3":
        local = get("rope.freq_base_swa", 10000.0)
        return dict(full_attention=rope, sliding_attention=dict(rope_type="default", rope_theta=local))
    return rope


# ---- there -------------------------------------------------------------------------------------------

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


def add_config(writer, arch, config, n_ctx):
    absent = dict(n_inner=4 * config.hidden_size)
    if arch.name == "phi3":  # by which llama.cpp tells some models from others
        absent["sliding_window"] = 0
    for attribute, keys in arch.keys.items():
        value = getattr(config, attribute, None)
        value = absent.get(attribute) if value is None else value
        value = n_ctx or value if keys == "context_length" else value
        add = {bool: writer.add_bool, int: writer.add_uint32, float: writer.add_float32}.get(type(value))
        for key in [keys] if isinstance(keys, str) else keys:
            if add:
                add(f"{arch.name}.{key}", value)
    if arch.rope is not None:
        add_rope(writer, arch, config)


def stored_type(type_name, hf_name, gguf_tensor, w):
    """Vectors, positions, routers and the biases of experts stay in F32."""
    if w.ndim == 1 or ".wpe." in hf_name or "ffn_gate_inp" in gguf_tensor or gguf_tensor.endswith(".bias"):
        return TYPES["F32"]
    experts, rest = MIXTURES.get(type_name, (type_name, type_name))
    wanted = experts if "_exps." in gguf_tensor else rest
    return TYPES[NARROW[wanted] if w.shape[-1] % 256 and wanted in NARROW else wanted]


def encoded(w, t):
    return gguf.quants.quantize(np.ascontiguousarray(w, np.float32), t)


def convert(folder, out, type_name, name=None, license=None, add_bos=False, n_ctx=None, encode=encoded):
    folder = pathlib.Path(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    config = model.config
    arch = ARCHS[config.model_type]
    writer = gguf.GGUFWriter(out, arch.name)
    if name:
        writer.add_name(name)
    if license:
        writer.add_license(license)
    writer.add_file_type(gguf.LlamaFileType[FILE_TYPES.get(type_name, f"MOSTLY_{type_name}")])
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    add_config(writer, arch, config, n_ctx)
    add_tokenizer(writer, folder, config, add_bos)
    for tensor, w in rope_tensors(model):
        writer.add_tensor(tensor, w.float().numpy())
    for hf_name, w in model.state_dict().items():
        if hf_name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        layout, names = parts_of(arch, config, hf_name)
        for tensor, part in zip(names, layout.there(config, hf_name, w.numpy())):
            t = stored_type(type_name, hf_name, tensor, part)
            writer.add_tensor(tensor, encode(part, t), raw_dtype=t)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


# ---- and back ----------------------------------------------------------------------------------------

def read_config(reader):
    tensors = {t.name: t for t in reader.tensors}
    name = reader.fields["general.architecture"].contents()
    experts = f"{name}.expert_count" in reader.fields
    model_type, arch = next((k, a) for k, a in ARCHS.items()
                            if a.name == name and ("num_local_experts" in a.keys) == experts)

    def get(key, default=None):
        field = reader.fields.get(f"{name}.{key}") or reader.fields.get(key)
        return default if field is None else field.contents()

    spec = {attribute: get(keys if isinstance(keys, str) else keys[0])
            for attribute, keys in arch.keys.items()}
    spec = {k: v for k, v in spec.items() if v is not None and (k, v) != ("sliding_window", 0)}
    spec |= {k: value(spec) for k, value in arch.implied.items()}
    qkv_bias = not {"blk.0.attn_q.bias", "blk.0.attn_qkv.bias"}.isdisjoint(tensors)
    spec |= dict(vocab_size=int(tensors["token_embd.weight"].shape[1]),
                 tie_word_embeddings="output.weight" not in tensors, attn_implementation="eager",
                 attention_bias=qkv_bias, use_qkv_bias=qkv_bias, mlp_bias="blk.0.ffn_up.bias" in tensors,
                 bos_token_id=get("tokenizer.ggml.bos_token_id"),
                 eos_token_id=get("tokenizer.ggml.eos_token_id"))
    if arch.rope is not None:
        spec |= dict(rope_parameters=read_rope(get, tensors))
    return AutoConfig.for_model(model_type, **spec)


def load(path, dtype, config=None):
    """A transformers model of the GGUF at `path`: its weights dequantised, then held in `dtype`."""
    reader = gguf.GGUFReader(path)
    config = config or read_config(reader)
    arch = ARCHS[config.model_type]
    tensors = {t.name: t for t in reader.tensors}
    model = AutoModelForCausalLM.from_config(config, dtype=dtype, attn_implementation="eager",
                                             experts_implementation="eager").eval()
    for hf_name, w in model.state_dict().items():
        if hf_name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        layout, names = parts_of(arch, config, hf_name)
        parts = [gguf.quants.dequantize(t.data, t.tensor_type).astype(np.float32)
                 for t in (tensors[n] for n in names)]
        w.copy_(torch.from_numpy(np.ascontiguousarray(layout.back(config, hf_name, parts))))
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
    parser.add_argument("--type", choices=[*TYPES, *MIXTURES], default="F16")
    parser.add_argument("--name", help="general.name")
    parser.add_argument("--license", help="general.license")
    parser.add_argument("--bos", action="store_true", help="texts begin with the BOS token")
    parser.add_argument("--context", type=int, help="positions trained on, where config.json allows more")
    args = parser.parse_args()
    convert(args.folder, args.out, args.type, args.name, args.license, args.bos, args.context)


if __name__ == "__main__":
    main()
