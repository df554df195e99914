/* Made by tools/make-token-cases.py from the reference: run that, do not edit this. FNV-1a, 64 bits. */
/* clang-format off */
static const struct {
    const char *pre;
    uint64_t digest;
} piece_digests[] = {
    {"gpt-2", 0x41897469a3b0c523u},
    {"smollm", 0x84386272d1aa15b1u},
    {"llama-bpe", 0x4962ad4b99e22189u},
    {"qwen2", 0x397e61c1f1ee38a7u},
};

static const uint64_t nfc_digest = 0x06014ad849ecb721u;
