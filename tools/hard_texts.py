"""What make-token-cases.py and check-tokenizer.py share: the reference's expressions, and hard random texts."""
import random

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace("{1,3}", "")
TIKTOKEN = (r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*"
            r"|\s*[\r\n]|\s+(?!\S)|\s+")
QWEN35 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
TEKKEN = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
          r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
          r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
# By the names of GGUF: whether digits are cut out first, and the expressions, each a spelling of the same.
PATTERNS = {
    "gpt-2": (False, [GPT2]),
    "olmo": (False, [GPT2]),
    "smollm": (True, [GPT2]),
    "llama-bpe": (False, [LLAMA3, TIKTOKEN]),
    "dbrx": (False, [LLAMA3, TIKTOKEN]),
    "smaug-bpe": (False, [LLAMA3, TIKTOKEN]),
    "qwen2": (False, [QWEN2, TIKTOKEN.replace("{1,3}", "")]),
    "qwen35": (False, [QWEN35]),
    "gpt-4o": (False, [O200K]),
    "tekken": (False, [TEKKEN]),
}

CONTRACTIONS = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'S", "'T", "'RE", "'Ve", "'M", "'lL", "'D", "'\u017f",
                "\u2019s", "'x", "''", "'", "'r", "'l", "'v", "'l l", "'1"]
SPACES = [" ", "  ", "   ", "\t", "\n", "\r", "\r\n", "\n\n", " \n", "\n ", "\t\t", "\x0b", "\x0c", "\x85", "\xa0",
          "\u1680", "\u2003", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000", "\u200b", "\ufeff", "\x1c", "\x00"]
DIGITS = ["0", "7", "12", "123", "1234", "99999", "3.14", "1,000", "\u0663", "\u096b\u096c", "\u00bd", "\u2167",
          "\u4e00\u4e8c", "\u3007", "\U0001d7d8", "\u00b2", "\u2460", "\U00010107", "\U00011de1", "\U00016ff4"]
WORDS = ["the", "Hello", "WORLD", "don", "naïve", "Straße", "été", "Über", "señor", "Привет", "мир", "γειά", "שלום",
         "مرحبا", "नमस्ते", "สวัสดี", "你好", "世界", "こんにちは", "カタカナ", "안녕하세요", "Việt", "ﬁne", "ǅ", "ſs",
         "x", "I", "foo_bar", "camelCase", "e\u0301", "A\u030a", "o\u0302\u0323", "\u1100\u1161\u11a8", "q\u0307\u0323",
         "\u0958", "\u2126", "\u212b", "\uac00\u11a8", "\u1e9b\u0323", "\u0344", "\U0001d15e", "\u0f73", "\u0fb2\u0f80"]
SYMBOLS = ["!", "?", "...", "--", "=>", "()", "{}", "\"", "#", "@", "/", "\\", "<", ">", "<|", "|>", "€", "™", "—", "…",
           "😀", "👩‍👩‍👧", "🇩🇪", "❤️", "\u0301", "\u20e3", "\ufe0f", "\ue000", "\U000e0001", "\U0010ffff", "\ufffd",
           "\u0378", "\uffff", "/", "//", "/\n", "!\n/", "\u2581", "\u2581\u2581", " \u2581"]
CASED = ["camelCase", "HTTPServer", "XMLHttp2", "JSON\u65e5\u672c", "\u65e5\u672cABC", "A\u0301B", "\u0301A", "\u0301", "ǅx",
         "AǅB", "ʰA", "ÀÉ", "Ab's", "AB'LL", "x'\u017f", "İI", "\u02b0\u02b1Z", "Z\u0301\u0302z", "Ωmega", "ªb"]
RANGES = [(0, 0x7F), (0, 0xFF), (0x80, 0x7FF), (0x300, 0x36F), (0x370, 0x1FFF), (0x2000, 0x2BFF), (0x3000, 0x9FFF),
          (0xAC00, 0xD7A3), (0x1100, 0x11FF), (0xE000, 0xFFFF), (0x10000, 0x1FFFF), (0x20000, 0x2FFFF),
          (0xE0000, 0x10FFFF), (0, 0x10FFFF)]


def random_char(rng):
    low, high = rng.choice(RANGES)
    code = rng.randint(low, high)
    return "a" if 0xD800 <= code <= 0xDFFF else chr(code)


def random_text(rng, extra=()):
    """One text of up to some 40 parts; `extra` are texts of added tokens."""
    lists = [CONTRACTIONS, SPACES, DIGITS, WORDS, SYMBOLS, CASED] + ([list(extra)] if extra else [])
    style = rng.random()
    n = rng.randint(0, 12) if style < 0.8 else rng.randint(12, 40)
    if style < 0.1:
        return "".join(random_char(rng) for _ in range(n))
    if style < 0.2:  # long runs of few things
        few = [rng.choice(rng.choice(lists)) for _ in range(3)]
        return "".join(rng.choice(few) * rng.randint(1, 6) for _ in range(n // 2))
    parts = []
    for _ in range(n):
        kind = rng.random()
        if kind < 0.12:
            parts.append(random_char(rng))
        elif kind < 0.35:
            parts.append(" " + rng.choice(WORDS))
        else:
            parts.append(rng.choice(rng.choice(lists)))
    return "".join(parts)


def random_texts(n, seed, extra=()):
    rng = random.Random(seed)
    return [random_text(rng, extra) for _ in range(n)]
