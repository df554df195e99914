/* gguf_samples.h - small GGUF files that tests start from. Include after <cmocka.h>. */
#ifndef TEST_GGUF_SAMPLES_H
#define TEST_GGUF_SAMPLES_H

#include "support/check_container.h"
#include "support/gguf_writer.h"

static const uint64_t ne_2x4[] = {4, 2};
static const float eight[8] = {0, 1, 2, 3, 4, 5, 6, 7};

static inline tg_container *accepted(bytes b)
{
    return accepted_as("x.gguf", b);
}

static inline gguf with_pairs(void)
{
    gguf g = gguf_new();
    gguf_text(&g, "general.architecture", "llama");
    gguf_u32(&g, "llama.block_count", 2);
    return g;
}

static inline gguf with_tensor(void)
{
    gguf g = with_pairs();
    gguf_tensor(&g, "a", 2, ne_2x4, 0, eight, sizeof eight);
    return g;
}

#endif
