/* softmax.c - picks the level's tables, and the library's own top-k among them. */
#include "kernel/softmax.h"

#include "kernel/isa.h"

TG_ISA_DECLARE(tg_softmax_kernels, tg_softmax_kernels);

const tg_softmax_kernels *tg_softmax(void)
{
    return TG_ISA_PICK(tg_softmax_kernels);
}

int tg_top_k(const float *logits, int n_vocab, int k, tg_top *top, float *lse)
{
    size_t n = n_vocab > 0 ? (size_t)n_vocab : 0;
    return tg_softmax()->top_k[TG_TOP_K_FUSED].run(logits, n, k, top, lse, NULL);
}
