#!/usr/bin/env python3
"""seeds.py TARGET FOLDER - inputs to begin with, from the data of other tests."""
import json
import pathlib
import struct
import sys

GOLDEN, TOKENS = pathlib.Path("tests/golden"), pathlib.Path("tests/token/data")
SPLIT = b"\n%%\n"
FOLDERS = sorted(p.parent for p in GOLDEN.glob("*/config.json"))


def text(value):
    return json.dumps(value, separators=(",", ":")).encode()


def headers():
    yield b"""https://user:secret@example.com:443/a/b?x=y#z
HTTP/1.1 100 Continue

HTTP/1.1 206 Partial Content
Content-Length: 1000
Content-Range: bytes 5-99/1000
ETag: W/"abc"
X-Linked-ETag: "0123"
X-Linked-Size: 44
X-Repo-Commit: 0123456789012345678901234567890123456789
Retry-After: Wed, 21 Oct 2026 07:28:00 GMT
RateLimit: "api";r=0;t=55
Location: //other:8080/../path?q=1#f
Content-Type: text/html; charset=utf-8
Content-Encoding: gzip
Transfer-Encoding: chunked
X-Error-Code: RepoNotFound
"""
    yield b"http://[::1]/\nHTTP/2 416\nContent-Range: bytes */7\nRetry-After: 120\nRateLimit: limit=100, remaining=0, reset=55\n"
    yield b"https://host/a\nHTTP/1.1 302 Found\nLocation: ftp://u@host:21/a b\n"


def tensor(dtype, shape, at, size):
    return {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}


def small_tokenizer():
    return json.loads((GOLDEN / "llama-plain" / "tokenizer.json").read_text())


def files_of(folder):
    weights = (folder / "model.safetensors").read_bytes() if (folder / "model.safetensors").exists() else b""
    n = struct.unpack("<Q", weights[:8])[0] if weights else 0
    return (folder / "config.json").read_bytes(), weights[8:8 + n].rstrip()


def safetensors():
    small = {"__metadata__": {"format": "pt"}, "a": tensor("F32", [2, 3], 0, 24), "b": tensor("BF16", [0, 4], 24, 0)}
    other = {"c": tensor("I64", [], 0, 8)}
    index = {"metadata": {"total_size": 32}, "weight_map": {
        "a": "model-00001-of-00002.safetensors", "c": "model-00002-of-00002.safetensors"}}
    yield SPLIT.join([b"{}", text(small)])
    yield SPLIT.join([b"{}", text(small), text(other)])
    yield SPLIT.join([b"{}", text({"a": small["a"]}), text(other), text(index)])
    yield SPLIT.join([b"{}", struct.pack("<Q", 2) + b"{}"])
    for folder in FOLDERS:
        config, header = files_of(folder)
        if header:
            yield SPLIT.join([text(json.loads(config)), text(json.loads(header))])


def json_texts():
    yield b'\xef\xbb\xbf{"a": [1, -2, "\\u00e9\\ud83d\\ude00\\n", {}, []], "b": {"c": "d"}}'
    yield b'[0, 9223372036854775807, -9223372036854775808, "\\"\\\\\\/\\b\\f\\n\\r\\t", 1.5e3, true, false, null]'
    yield b"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]"
    yield b'{"model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": ["a b", ["a", "b"]]}}'
    yield text({"url": "https://example.com/m", "etag": "v1", "body_etag": "v2", "digest": "0" * 64, "size": 8, "stored": 5})
    for folder in FOLDERS:
        yield text(json.loads((folder / "config.json").read_text()))


def hub():
    sha = "0123456789abcdef" * 4
    def listing(files, **more):
        return b"\n" + text(dict({"sha": sha[:40], "siblings": files}, **more))
    def file(name, size=7, **more):
        return dict({"rfilename": name, "size": size, "blobId": sha[:40]}, **more)
    def large(name, size=7):
        return file(name, lfs={"sha256": sha, "size": size})
    yield listing([file("README.md"), large("m.Q8_0.gguf"), large("m-Q4_K_M.gguf")], gated=False)
    yield b"q8_0" + listing([large("q/m-Q8_0-00001-of-00002.gguf"), large("q/m-Q8_0-00002-of-00002.gguf")], gated="auto")
    yield listing([file("config.json"), file("tokenizer.json"), large("model.safetensors"), file("pytorch_model.bin")])
    yield listing([file("config.json"), file("model.safetensors.index.json"), file("vocab.json"), file("merges.txt"),
                   large("model-00001-of-00002.safetensors"), large("model-00002-of-00002.safetensors")])
    yield listing([file("pytorch_model.bin", None), {"rfilename": "UD-IQ2_XXS/mmproj-a.gguf"}])


