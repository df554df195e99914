"""M01 to M33: GGUF files that are refused."""
import os
from struct import pack

from form_kit import (INSPECT, QUANTIZE, UP, Special, architecture, array, both, fifo, field, file, instead, more, no_tensor, pair,
                      raw_pair, rejected, tensor, without)
from model_files import (ARRAY, BOOL, EMBD, F32, F64, FF, I32, I64, STRING, TOKENS, U8, U32, U64, Raw, Tensor)

U64_MAX = 2 ** 64 - 1


def key(n, rest=b"some bytes that follow"):
    """A pair whose key has this length."""
    return raw_pair(pack("<Q", n), rest)


rejected(
    "M01",
    ("an empty file", "the file is empty", file(b"")),
    *((f"{n} bytes", f"too short for a GGUF file .found {n} bytes, allowed 24 or more", field(cut=n))
      for n in (4, 8, 16, 23)),
    ("3 bytes", "too short for a GGUF file .found 3 bytes", field(cut=3)),
    ("a directory", "no weights in this folder .found none", instead(Special(os.mkdir))),
    ("a FIFO", "not a regular file .found a FIFO", instead(Special(fifo))),
    ("a device", "not a regular file .found a device", instead(Special(lambda p: os.symlink("/dev/zero", p)))))
rejected(
    "M02",
    ("a Git LFS pointer", "Git LFS pointer", file(b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n")),
    ("an HTML page", "an HTML page", file(b"<!DOCTYPE html>\n<html><body>404</body></html>")),
    ("HTML behind blanks", "an HTML page", file(b"\n\n  <html><body>404</body></html>")),
    ("a zip archive", "a zip archive, such as a PyTorch checkpoint", file(b"PK\3\4" + bytes(40))),
    ("a pickle, protocol 2", "a pickle, such as a PyTorch checkpoint", file(b"\x80\2}q\0." + bytes(40))),
    ("a pickle, protocol 4", "a pickle", file(b"\x80\4\x95" + bytes(40))),
    *((f"legacy {m.decode()}", "a legacy GGML file.*older than GGUF", file(m + pack("<I", 1) + bytes(40)))
      for m in (b"lmgg", b"fmgg", b"tjgg")),
    ("JSON", "JSON text", file(b'{"model_type": "gpt2", "n_layer": 12}')),
    ("JSON with a byte-order mark", "JSON text", file(b'\xef\xbb\xbf{"model_type": "gpt2", "n_layer": 12}')),
    ("a safetensors file", "a safetensors file", file(pack("<Q", 10) + b'{"a": {}} ' + bytes(40))),
    ("the magic turned round", "found magic 0x47475546, allowed 0x46554747, byte offset 0", field(magic=b"FUGG")),
    ("another magic", "found magic 0xfcfdfeff, allowed 0x46554747", field(magic=b"\xff\xfe\xfd\xfc")))
rejected("M03", *((f"version {v}", f"GGUF version .found {v}, allowed 2 and 3, byte offset 4", field(version=v))
                  for v in (0, 1, 4, 255, 2 ** 32 - 1)))
rejected("M04", *((f"version {v} byte-swapped", "big-endian", field(version=v << 24)) for v in (1, 2, 3)))
rejected(
    "M05",
    *((f"{n} {what}", f"number of {what} .found {n}, allowed 65536, byte offset {at}", field(**{f"n_{what}": n}))
      for what, at in (("tensors", 8), ("pairs", 16)) for n in (65537, 2 ** 31, 2 ** 32 + 1, 2 ** 63, U64_MAX)),
    *((f"60000 {what} in too few bytes", f"number of {what} .found 60000, allowed the .* bytes could hold",
       field(**{f"n_{what}": 60000})) for what in ("tensors", "pairs")),
    ("one tensor more than there is", "length of a tensor's name .found 0", field(n_tensors=12)),
    ("one pair more than there is", "m.gguf: (pair 15|tensor 1)", field(n_pairs=15)))
rejected(
    "M06",
    ("length 0", "pair 15 of 15|pair 15: length of the key .found 0, allowed 1 to 65535", key(0)),
    ("65,536 bytes, and they are there", "pair 15: length of the key .found 65536, allowed 1 to 65535",
     key(65536, b"k" * 65536 + pack("<IB", U8, 1))),
    ("past the end", "pair 15: length of the key .found 60000, allowed at most the [0-9]+ bytes that are left",
     key(60000)),
    *((f"length 2^64 - {k}", f"pair 15: length of the key .found {2 ** 64 - k}", key(2 ** 64 - k)) for k in (1, 8, 512)),
    ("length 2^63", "pair 15: length of the key", key(2 ** 63)))
rejected("M07", *((f"byte {byte:02x}", f"pair 15, ge.*byte of the key .found {byte}, allowed printable ASCII",
                   pair(b"ge" + bytes([byte]) + b"al", U32, 1)) for byte in (0, 1, 9, 10, 0x1b, 0x7f, 0x80, 0xc3, 0xff)))
rejected(
    "M08",
    ("twice with one value", "duplicate key llama.block_count",
     lambda g: g.pairs.append(["llama.block_count", U32, 1])),
    ("with another type", "duplicate key general.architecture",
     lambda g: g.pairs.append(["general.architecture", U32, 1])),
    ("an unknown key", "duplicate key x.y", lambda g: g.pairs.extend([["x.y", U8, 1], ["x.y", U8, 2]])))
rejected(
    "M09",
    *((f"value type {t}", f"pair 15, x: value type .found {t}, allowed 0 to 12", pair("x", t, Raw(bytes(16))))
      for t in (13, 14, 255, 2 ** 31, 2 ** 32 - 1)),
    *((f"element type {t}", f"pair 15, x: type of the array's elements .found {t}, allowed 0 to 12",
       array("x", t, 1, bytes(16))) for t in (13, 2 ** 32 - 1)),
    ("an array of arrays", "pair 15, x: an array inside an array", array("x", ARRAY, 1, pack("<IQ", U8, 0))))
rejected(
    "M10",
    *((f"a string of {n} bytes", f"pair 15, x: length of the string .found {n}, allowed at most the [0-9]+ bytes",
       pair("x", STRING, Raw(pack("<Q", n) + b"abc"))) for n in (10 ** 6, 2 ** 32, 2 ** 63, U64_MAX, U64_MAX - 7)),
    *((f"a string of {n} bytes in an array", f"length of a string in the array .found {n}",
       array("x", STRING, 2, pack("<Q", 1) + b"a" + pack("<Q", n))) for n in (10 ** 6, U64_MAX)))
rejected(
    "M11",
    *((f"{n} elements of {size} bytes", f"pair 15, x: length of the array .found {n}", array("x", elem, n, b"abcd"))
      for elem, size, n in ((U8, 1, 10 ** 6), (U32, 4, 2 ** 62), (U32, 4, 2 ** 62 + 1), (U64, 8, 2 ** 61),
                            (F64, 8, 2 ** 61 + 1), (STRING, 8, 2 ** 61), (STRING, 8, 40000), (U8, 1, U64_MAX))))
rejected(
    "M12",
    *((f"boolean {v}", f"pair 15, x: boolean .found {v}, allowed 0 or 1", pair("x", BOOL, v)) for v in (2, 255)),
    ("boolean 7 in an array", "boolean .found 7, allowed 0 or 1", pair("x", (ARRAY, BOOL), [1, 0, 7])))


def wrong_type(key, found, allowed, kind, value):
    return (f"{key} as {found}", f"{key}: wrong type .found {found}.*allowed {allowed}", pair(key, kind, value))


INTEGER, NUMBER, TEXT = "an integer", "a number", "a string"
rejected(
    "M13",
    wrong_type("general.alignment", "string", INTEGER, STRING, "32"),
    wrong_type("general.alignment", "float32", INTEGER, F32, 32),
    wrong_type("general.alignment", "array", INTEGER, (ARRAY, U32), [32]),
    wrong_type("general.architecture", "uint32", TEXT, U32, 1),
    wrong_type("general.architecture", "array", TEXT, (ARRAY, STRING), ["llama"]),
    wrong_type("llama.block_count", "float32", INTEGER, F32, 1),
    wrong_type("llama.block_count", "float64", INTEGER, F64, 1),
    wrong_type("llama.block_count", "array", INTEGER, (ARRAY, U32), [1]),
    wrong_type("llama.block_count", "bool", INTEGER, BOOL, 1),
    wrong_type("llama.attention.head_count", "string", INTEGER, STRING, "4"),
    wrong_type("llama.context_length", "string", INTEGER, STRING, "64"),
    wrong_type("llama.attention.layer_norm_rms_epsilon", "string", NUMBER, STRING, "1e-5"),
    wrong_type("llama.attention.layer_norm_rms_epsilon", "bool", NUMBER, BOOL, 1),
    wrong_type("llama.rope.freq_base", "array", NUMBER, (ARRAY, F32), [1e4]),
    wrong_type("llama.rope.dimension_count", "float32", INTEGER, F32, 8),
    wrong_type("llama.rope.scaling.type", "uint32", TEXT, U32, 1),
    wrong_type("llama.attention.sliding_window", "string", INTEGER, STRING, "8"),
    wrong_type("split.count", "string", INTEGER, STRING, "1"),
    wrong_type("tokenizer.ggml.model", "uint8", TEXT, U8, 1),
    wrong_type("tokenizer.ggml.pre", "uint8", TEXT, U8, 1),
    wrong_type("tokenizer.ggml.tokens", "string, a single value", "an array of strings", STRING, "a"),
    wrong_type("tokenizer.ggml.tokens", "array", "an array of strings", (ARRAY, U32), [1] * len(TOKENS)),
    wrong_type("tokenizer.ggml.merges", "string, a single value", "an array of strings", STRING, "t h"),
    wrong_type("tokenizer.ggml.token_type", "array", "an array of integers", (ARRAY, F32), [1] * len(TOKENS)),
    wrong_type("tokenizer.ggml.token_type", "int32, a single value", "an array of integers", I32, 1),
    wrong_type("tokenizer.ggml.eos_token_id", "float32", INTEGER, F32, 0),
    wrong_type("tokenizer.ggml.eos_token_id", "string", INTEGER, STRING, "a"),
    wrong_type("tokenizer.ggml.add_bos_token", "uint8", "a boolean", U8, 1),
    wrong_type("tokenizer.chat_template", "uint8", TEXT, U8, 1))
rejected("M14", *((f"alignment {a}", f"general.alignment .found {a}, allowed", pair("general.alignment", U32, a))
                  for a in (0, 1, 2, 4, 9, 24, 48, 2 ** 20 + 1, 2 ** 21, 2 ** 31, 2 ** 32 - 1)),
         ("alignment -8", "general.alignment .found -8, allowed", pair("general.alignment", I32, -8)))
rejected(
    "M15",
    ("no architecture", "required key missing: general.architecture", without("general.architecture")),
    ("another architecture", 'architecture is not supported .found "mamba", allowed: gpt2, .*llama',
     pair("general.architecture", STRING, "mamba")),
    ("an empty name", 'architecture is not supported .found ""', pair("general.architecture", STRING, "")),
    ("a name with a NUL", r'found "llama\\x00"', pair("general.architecture", STRING, "llama\0")),
    ("terminal control in the name", r'found "ll\\x1b\[2Jama"', pair("general.architecture", STRING, "ll\x1b[2Jama")),
    ("a name of 100,000 bytes", 'found "a{200}\\.\\.\\."', pair("general.architecture", STRING, "a" * 100000)),
    *((f"no {k}", f"required keys? missing: llama.{k}", without(f"llama.{k}"))
      for k in ("block_count", "context_length", "embedding_length", "feed_forward_length", "attention.head_count",
                "attention.layer_norm_rms_epsilon")),
    ("several missing", "required keys missing: llama.block_count, llama.embedding_length",
     without("llama.block_count", "llama.embedding_length")))


def sizes(key, most, least=1):
    for kind, v in ((U32, 0), (I32, -1), (U32, most + 1), (U64, 2 ** 63)):
        if kind != U32 or v or least:
            found = "[0-9]+ or more" if v == 2 ** 63 else v
            yield f"{key} {v}", f"llama.{key} .found {found}, allowed {least} to {most}", pair(f"llama.{key}", kind, v)


rejected(
    "M16",
    *sizes("block_count", 512), *sizes("attention.head_count", 1024), *sizes("attention.head_count_kv", 1024),
    *sizes("embedding_length", 65536), *sizes("feed_forward_length", 2 ** 20), *sizes("context_length", 2 ** 20),
    *sizes("attention.key_length", 65536), *sizes("vocab_size", 2 ** 22), *sizes("expert_count", 1024, 0))
rejected(
    "M17",
    ("32 by 5 heads", "embedding is not divisible by heads, and there is no head size .found 32 and 5",
     both(pair("llama.attention.head_count", U32, 5), pair("llama.attention.head_count_kv", U32, 5))),
    ("4 heads by 3 for keys", "heads are not divisible by key-value heads .found 4 and 3",
     pair("llama.attention.head_count_kv", U32, 3)))
REALS = ((F32, float("nan"), "-?nan"), (F32, float("inf"), "inf"), (F32, float("-inf"), "-inf"), (F32, 0, "0"),
         (F32, -1, "-1"), (F64, 1e300, "1e.300"), (I32, -3, "-3"))
rejected(
    "M18",
    *((f"{k} {v}", f"llama.{k} .found {found}, allowed", both(*before, pair(f"llama.{k}", kind, v)))
      for k, *before in (("attention.layer_norm_rms_epsilon",), ("rope.freq_base",),
                         ("rope.scaling.factor", pair("llama.rope.scaling.type", STRING, "linear")))
      for kind, v, found in REALS),
    *((f"{k} {v} of granite", f"granite.{k} .found {found}, allowed",
       both(architecture("granite"), pair(f"granite.{k}", kind, v)))
      for k in ("embedding_scale", "residual_scale", "attention.scale", "logit_scale") for kind, v, found in (REALS[0], REALS[3])))
rejected(
    "M19",
    ("an empty name", "length of a tensor's name .found 0, allowed 1 to 64", tensor(UP, name="")),
    ("65 bytes", "length of a tensor's name .found 65, allowed 1 to 64", tensor(UP, name="n" * 65)),
    ("past the end", "tensor 10: length of the name .found 1000000", tensor(UP, name=Raw(pack("<Q", 10 ** 6)))),
    ("2^64 - 1 bytes", f"tensor 10: length of the name .found {U64_MAX}", tensor(UP, name=Raw(pack("<Q", U64_MAX)))),
    *((f"byte {b:02x}", f"control byte in the tensor name blk.x{b:02x}", tensor(UP, name=b"blk" + bytes([b]) + b".x"))
      for b in (0, 1, 10, 0x1b, 0x7f)))
rejected(
    "M20",
    ("twice", f"duplicate tensor {UP}", more(Tensor(UP, (FF, EMBD)))),
    ("twice, and not used", "duplicate tensor spare", more(Tensor("spare", (2,)), Tensor("spare", (3,)))))
rejected("M21", *((f"{n} dimensions", f"tensor 10, {UP}: number of dimensions .found {n}, allowed 1 to 4",
                   tensor(UP, n_dims=n)) for n in (0, 5, 255, 2 ** 31, 2 ** 32 - 1)))
rejected(
    "M22",
    *((f"dimension {n}", f"{UP}: dimension .found {n}, allowed less than 2\\^63", tensor(UP, dims=(n, 1), data=b""))
      for n in (2 ** 63, U64_MAX)),
    *((f"{dims}", f"shape of tensor {UP} .found {dims[0]} x {dims[1]}, wanted 48 x 32", tensor(UP, dims=dims, data=b""))
      for dims in ((0, EMBD), (FF, 0))),
    ("no rows of the embedding", "rows of the token embedding .found 0, allowed 1 to 4194304",
     tensor("token_embd.weight", dims=(0, EMBD), data=b"")),
    ("a norm of nothing", "shape of tensor output_norm.weight .found 0, wanted 32",
     tensor("output_norm.weight", dims=(0,), data=b"")))
rejected("M23", *((f"{dims}", f"tensor {UP}: size overflows", tensor(UP, dims=dims, data=b""))
                  for dims in ((2 ** 32, 2 ** 32), (2 ** 62, 4), (2 ** 16,) * 4, (3, 2 ** 63 - 1), (2 ** 31, 2 ** 31, 4))))
rejected(
    "M24",
    ("2^61 elements of 8 bytes", f"tensor {UP}: size overflows", tensor(UP, dims=(2 ** 56, 32), kind=28, data=b"")),
    ("2^62 elements of 4 bytes", f"tensor {UP}: size overflows", tensor(UP, dims=(2 ** 57, 32), data=b"")),
    ("padding overflows", f"tensor {UP}: size overflows", tensor(UP, dims=(2 ** 60 - 1, 16), kind=24, data=b"")),
    ("offset and size overflow", f"tensor {UP}: size overflows", tensor(UP, offset=2 ** 64 - 32)),
    ("the sum overflows", "lies past the end of the file",
     more(*(Tensor(f"x{i}", (2 ** 62,), kind=24, data=b"") for i in range(4)))))
rejected(
    "M25",
    *((f"type {t}", f"{UP}: unknown tensor type .found {t & 0xffffffff}, allowed", tensor(UP, kind=t))
      for t in (-1, 42, 99, 2 ** 31)),
    *((f"type {t}, withdrawn", f"{UP}: unknown tensor type .found {t}, allowed", tensor(UP, kind=t))
      for t in (4, 5, 31, 32, 33, 36, 37, 38)),
    *((f"{name}, not supported", f"type of tensor {UP} is not supported .found {name}",
       tensor(UP, kind=t, data=bytes(FF * EMBD * size)))
      for t, name, size in ((28, "F64", 8), (24, "I8", 1), (25, "I16", 2), (26, "I32", 4), (27, "I64", 8))))
rejected("M26", *((f"{n} columns of {name}", f"tensor {UP}: row length .found {n}, allowed multiples of {name}'s block",
                   tensor(UP, kind=t, dims=(FF, n))) for t, name, n in
                  ((2, "Q4_0", 33), (8, "Q8_0", 31), (8, "Q8_0", 1), (12, "Q4_K", 32), (14, "Q6_K", 255), (20, "IQ4_NL", 48))))
rejected(
    "M27",
    *((f"offset {n}", f"tensor {UP}: offset .found {n}, allowed multiples of 32", tensor(UP, offset=n))
      for n in (1, 8, 31, 2 ** 64 - 1)),
    ("a multiple of 32 under an alignment of 64", "offset .found 32, allowed multiples of 64",
     both(pair("general.alignment", U32, 64), tensor(UP, offset=32))))
rejected(
    "M28",
    *((f"offset {n}", f"tensor {UP} lies past the end of the file .found 37.* an incomplete download",
       tensor(UP, offset=n)) for n in (36864, 2 ** 40, 2 ** 63)),
    ("a row more than there is", "blk.0.ffn_down.weight lies past the end",
     tensor("blk.0.ffn_down.weight", dims=(EMBD + 1, FF))))
rejected(
    "M29",
    ("one in the other", f"tensors {UP} and token_embd.weight overlap|tensors token_embd.weight and {UP} overlap",
     tensor(UP, offset=32)),
    ("at the same place", "tensors .*overlap", tensor("blk.0.ffn_gate.weight", offset=0)),
    ("by their last bytes", "tensors token_embd.weight and output_norm.weight overlap",
     tensor("output_norm.weight", offset=len(TOKENS) * EMBD * 4 - 32)))
CUT = (24, 30, 60, 100, 500, 1100, 1500, 2000, 4000, 20000, -200, -1)
rejected("M30", *((f"cut at {n}", "incomplete download", field(cut=n)) for n in CUT),
         *((f"cut at {n}, to be quantised", "incomplete download", field(cut=n), dict(command=QUANTIZE)) for n in CUT[::3]))
rejected(
    "M31",
    ("turned round", f"shape of tensor {UP} .found 32 x 48, wanted 48 x 32", tensor(UP, dims=(EMBD, FF))),
    ("a dimension more", f"shape of tensor {UP} .found 1 x 48 x 32, wanted 48 x 32", tensor(UP, dims=(1, FF, EMBD))),
    ("in one dimension", f"shape of tensor {UP} .found 1536, wanted 48 x 32", tensor(UP, dims=(FF * EMBD,))),
    ("a short norm", "shape of tensor blk.0.attn_norm.weight .found 31, wanted 32",
     tensor("blk.0.attn_norm.weight", dims=(EMBD - 1,))),
    ("another embedding", "shape of tensor token_embd.weight .found 33 x 32, wanted 33 x 64",
     both(pair("llama.embedding_length", U32, 64))),
    ("another number of heads for keys", "shape of tensor blk.0.attn_k.weight .found 16 x 32, wanted 32 x 32",
     without("llama.attention.head_count_kv")),
    ("another vocabulary", "rows of the token embedding .found 33, wanted 34",
     pair("llama.vocab_size", U32, 34)),
    ("output of another vocabulary", "shape of tensor output.weight .found 32 x 32, wanted 33 x 32",
     more(Tensor("output.weight", (32, EMBD)))),
    ("a matrix for a norm", "shape of tensor output_norm.weight .found 2 x 32, wanted 32",
     tensor("output_norm.weight", dims=(2, EMBD), data=bytes(256))))
rejected(
    "M32",
    ("one", f"required tensors missing: {UP} .1 in all", no_tensor(UP)),
    ("the embedding", "required tensors missing: token_embd.weight .1 in all", no_tensor("token_embd.weight")),
    ("a norm", "required tensors missing: output_norm.weight", no_tensor("output_norm.weight")),
    ("three", "required tensors missing: blk.0.attn_norm.weight and others .3 in all",
     no_tensor(UP, "blk.0.attn_norm.weight", "blk.0.attn_v.weight")),
    ("a whole layer", "required tensors missing: blk.1.attn_norm.weight and others .9 in all",
     pair("llama.block_count", U32, 2)),
    ("all", "required tensors missing: token_embd.weight and others .11 in all", field(tensors=[])),
    ("all of 512 layers", "required tensors missing: .*in all", both(field(tensors=[]), pair("llama.block_count", U32, 512))))


def part(number, n):
    return both(pair("split.no", U32, number), pair("split.count", U32, n))


rejected(
    "M33",
    ("the first of 3", r"part 1 of 3 of a split model .missing: m-00002-of-00003.gguf, m-00003-of-00003.gguf", part(0, 3),
     dict(name="m-00001-of-00003.gguf")),
    ("the second of 3", r"part 2 of 3 of a split model .missing: m-00001-of-00003.gguf, m-00003-of-00003.gguf", part(1, 3),
     dict(name="m-00002-of-00003.gguf")),
    ("renamed", "part 1 of 3 of a split model .missing: the other 2", part(0, 3)),
    ("of 1,025", "split.count .found 1025, allowed 0 to 1024", part(0, 1025)),
    ("for inspection too", "part 2 of 2 of a split model", part(1, 2), dict(command=INSPECT)))
