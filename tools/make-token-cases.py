#!/usr/bin/env python3
"""Makes tests/token/data: three small vocabularies, and hard texts with the ids that the reference gives.

    python3 tools/make-token-cases.py        (needs the PyPI package tokenizers)

cases.json holds sets. A set names a vocabulary and what replaces its members (the members of "model" are
replaced one by one), so that few vocabularies serve many kinds of tokenizer. A case is the text in
hexadecimal and its ids; `special` says that text of special tokens becomes tokens, `around` that the
tokens of the template are added, `round_trip` that the ids stand for the text again, `stable` that what
they stand for has these ids again. digests.h holds one
number for what the reference does with every code point: its pieces in a text around it, and its NFC.
"""
import json
import pathlib
import random

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

import hard_texts
from hard_texts import LLAMA3, O200K, QWEN2, TEKKEN

OUT = pathlib.Path(__file__).resolve().parent.parent / "tests" / "token" / "data"

# Written for this purpose: some words of many languages, so that the merges know more than English.
SENTENCES = """
The miller had three cats, and none of them could be told what to do; they'd sleep where they liked.
She said, "I'm sure we've met before, haven't we?" but he didn't answer, and it'll never be known why.
In 1987 there were 12 mills, 345 bakers and 6,789 sacks of flour: about 19.6 sacks for each baker.
    if (n > 0) {\n        return sum(values[:n]) / n;  // the mean\n    }
def fold(items):\n\treturn [x * 2 for x in items if x != None]
El molino viejo está junto al río, y los niños juegan allí todas las mañanas sin que nadie les diga nada.
Le garçon a mangé trois pommes près de l'église, puis il s'est endormi à l'ombre d'un chêne.
Der Müller schläft früh, weil er jeden Morgen um fünf Uhr aufstehen muss; größere Säcke trägt sein Sohn.
A avó fez pão de manhã e o coração da casa cheirava a canela e limão até à noite.
Stary młyn stoi nad rzeką, a dzieci łowią w niej małe ryby i śpiewają piosenki.
Řeka teče kolem mlýna a děti na břehu čekají, až přijde večer.
Старая мельница стоит у реки, и дети каждый день приходят туда играть.
Стара вежа бачить усе місто, і кожен її любить.
Ο παλιός μύλος είναι δίπλα στο ποτάμι και τα παιδιά παίζουν εκεί κάθε μέρα.
הטחנה הישנה עומדת ליד הנהר והילדים משחקים שם כל יום.
الطاحونة القديمة تقع بجانب النهر ويلعب الأطفال هناك كل يوم.
पुरानी चक्की नदी के पास है और बच्चे वहाँ हर दिन खेलते हैं।
โรงสีเก่าอยู่ริมแม่น้ำและเด็กๆ เล่นที่นั่นทุกวัน
古い水車小屋は川のそばにあり、子どもたちは毎日そこで遊びます。
老磨坊在河边，孩子们每天都在那里玩耍，磨坊主从不生气。
오래된 방앗간은 강가에 있고 아이들은 매일 거기서 놀아요.
Cối xay cũ nằm bên bờ sông và trẻ em chơi ở đó mỗi ngày.
Eski değirmen nehrin yanında duruyor ve çocuklar her gün orada oynuyor.
😀 👍 🎉 — "quoted" … (x+y)*2 = 42 <tag/> #hash @name user@example.org https://example.org/a?b=c&d=1
""".strip().split("\n")


def corpus(seed):
    """Lines of a few words each, the early sentences more often than the late ones."""
    rng = random.Random(seed)
    sentences = [s.replace("\\n", "\n").replace("\\t", "\t") for s in SENTENCES]
    for _ in range(3000):
        words = rng.choice(sentences).split(" ")
        at = rng.randrange(len(words))
        yield " ".join(words[at : at + rng.randint(2, 9)]) + rng.choice(["", "\n", " ", "\n\n"])


BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}


def sequence(*parts):
    return {"type": "Sequence", "pretokenizers": list(parts)}


def split(regex):
    return {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}


def train(pre_tokenizer, n_tokens, alphabet, special, seed):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=n_tokens, initial_alphabet=alphabet, special_tokens=special,
                                  show_progress=False)
    tokenizer.train_from_iterator(corpus(seed), trainer)
    return tokenizer


def save(tokenizer, name):
    root = json.loads(tokenizer.to_str())
    model = root.pop("model")
    vocab, merges = model.pop("vocab"), model.pop("merges")
    body = json.dumps(root, ensure_ascii=False, indent=1)[:-2] + ',\n "model": '
    body += json.dumps(model, ensure_ascii=False)[:-1] + ',\n"vocab": {\n'
    items = [json.dumps(t, ensure_ascii=False) + ":" + str(i) for t, i in sorted(vocab.items(), key=lambda x: x[1])]
    body += ",\n".join(",".join(items[i : i + 12]) for i in range(0, len(items), 12)) + '\n},\n"merges": [\n'
    items = [json.dumps(m, ensure_ascii=False, separators=(",", ":")) for m in merges]
    body += ",\n".join(",".join(items[i : i + 12]) for i in range(0, len(items), 12)) + "\n]}}\n"
    (OUT / name).write_text(body, "utf-8")


