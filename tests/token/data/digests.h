/* Made by tools/make-token-cases.py from the reference: run that, do not edit this. FNV-1a, 64 bits. */
/* clang-format off */
static const struct {
    const char *pre;
    uint64_t digest;
} piece_digests[] = {
    {"gpt-2", 0x6de8fd1eb8c9c9a9u},
    {"olmo", 0x6de8fd1eb8c9c9a9u},
    {"smollm", 0x0b5f4e41caea58fdu},
    {"llama-bpe", 0xea0fb9eee9f951b1u},
    {"dbrx", 0xea0fb9eee9f951b1u},
    {"smaug-bpe", 0xea0fb9eee9f951b1u},
    {"qwen2", 0x8c06cf8711f85b5bu},
    {"qwen35", 0x59c08931308fdde3u},
    {"gpt-4o", 0x5a4f58b8ac9b983du},
    {"tekken", 0xc6cc856526e52ebfu},
};

static const uint64_t nfc_digest = 0x06014ad849ecb721u;
