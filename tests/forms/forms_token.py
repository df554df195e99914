"""M52 to M60: tokenizers that are refused, in a GGUF, as tokenizer.json, and as vocab.json with merges.txt."""
from form_kit import both, lacks, member, no_file, pair, put_file, rejected, without
from model_files import (ARRAY, BOOL, F32, I32, I64, PIECES, STRING, TOKENS, U8, U32, U64, pieces_folder, pieces_gguf,
                         small_folder, vocab_folder)

J, CONFIG, TC, GC = "tokenizer.json", "config.json", "tokenizer_config.json", "generation_config.json"
G = "tokenizer.ggml."
N = len(TOKENS)


def gguf(row, *cases, **more):
    rejected(row, *cases, **more)


def pieces(row, *cases):
    rejected(row, *cases, base=pieces_gguf)


def folder(row, *cases, base=small_folder):
    rejected(row, *cases, base=base, name="model", json=1 << 20)


def tokens(function, key="tokens"):
    """function changes the list of this key."""
    return lambda g: function(g.get(G + key))


def token(i, text):
    return tokens(lambda t: t.__setitem__(i, text))


def json(*path):
    return member(J, *path)


def model(*path):
    return json("model", *path)


def vocab(*path):
    return model("vocab", *path)


TYPES = [3] + [1] * (N - 1)
gguf(
    "M52",
    ("no tokens", "tokenizer.ggml.tokens is missing", without(G + "tokens")),
    ("an empty list of tokens", "token_type has another length|the vocabulary is empty",
     pair(G + "tokens", (ARRAY, STRING), [])),
    ("nothing in any list", "the vocabulary is empty",
     both(pair(G + "tokens", (ARRAY, STRING), []), pair(G + "token_type", (ARRAY, I32), []))),
    ("tokens without a text", "the vocabulary is empty", pair(G + "tokens", (ARRAY, STRING), [""] * N)),
    *((f"{n} types", f"tokenizer.ggml.token_type has another length than the tokens .found {n}, allowed {N}",
       pair(G + "token_type", (ARRAY, I32), [1] * n)) for n in (0, N - 1, N + 1)),
    *((f"{n} scores", f"tokenizer.ggml.scores has another length than the tokens .found {n}, allowed {N}",
       pair(G + "scores", (ARRAY, F32), [0] * n)) for n in (0, N - 1, N + 1)),
    ("scores as texts", "tokenizer.ggml.scores: wrong type .found array, allowed an array of numbers",
     pair(G + "scores", (ARRAY, STRING), ["0"] * N)),
    ("types as texts", "tokenizer.ggml.token_type: wrong type .found array, allowed an array of integers",
     pair(G + "token_type", (ARRAY, STRING), ["1"] * N)),
    ("type 7", "token 5 has an unknown type .found 7, allowed 0 to 6",
     pair(G + "token_type", (ARRAY, I32), TYPES[:5] + [7] + TYPES[6:])),
    ("type -1", "token 5 has an unknown type .found -1", pair(G + "token_type", (ARRAY, I32), TYPES[:5] + [-1] + TYPES[6:])),
    ("type 2^64 - 1", "token 5 has an unknown type",
     pair(G + "token_type", (ARRAY, U64), TYPES[:5] + [2 ** 64 - 1] + TYPES[6:])))
pieces(
    "M52",
    ("SentencePiece without scores", "tokenizer.ggml.scores is missing", without(G + "scores")),
    ("SentencePiece without types", "tokenizer.ggml.token_type is missing", without(G + "token_type")),
    ("a score that is no number", "the score of token 259 is not a number",
     tokens(lambda s: s.__setitem__(259, float("nan")), "scores")))
folder(
    "M52",
    ("an empty vocab", "the vocabulary is empty", model("vocab", {})),
    ("no vocab", "vocab has the wrong type .found nothing, allowed object", lacks(J, "model", "vocab")),
    ("vocab an array", "vocab has the wrong type .found array, allowed object", model("vocab", TOKENS)))
gguf(
    "M53",
    ("a token twice", "tokens 5 and 9 are the same", token(9, TOKENS[5])),
    ("a special token twice", "tokens 0 and 7 are the same", token(7, TOKENS[0])),
    ("more tokens than the embedding has rows", f"token id out of range .found {N}, allowed 0 to {N - 1}",
     both(tokens(lambda t: t.append("zz")), pair(G + "token_type", (ARRAY, I32), TYPES + [1]))))