def templates():
    seen = set()
    for case in json.loads((TOKENS / "chat_cases.json").read_text()):
        if case["template"] not in seen:
            seen.add(case["template"])
            yield bytes([len(seen) % 16]) + case["template"].encode()


def texts():
    for number, kind in enumerate(json.loads((TOKENS / "cases.json").read_text())):
        how = (1 if kind.get("around") else 0) | (2 if kind.get("special") else 0) | 4
        for case in kind["cases"][:12]:
            yield bytes([number, how]) + bytes.fromhex(case[0])


def tokenizers():
    root = small_tokenizer()
    config = text({"add_bos_token": True, "bos_token": "<|endoftext|>", "eos_token": {"content": "a"},
                   "tokenizer_class": "GPT2Tokenizer", "chat_template": [{"name": "default", "template": "{{ 1 }}"}],
                   "added_tokens_decoder": {"33": {"content": "<s>", "special": True}}})
    rest = [config, text({"eos_token_id": [0, 2]}), text({"bos_token_id": 0, "eos_token_id": 1, "model_type": "gpt2"}), b"{{ messages }}"]
    yield SPLIT.join([text(root), b"", *rest])
    yield SPLIT.join([text(root["model"]["vocab"]), b"#version: 0.2\nt h\r\nth e\n", *rest])
    for case in json.loads((TOKENS / "cases.json").read_text()):
        for name, value in case["patch"].items():
            if name == "model":
                root["model"].update(value)
            else:
                root[name] = value
        yield text(root)
        root = small_tokenizer()
    pieces = ["<unk>", "<s>", "</s>"] + ["<0x%02X>" % i for i in range(256)] + ["\u2581", "t", "h", "e", "\u2581t", "he"]
    small = json.loads((TOKENS / "small-c.json").read_text())
    small["added_tokens"] = small["added_tokens"][:3]
    small["model"].update(vocab={p: i for i, p in enumerate(pieces)}, merges=["\u2581 t", "h e"], unk_token="<unk>")
    yield text(small)


def string(s):
    s = s if isinstance(s, bytes) else s.encode()
    return struct.pack("<Q", len(s)) + s


NUMBERS = {"u8": (0, "<B"), "i32": (5, "<i"), "u32": (4, "<I"), "f32": (6, "<f"), "bool": (7, "<B"), "u64": (10, "<Q"), "f64": (12, "<d")}


def value(kind, v):
    if kind == "string":
        return struct.pack("<I", 8) + string(v)
    if kind == "strings":
        return struct.pack("<IIQ", 9, 8, len(v)) + b"".join(map(string, v))
    number, how = NUMBERS[kind.rstrip("s")]
    if kind.endswith("s"):
        return struct.pack("<IIQ", 9, number, len(v)) + b"".join(struct.pack(how, x) for x in v)
    return struct.pack("<I", number) + struct.pack(how, v)


def gguf(pairs, tensors, version=3):
    """pairs: key, kind, value; tensors: name, row length first, type, bytes"""
    data = b""
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(pairs))
    head += b"".join(string(k) + value(kind, v) for k, kind, v in pairs)
    for name, shape, kind, size in tensors:
        data += bytes(-len(data) % 32)
        head += string(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *shape)
        head += struct.pack("<IQ", kind, len(data))
        data += bytes(size)
    return head + bytes(-len(head) % 32) + data


