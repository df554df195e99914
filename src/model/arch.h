/* arch.h - the table of architectures.
 *
 * An architecture is a descriptor: behaviours as enum values, how metadata becomes configuration, and
 * the names of its tensors by role for each container. To add one: a file arch_<name>.c with its
 * descriptor and a row in arch.c. */
#ifndef TG_MODEL_ARCH_H
#define TG_MODEL_ARCH_H

#include "format/container.h"
#include "model/config.h"

/* Tensors by role; a role stands for NAME.weight and NAME.bias. "%d" in a name is the layer. */
typedef enum tg_role {
    TG_ROLE_TOK_EMBD,
    TG_ROLE_POS_EMBD,
    TG_ROLE_OUT_NORM,
    TG_ROLE_OUTPUT,
    TG_ROLE_ROPE_FREQS, /* factors that frequencies are divided by */
    TG_ROLE_ATTN_NORM,
    TG_ROLE_QKV, /* Q, K and V in one matrix, one below the other */
    TG_ROLE_Q,
    TG_ROLE_K,
    TG_ROLE_V,
    TG_ROLE_ATTN_OUT,
    TG_ROLE_FFN_NORM,
    TG_ROLE_FFN_GATE,
    TG_ROLE_FFN_UP,
    TG_ROLE_FFN_DOWN,
    TG_ROLE_COUNT
} tg_role;

/* Reads numbers under `keys`; collects the missing so that they can be named together. */
typedef struct tg_config_reader {
    const tg_container *c;
    const char *prefix; /* "llama." in a GGUF, "" in a folder */
    char missing[256];
    tg_error *err;
} tg_config_reader;

/* Each returns false, with r->err filled, for a value of the wrong type or out of range; an absent
 * required key is noted in r->missing, an absent optional one leaves *out alone. */
bool tg_read_int(tg_config_reader *r, const char *key, bool required, int min, int max, int *out);
bool tg_read_real(tg_config_reader *r, const char *key, bool required, double *out); /* > 0 */
bool tg_read_bool(tg_config_reader *r, const char *key, bool *out);
/* *out, when present, is one of the n names: its index. */
bool tg_read_choice(tg_config_reader *r, const char *key, bool required, const char *const *names, int n,
                    int *out);

typedef struct tg_arch {
    const char *gguf_name; /* general.architecture */
    const char *hf_name;   /* model_type */
    tg_norm_kind norm;
    tg_pos_kind pos;
    bool conv1d;           /* a folder's matrices are [n_in][n_out] */
    bool gated;            /* down(act(gate x) * up x) instead of down(act(up x)) */
    const char *hf_prefix; /* that a folder's names have or lack */
    bool (*configure[2])(tg_config_reader *r, tg_config *c); /* by tg_container_kind */
    const char *name[2][TG_ROLE_COUNT];                      /* by tg_container_kind and role */
} tg_arch;

/* NULL when there is none. */
const tg_arch *tg_arch_find(tg_container_kind kind, const char *name);

/* "gpt2, llama" into text[n] */
void tg_arch_list(tg_container_kind kind, char *text, size_t n);

/* Finds the architecture and reads its configuration, all but n_vocab. *name is what the file says,
 * borrowed from the container; it is set even when the architecture is not supported. */
tg_status tg_config_load(const tg_container *c, const tg_arch **arch, const char **name, tg_config *config,
                         tg_error *err);

extern const tg_arch tg_arch_gpt2, tg_arch_llama;

#endif