pieces("M53", ("a piece twice", "tokens 262 and 265 are the same", token(265, PIECES[262][0])))
folder(
    "M53",
    ("an id twice", "token id 5 is there twice", vocab("q", 5)),
    ("a free text with a used id", "token id 5 is there twice", vocab("zz", 5)),
    *((f"id {v}", f"token id out of range .found {v}, allowed 0 to {N - 1}", vocab("q", v))
      for v in (-1, N, 2 ** 31, 2 ** 32, 2 ** 63 - 1)),
    *((f"id {v!r}", f"an id in vocab has the wrong type .found {found}, allowed integer", vocab("q", v))
      for v, found in ((1.0, "number"), ("18", "string"), (None, "null"), ([18], "array"), (True, "boolean"))),
    ("id 2^63", "not valid JSON: an integer beyond 64 bits .byte offset [0-9]+", vocab("q", 2 ** 63)),
    ("an added token with the id of another", r"added token '<\|endoftext\|>' has two ids .0 and 5",
     json("added_tokens", 0, "id", 5)),
    ("an added token with id -1", "token id out of range .found -1", json("added_tokens", 0, "id", -1)),
    ("an added token with id 33", f"token id out of range .found {N}", json("added_tokens", 0, "id", N)),
    ("an added token twice", "is there twice", lambda f: f[J]["added_tokens"].append(f[J]["added_tokens"][0])))
folder("M53", ("a token twice, escaped", "tokens 2 and 9 are the same|duplicate",
               lambda f: f.files.__setitem__("vocab.json", '{"a": 2, "\\u0061": 9}')),
       ("ids twice in vocab.json", "vocab.json: token id 5 is there twice", member("vocab.json", "q", 5)),
       ("an added token's id that is no number", "tokenizer_config.json: not a token id .found 'x'",
        member(TC, "added_tokens_decoder", {"x": {"content": "y"}})),
       base=vocab_folder)