def ggufs():
    words = ["<unk>", "<s>", "</s>", *"\u0120abcdefghinorstux", "th", "the"]
    byte = [("tokenizer.ggml.model", "string", "gpt2"), ("tokenizer.ggml.pre", "string", "gpt-2"),
            ("tokenizer.ggml.tokens", "strings", words), ("tokenizer.ggml.merges", "strings", ["t h", "th e"]),
            ("tokenizer.ggml.token_type", "i32s", [2, 3, 3] + [1] * (len(words) - 3)),
            ("tokenizer.ggml.bos_token_id", "u32", 1), ("tokenizer.ggml.eos_token_id", "u32", 2),
            ("tokenizer.ggml.add_bos_token", "bool", 1), ("tokenizer.chat_template", "string", "{{ messages }}")]
    pieces = ["<unk>", "<s>", "</s>", "\u2581", "t", "h", "e", "\u2581t", "he"]
    spm = [("tokenizer.ggml.model", "string", "llama"), ("tokenizer.ggml.tokens", "strings", pieces),
           ("tokenizer.ggml.scores", "f32s", [0, 0, 0, -3, -4, -5, -6, -1, -2]),
           ("tokenizer.ggml.token_type", "i32s", [2, 3, 3, 1, 1, 1, 1, 1, 4]),
           ("tokenizer.ggml.bos_token_id", "u32", 1), ("tokenizer.ggml.eos_token_id", "u32", 2),
           ("tokenizer.ggml.unknown_token_id", "u32", 0), ("tokenizer.ggml.add_space_prefix", "bool", 1)]

    def model(n_vocab, tokenizer, name="llama", n=8, ff=8):
        keys = [("block_count", 1), ("embedding_length", n), ("feed_forward_length", ff), ("attention.head_count", 2),
                ("attention.head_count_kv", 1), ("context_length", 64)]
        pairs = [("general.architecture", "string", name), ("general.name", "string", "m"), ("general.file_type", "u32", 0)]
        pairs += [(f"{name}.{k}", "u32", v) for k, v in keys]
        pairs += [(f"{name}.attention.layer_norm_rms_epsilon", "f32", 1e-5), (f"{name}.rope.freq_base", "f32", 1e4)]
        shapes = [("token_embd.weight", [n, n_vocab]), ("output_norm.weight", [n]), ("blk.0.attn_norm.weight", [n]),
                  ("blk.0.attn_q.weight", [n, n]), ("blk.0.attn_k.weight", [n, n // 2]), ("blk.0.attn_v.weight", [n, n // 2]),
                  ("blk.0.attn_output.weight", [n, n]), ("blk.0.ffn_norm.weight", [n]), ("blk.0.ffn_gate.weight", [n, ff]),
                  ("blk.0.ffn_up.weight", [n, ff]), ("blk.0.ffn_down.weight", [ff, n])]
        half = lambda shape: 2 if len(shape) > 1 else 4
        total = lambda shape: shape[0] * (shape[1] if len(shape) > 1 else 1)
        tensors = [(name, shape, 1 if len(shape) > 1 else 0, total(shape) * half(shape)) for name, shape in shapes]
        return gguf(pairs + tokenizer, tensors)

    yield model(len(words), byte)
    yield model(len(pieces), spm)
    yield gguf(byte, [])
    yield gguf(spm, [], 2)
    yield gguf([("a", kind, 1) for kind in NUMBERS] + [("b", kind + "s", [0, 1]) for kind in NUMBERS], [("t", [32], 8, 34)])
    yield gguf([("split.count", "u32", 2), ("split.no", "u32", 0), ("general.alignment", "u32", 8)], [])
    small = sorted(GOLDEN.glob("gguf/*.gguf"), key=lambda p: p.stat().st_size)
    for path in small:
        yield path.read_bytes()


def logits():
    yield text({"ids": tensor("I32", [4], 0, 16), "logits": tensor("F32", [3, 5], 16, 60)})
    head = text({"ids": tensor("I32", [2], 0, 8), "logits": tensor("F32", [2, 1], 8, 8)})
    yield struct.pack("<Q", len(head)) + head + bytes(16)


def sessions():
    def saved(how, n_ids, n_cached, note, cache=b""):
        fields = [0] * 14 + [n_ids, n_cached, len(note), 7, 3, 11]
        head = b"tinygpts" + struct.pack("<IIII", 2, 0x01020304, 24 + 8 * len(fields), 0) + struct.pack("<20Q", *fields)
        ids = b"".join(struct.pack("<i", i % 7) for i in range(n_ids))
        return bytes([how]) + head + ids + bytes(-len(ids) % 8) + note + bytes(-len(note) % 8) + bytes(8) + cache + bytes(8)
    for how in (0, 7, 15):
        yield saved(how, 0, 0, b"")
        yield saved(how, 5, 0, b'[["user","hi"]]')
        yield saved(how, 3, 2, b"a note")
        yield saved(how, 70, 66, b"", bytes(range(1, 40)) * 20)


def jobs():
    yield b"\0Once upon a time\nThe fox\r\n\n"
    line = {"prompt": "Once", "max_tokens": 9, "temperature": 0.5, "stop": ["."], "seed": 3, "n": 2, "custom_id": "a",
            "top_p": 0.9, "logprobs": 2, "echo": True, "presence_penalty": 1, "frequency_penalty": 0.1, "logit_bias": {"5": -1.5},
            "top_k": 3, "min_p": 0.1, "typical_p": 0.9, "repeat_penalty": 1.1, "repeat_last_n": -1, "ignore_eos": True}
    yield b"\1" + text(line) + b"\n\n" + text({"prompt": "a\u00e9", "stop": None}) + b'\n{"prompt": "", "stop": "x"}'


SEEDS = {"headers": headers, "safetensors": safetensors, "json": json_texts, "hub": hub, "template": templates, "encode": texts,
         "tokenizer": tokenizers, "gguf": ggufs, "logits": logits,
         "job": jobs, "session": sessions}

folder = pathlib.Path(sys.argv[2])
folder.mkdir(parents=True, exist_ok=True)
for number, seed in enumerate(SEEDS.get(sys.argv[1], lambda: [b""])()):
    (folder / f"seed-{number}").write_bytes(seed)