def make_vocabularies():
    level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    first = train(level, 900, alphabet, ["<|endoftext|>"], 1)
    first.add_tokens([AddedToken("[pause]", normalized=False), AddedToken("the end", normalized=False)])
    save(first, "small-a.json")
    # Lacks the bytes that the text does not have (A22).
    second = train(pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(LLAMA3), "isolated"),
                                            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]),
                   800, [], [], 2)
    second.add_special_tokens(["<|begin|>", "<|end|>", "<|endofthe|>"])
    second.add_tokens([AddedToken("<tool>", normalized=False), AddedToken("<tool>x", normalized=False)])
    save(second, "small-b.json")


MARK = "\u2581"
REPLACE = {"type": "Replace", "pattern": {"String": " "}, "content": MARK}
PREPEND = {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": MARK}, REPLACE]}


def text_decoder(strip):
    decoders_of = [{"type": "Replace", "pattern": {"String": MARK}, "content": " "}, {"type": "ByteFallback"},
                   {"type": "Fuse"}]
    return {"type": "Sequence",
            "decoders": decoders_of + [{"type": "Strip", "content": " ", "start": 1, "stop": 0}] * strip}


def metaspace(scheme, split):
    return {"type": "Metaspace", "replacement": MARK, "prepend_scheme": scheme, "split": split}


def make_sentencepiece():
    """As Llama 2's: text, with bytes to fall back on, and one token that has a space inside."""
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(MARK, "always", True)
    special = ["<unk>", "<s>", "</s>"]
    trainer = trainers.BpeTrainer(vocab_size=980, limit_alphabet=90, show_progress=False,
                                  special_tokens=special + [f"<0x{b:02X}>" for b in range(256)])
    tokenizer.train_from_iterator(corpus(3), trainer)
    root = json.loads(tokenizer.to_str())
    root.update(normalizer=PREPEND, pre_tokenizer=None, decoder=text_decoder(True),
                added_tokens=[t for t in root["added_tokens"] if t["content"] in special])
    model = root["model"]
    model["vocab"]["e" + MARK + "t"] = len(model["vocab"])
    model["merges"].insert(40, ["e", MARK + "t"])
    assert MARK + "t" in model["vocab"]
    save(Tokenizer.from_str(json.dumps(root)), "small-c.json")


# What an added token can ask for; each is looked for among the others' texts too.
FLAGGED = [
    dict(content="<mask>", lstrip=True, special=True),
    dict(content="<right>", rstrip=True),
    dict(content="<both>", lstrip=True, rstrip=True),
    dict(content="word", single_word=True),
    dict(content="\u00e9t\u00e9", normalized=True),
    dict(content="a\u030a", normalized=True, single_word=True),
    dict(content="  ", normalized=False),
    dict(content="<m", normalized=True),
    dict(content="ask>", special=False),
]
# The same for text with marked spaces, where white space is taken along from the text as it is only.
FLAGGED_TEXT = [
    dict(content="<|user|>", rstrip=True, special=True),
    dict(content="<|end|>", rstrip=True, lstrip=True),
    dict(content="word", single_word=True, normalized=True),
    dict(content=MARK * 2, normalized=False),
    dict(content="  ", normalized=True),
    dict(content="\n\n", normalized=False),
]
FLAGGED_TEXT_EXTRA = [t["content"] for t in FLAGGED_TEXT] + ["word ", "sword", " word", "<s>", MARK, " " + MARK, "   "]
FLAGGED_EXTRA = [t["content"] for t in FLAGGED] + ["word ", "e\u0301te\u0301", "sword", "words", " \n ", "<", "\u00e5", "_"]


def patched(name, patch):
    root = json.loads((OUT / name).read_text("utf-8"))
    for key, value in patch.items():
        if key == "model":
            root["model"].update(value)
        else:
            root[key] = value
    return root


def flagged(base, flags=None):
    root = json.loads((OUT / base).read_text("utf-8"))
    vocab, added = root["model"]["vocab"], root["added_tokens"]
    next_id = max(list(vocab.values()) + [t["id"] for t in added]) + 1
    plain = dict(single_word=False, lstrip=False, rstrip=False, normalized=False, special=False)
    new = [dict(id=vocab.get(t["content"], -1), **{**plain, **t}) for t in flags or FLAGGED]
    for t in new:
        if t["id"] < 0:
            t["id"], next_id = next_id, next_id + 1
    return added + new


def around(before, after):
    piece = lambda token: {"SpecialToken": {"id": token, "type_id": 0}}
    root = json.loads((OUT / "small-b.json").read_text("utf-8"))
    ids = {t["content"]: t["id"] for t in root["added_tokens"]}
    single = [piece(t) for t in before] + [{"Sequence": {"id": "A", "type_id": 0}}] + [piece(t) for t in after]
    template = {"type": "TemplateProcessing", "single": single, "pair": [{"Sequence": {"id": "A", "type_id": 0}},
                                                                        {"Sequence": {"id": "B", "type_id": 1}}],
                "special_tokens": {t: {"id": t, "ids": [ids[t]], "tokens": [t]} for t in before + after}}
    return {"type": "Sequence", "processors": [BYTE_LEVEL, template]}


def sets():
    digits = {"type": "Digits", "individual_digits": True}
    level = dict(BYTE_LEVEL, use_regex=True)
    llama = sequence(split(LLAMA3), BYTE_LEVEL)
    qwen = sequence(split(QWEN2), BYTE_LEVEL)
    nfc = {"type": "NFC"}
    merges = json.loads((OUT / "small-a.json").read_text("utf-8"))["model"]["merges"]
    a, b = "small-a.json", "small-b.json"
    yield dict(name="gpt-2", file=a, patch={}, n=350, round_trip=True)
    yield dict(name="gpt-2", file=a, patch={}, n=100, special=True, round_trip=True)
    yield dict(name="smollm", file=a, patch={"pre_tokenizer": sequence(digits, level)}, n=350, round_trip=True)
    yield dict(name="llama-bpe", file=a, patch={"pre_tokenizer": llama, "model": {"ignore_merges": True}}, n=150,
               round_trip=True)
    yield dict(name="llama-bpe", file=b, patch={"model": {"ignore_merges": True},
                                                "post_processor": around(["<|begin|>"], [])},
               n=200, special=True, around=True)
    yield dict(name="qwen2", file=a, patch={"pre_tokenizer": qwen}, n=150, round_trip=True)
    yield dict(name="qwen2", file=b, patch={"pre_tokenizer": qwen, "normalizer": nfc}, n=250, special=True)
    yield dict(name="gpt-2", file=a, patch={"pre_tokenizer": dict(level, add_prefix_space=True)}, n=60, special=True)
    # Flags of added tokens, with and without normalisation.
    yield dict(name="gpt-2", file=a, patch={"added_tokens": flagged(a)}, n=130, special=True, extra=FLAGGED_EXTRA)
    yield dict(name="qwen2", file=b, patch={"added_tokens": flagged(b), "normalizer": nfc, "pre_tokenizer": qwen},
               n=130, special=True, extra=FLAGGED_EXTRA)
    yield dict(name="gpt-2", file=a, patch={"added_tokens": flagged(a)}, n=60, extra=FLAGGED_EXTRA)
    # An unknown token for the bytes that the vocabulary lacks, one by one and for a run of them.
    yield dict(name="gpt-2", file=b, patch={"pre_tokenizer": level, "model": {"unk_token": "e"}}, n=50)
    yield dict(name="gpt-2", file=b, patch={"pre_tokenizer": level, "model": {"unk_token": "e", "fuse_unk": True},
                                            "post_processor": around(["<|begin|>", "<|end|>"], ["<|end|>"])},
               n=50, around=True)
    # The same merge twice, first and last (A23), and merges as text (A16).
    again = merges[1:120] + merges[:40] + merges[120:]
    yield dict(name="gpt-2", file=a, n=60, round_trip=True,
               patch={"model": {"merges": ["#version: 0.2"] + [" ".join(m) for m in again]}})
    # Words cut by the case of their letters, and a Split that says so in the other way.
    level_split = lambda regex: sequence(dict(split(regex), behavior="Removed", invert=True), BYTE_LEVEL)
    yield dict(name="gpt-4o", file=a, patch={"pre_tokenizer": level_split(O200K)}, n=200, round_trip=True)
    yield dict(name="tekken", file=a, patch={"pre_tokenizer": sequence(split(TEKKEN), BYTE_LEVEL),
                                             "model": {"ignore_merges": True}}, n=150, round_trip=True)
    # SentencePiece: Llama 2, Gemma, and the ways of Metaspace.
    c, extra = "small-c.json", FLAGGED_TEXT_EXTRA
    gemma = {"normalizer": REPLACE, "decoder": text_decoder(False),
             "pre_tokenizer": {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious",
                               "invert": False}}
    yield dict(name="nothing", file=c, patch={}, n=200, stable=True)
    yield dict(name="nothing", file=c, patch={}, n=60, special=True)
    yield dict(name="nothing", file=c, patch=gemma, n=150, stable=True)
    yield dict(name="nothing", file=c, patch=dict(gemma, added_tokens=flagged(c, FLAGGED_TEXT)), n=80, extra=extra)
    yield dict(name="nothing", file=c, patch={"added_tokens": flagged(c, FLAGGED_TEXT)}, n=80, special=True, extra=extra)
    for scheme, cuts, n in (("first", False, 100), ("always", True, 100), ("never", True, 60), ("first", True, 60)):
        new = {"normalizer": None, "pre_tokenizer": metaspace(scheme, cuts), "decoder": text_decoder(scheme != "never")}
        name = "each space" if cuts else "nothing"
        # The reference takes a space away even where it added none: of two that a text begins with, one is lost.
        yield dict(name=name, file=c, patch=new, n=n, **{"stable": True} if scheme == "never" else {})
        yield dict(name=name, file=c, patch=dict(new, added_tokens=flagged(c, FLAGGED_TEXT)), n=50, special=True, extra=extra)
    # Without bytes to fall back on: an unknown token, one by one and for a run of them, or nothing.
    for model in ({"fuse_unk": True}, {"fuse_unk": False}, {"unk_token": None}):
        bare = text_decoder(True)
        del bare["decoders"][1]
        yield dict(name="nothing", file=c, n=40, patch={"decoder": bare, "model": dict(model, byte_fallback=False)})


def make_cases():
    lines, n_cases, seed = [], 0, 100
    for spec in sets():
        seed += 1
        root = patched(spec["file"], spec["patch"])
        tokenizer = Tokenizer.from_str(json.dumps(root))
        tokenizer.encode_special_tokens = not spec.get("special", False)
        extra = spec.get("extra", [t["content"] for t in root["added_tokens"]])
        texts, rng = [], random.Random(seed)
        words = [w for s in SENTENCES for w in s.split(" ")]
        while len(texts) < spec["n"]:
            text = hard_texts.random_text(rng, extra)
            if rng.random() < 0.3:
                text = " ".join(rng.choice(words) for _ in range(rng.randint(1, 5))) + text
            if len(text.encode()) <= 72 and text not in texts:
                texts.append(text)
        head = {k: spec[k] for k in ("name", "file", "special", "around", "round_trip", "stable", "patch") if k in spec}
        cases = []
        for text in texts:
            ids = tokenizer.encode(text, add_special_tokens=spec.get("around", False)).ids
            cases.append('["' + text.encode().hex() + '","' + " ".join(map(str, ids)) + '"]')
        lines.append(json.dumps(head, ensure_ascii=False, separators=(",", ":"))[:-1] + ',"cases":[\n'
                     + ",\n".join(cases) + "]}")
        n_cases += len(cases)
    (OUT / "cases.json").write_text("[" + ",\n".join(lines) + "]\n", "utf-8")
    print(n_cases, "cases,", sum(p.stat().st_size for p in OUT.iterdir()), "bytes in all")


# ---- every code point ----------------------------------------------------------------------------

CODES = [chr(c) for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]

def fnv(numbers):
    h = 0xCBF29CE484222325
    for n in numbers:
        h = (h ^ n) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return h


def piece_lengths(pre):
    for c in CODES:
        text = f"a{c}1 {c}{c}\n'{c}A{c}A{c}b"
        for _, (start, end) in pre.pre_tokenize_str(text):
            yield len(text[start:end].encode())


def nfc_bytes():
    nfc = normalizers.NFC().normalize_str
    for c in CODES:
        yield from nfc(f"e{c}\u0323\u0301{c}").encode()


def make_digests():
    digests = {}
    for name, (digits, spellings) in hard_texts.PATTERNS.items():
        first = [pre_tokenizers.Digits(individual_digits=True)] if digits else []
        found = {fnv(piece_lengths(pre_tokenizers.Sequence(first + [pre_tokenizers.Split(Regex(regex), "isolated")])))
                 for regex in spellings}
        assert len(found) == 1, name  # what counts as one pattern is one
        digests[name] = found.pop()
    text = "/* Made by tools/make-token-cases.py from the reference: run that, do not edit this. FNV-1a, 64 bits. */\n"
    text += "/* clang-format off */\n"
    text += "static const struct {\n    const char *pre;\n    uint64_t digest;\n} piece_digests[] = {\n"
    for name, digest in digests.items():
        text += f'    {{"{name}", 0x{digest:016x}u}},\n'
    text += f"}};\n\nstatic const uint64_t nfc_digest = 0x{fnv(nfc_bytes()):016x}u;\n"
    (OUT / "digests.h").write_text(text)


OUT.mkdir(parents=True, exist_ok=True)
make_vocabularies()
make_sentencepiece()
make_cases()
make_digests()