BAD_UTF8 = (b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82", b"a\x80")
gguf(
    "M54",
    *((f"token {bad!r}", r"token 9 is not valid UTF-8 .found '(a?\\x)", token(9, bad)) for bad in BAD_UTF8),
    ("4,097 bytes", "token 9 is too long .found 4097 bytes, allowed 4096", token(9, "y" * 4097)),
    ("a megabyte", "token 9 is too long .found 1048576 bytes, allowed 4096", token(9, "y" * (1 << 20))))
pieces(
    "M54",
    *((f"piece {bad!r}", "token 262 is not valid UTF-8", token(262, bad)) for bad in BAD_UTF8),
    ("a piece of 4,097 bytes", "token 262 is too long .found 4097 bytes, allowed 4096", token(262, "y" * 4097)))
folder(
    "M54",
    ("4,097 bytes", "token 20 is too long .found 4097 bytes, allowed 4096",
     both(lacks(J, "model", "vocab", "s"), vocab("y" * 4097, 20))),
    ("an added token of 4,097 bytes", "id out of order",
     json("added_tokens", 0, "content", "y" * 4097)),
    ("not UTF-8", "not valid JSON: .*byte offset [0-9]+",
     lambda f: f.files.__setitem__(J, __import__("json").dumps(f[J]).encode().replace(b'"q"', b'"q\xff"'))))
HANZI = [TOKENS[0]] + [chr(0x4e00 + i) for i in range(N - 1)]
gguf("M55", ("no token of a byte", "not a byte-level vocabulary: no byte has a token",
             both(pair(G + "tokens", (ARRAY, STRING), HANZI), pair(G + "merges", (ARRAY, STRING), []))))
folder("M55", ("no token of a byte", "not a byte-level vocabulary: no byte has a token",
               both(model("vocab", {t: i for i, t in enumerate(HANZI)}), model("merges", []))))
BAD_MERGES = (("th", "has not two parts .found 'th'"), ("", "has not two parts"), ("t h e", "has not two parts .found 't h e'"),
              ("t ", "has not two parts"), (" h", "has not two parts"), ("t  h", "has not two parts"),
              ("t \u00e4", r"'\\xc3\\xa4' is no token"), ("\u00e4 h", r"'\\xc3\\xa4' is no token"),
              ("z z", "the result 'zz' is no token"))
gguf("M56", *((f"merge {m!r}", f"merge 3:? ?{said}", tokens(lambda t, m=m: t.append(m), "merges")) for m, said in BAD_MERGES),
     ("an invalid byte", r"merge 3: '\\xff' is no token", tokens(lambda t: t.append(b"t \xff"), "merges")),
     ("before its parts", "the result|is no token", lambda g: (token(31, "xx")(g))))
folder(
    "M56",
    *((f"merge {m!r}", f"merge 3:? ?{said}", lambda f, m=m: f[J]["model"]["merges"].append(m)) for m, said in BAD_MERGES),
    *((f"merge {m!r}", f"merge 3:? ?{said}", lambda f, m=m: f[J]["model"]["merges"].append(m))
      for m, said in ((["t"], "has not two parts"), (["t", "h", "e"], "has not two parts"), ([], "has not two parts"),
                      (["t", 1], "has not two parts"), (7, "has not two parts"), (None, "has not two parts"),
                      ({}, "has not two parts"), (["t", ""], "'' is no token"), (["z", "z"], "the result 'zz' is no token"))))
folder("M56", *((f"line {m!r} of merges.txt", f"merges.txt: merge 4:? ?{said}",
                 lambda f, m=m: f.files.__setitem__("merges.txt", f["merges.txt"] + m + "\nth e\n"))
                for m, said in BAD_MERGES), base=vocab_folder)
gguf("M57", ("none", "tokenizer.ggml.merges is missing", without(G + "merges")),
     ("an empty list", "a BPE vocabulary without merges", pair(G + "merges", (ARRAY, STRING), [])))
folder("M57", ("none", "merges has the wrong type .found nothing, allowed array", lacks(J, "model", "merges")),
       ("an empty list", "a BPE vocabulary without merges", model("merges", [])))
folder("M57", ("no merges.txt", "vocab.json: there is no merges.txt beside it", no_file("merges.txt")),
       ("an empty one", "a BPE vocabulary without merges", put_file("merges.txt", b"")),
       ("the version alone", "a BPE vocabulary without merges", put_file("merges.txt", "#version: 0.2\n")), base=vocab_folder)
IDS = ("bos", "eos", "eot", "eom", "unknown", "padding", "seperator", "cls", "mask")
gguf(
    "M58",
    *((f"{name} {v}", f"tokenizer.ggml.{name}_token_id out of range .found {v}, allowed 0 to {N - 1}",
       pair(f"{G}{name}_token_id", kind, v)) for name in IDS for kind, v in ((U32, N), (I32, -1))),
    *((f"eos {v}", f"eos_token_id out of range .found {v}", pair(f"{G}eos_token_id", kind, v))
      for kind, v in ((U32, 2 ** 32 - 1), (I64, -2 ** 63), (U64, 2 ** 63 - 1))),
    ("eos 2^63", "tokenizer.ggml.eos_token_id .found [0-9]+ or more|out of range", pair(f"{G}eos_token_id", U64, 2 ** 63)),
    ("eos without a text", "tokenizer.ggml.eos_token_id is no token .found 24", both(token(24, ""), pair(f"{G}eos_token_id", U32, 24))),
    ("BOS before texts, and none", "a text begins with BOS, but there is no bos_token_id", pair(f"{G}add_bos_token", BOOL, 1)),
    ("EOS behind texts, and none", "a text ends with EOS, but there is no eos_token_id",
     both(pair(f"{G}add_eos_token", BOOL, 1), without(f"{G}eos_token_id"))))


def special(ids):
    return json("post_processor", {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [], "special_tokens": {"<s>": {"id": "<s>", "ids": ids, "tokens": ["<s>"]}}})


folder(
    "M58",
    *((f"{key} {v!r} in {name}", f"{name}: {key} {said}", put(name, key, v))
      for name, key, put in ((CONFIG, "eos_token_id", member), (CONFIG, "bos_token_id", member),
                             (GC, "eos_token_id", lambda n, k, v: put_file(n, {k: v})))
      for v, said in ((N, f"out of range .found {N}, allowed 0 to {N - 1}"), (-1, "out of range .found -1"),
                      ([0, N], f"out of range .found {N}"), ("0", "has the wrong type .found string, allowed integer"),
                      ([0, None], "has the wrong type .found null, allowed integer"))),
    *((f"{key} names no token", f"{TC}: {key} is no token .found '</s>'", put_file(TC, {key: v}))
      for key in ("bos_token", "eos_token") for v in ("</s>", {"content": "</s>"})),
    *((f"{v} in the template", f"id of a special token {said}", special([v]))
      for v, said in ((N, f"out of range .found {N}"), (-1, "out of range .found -1"), ("0", "has the wrong type|wrong type"))),
    ("a template that names no token", "template not supported .found '<s>'", special("0")),
    ("unk_token names no token", "unk_token is no token .found '<unk>'", model("unk_token", "<unk>")))
gguf(
    "M59",
    ("no model", "tokenizer.ggml.model is missing", without(G + "model")),
    *((f"model {m!r}", f"tokenizer model not supported .found '{m}', allowed 'gpt2', 'llama'", pair(G + "model", STRING, m))
      for m in ("bert", "t5", "rwkv", "plamo2", "none", "", "GPT2", "gpt")),
    *((f"pre {p!r}", f"pre-tokenizer not supported .found '{said}'", pair(G + "pre", STRING, p))
      for p, said in (("default", "default"), ("no-such", "no-such"), ("", ""), ("gpt-2\0", r"gpt-2\\x00"))),
    ("a space before byte-level texts", "tokenizer.ggml.add_space_prefix is not supported",
     pair(G + "add_space_prefix", BOOL, 1)))
pieces(
    "M59",
    ("a map of characters", "tokenizer.ggml.precompiled_charsmap is not supported",
     pair(G + "precompiled_charsmap", (ARRAY, U8), [1, 2, 3])),
    ("extra white space removed", "tokenizer.ggml.remove_extra_whitespaces is not supported",
     pair(G + "remove_extra_whitespaces", BOOL, 1)))
REGEX = {"type": "Split", "pattern": {"Regex": "[a-z]+"}, "behavior": "Isolated", "invert": False}
folder(
    "M59",
    *((f"model {m!r}", f"tokenizer.json: tokenizer model not supported .found '{m}'", model("type", m))
      for m in ("WordPiece", "Unigram", "WordLevel", "")),
    ("no type of model", "tokenizer model not supported .found ''", lacks(J, "model", "type")),
    ("no model", "model has the wrong type .found nothing, allowed object", lacks(J, "model")),
    ("dropout", "tokenizer model not supported .found 'BPE with dropout'", model("dropout", 0.1)),
    ("subword affixes", "found 'BPE with subword affixes'", model("continuing_subword_prefix", "##")),
    ("byte_fallback with bytes", "found 'BPE with byte_fallback'", model("byte_fallback", True)),
    *((f"normalizer {n}", f"normalizer not supported .found '{n}'", json("normalizer", {"type": n}))
      for n in ("Lowercase", "NFKC", "NFD", "BertNormalizer", "Precompiled", "StripAccents", "Strip")),
    *((f"pre-tokenizer {n}", f"pre-tokenizer not supported .found '{n}'", json("pre_tokenizer", {"type": n}))
      for n in ("Whitespace", "BertPreTokenizer", "Punctuation", "CharDelimiterSplit", "UnicodeScripts", "")),
    ("no pre-tokenizer", "pre-tokenizer not supported .found 'null'", json("pre_tokenizer", None)),
    ("another expression", r"pre-tokenizer not supported .found '\[a-z\]\+'",
     lambda f: f[J].__setitem__("pre_tokenizer", {"type": "Sequence", "pretokenizers": [
         REGEX, {**f[J]["pre_tokenizer"], "use_regex": False}]})),
    *((f"decoder {n}", f"decoder not supported .found '{n}'", json("decoder", {"type": n}))
      for n in ("WordPiece", "Metaspace", "CTC", "BPEDecoder")),
    *((f"post-processor {n}", f"post-processor not supported .found '{n}'", json("post_processor", {"type": n}))
      for n in ("BertProcessing", "RobertaProcessing")),
    ("tokenizer.model alone", "no tokenizer: neither tokenizer.json.* .found tokenizer.model, which is not read",
     both(no_file(J), put_file("tokenizer.model", b"\x0a\x0b"))),
    ("no tokenizer", "model: no tokenizer: neither tokenizer.json, nor vocab.json with merges.txt", no_file(J)))
folder("M59", *((f"class {c}", f"without tokenizer.json, the tokenizer class must be .*found '{c}'", member(TC, "tokenizer_class", c))
                for c in ("LlamaTokenizer", "BertTokenizer", "GPT2TokenizerX", "")),
       ("no class", "the tokenizer class must be .*found 'llama'", lacks(TC, "tokenizer_class")),
       ("an old list of added tokens", "added_tokens.json: not supported without added_tokens_decoder",
        put_file("added_tokens.json", {})), base=vocab_folder)
BAD_BYTES = ("<0x-1>", "<0xZZ>", "<0x4>", "<0x041>", "<0x 1>", "<0x41", "0x41", "<0X41>", "<0x+4>", "<0x4G>", "<0x1\u0661>")
pieces("M60", *((f"{t!r}", "token 68 is no byte token .found '.*', allowed <0xHH>", token(68, t)) for t in BAD_BYTES),
       ("a letter said to be a byte", "token 260 is no byte token .found 'a', allowed <0xHH>",
        tokens(lambda t: t.__setitem__(260, 6), "token_type")),
       ("a byte twice", "tokens 68 and 69 are the same", token(69, "<0x41>")),
       ("lower case", "only 255 of the 256 bytes have a token", token(13, "<0x0a>")),
       ("a byte missing", "only 255 of the 256 bytes have a token",
        both(token(68, "zz"), tokens(lambda t: t.__setitem__(68, 1), "token_type"))))


def renamed(old, new):
    def edit(f):
        v = f[J]["model"]["vocab"]
        v[new] = v.pop(old)
    return edit


folder("M60", *((f"{t!r} in tokenizer.json", "only 255 of the 256 bytes have a token", renamed("<0x41>", t)) for t in BAD_BYTES),
       base=pieces_folder)
