/* vector.c - picks the level's table. */
#include "kernel/vector.h"

#include "kernel/isa.h"

TG_ISA_DECLARE(tg_vector_kernels, tg_vector_kernels);

const tg_vector_kernels *tg_vector(void)
{
    return TG_ISA_PICK(tg_vector_kernels);
}
