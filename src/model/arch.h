/* arch.h - the table of architectures.
 *
 * An architecture is a descriptor: behaviours, the keys of its numbers and the names of its tensors by role,
 * all of which it may have from another (`like`), and a function for what is peculiar to its configuration.
 * To add one: a descriptor in the file of its family and a row in arch.c. */
#ifndef TG_MODEL_ARCH_H
#define TG_MODEL_ARCH_H

#include "format/container.h"
#include "model/config.h"

typedef struct tg_arch tg_arch;

/* Tensors by role; a role stands for NAME.weight and NAME.bias. "%d" in a name is the layer, a second one the
 * expert. */
typedef enum tg_role {
    TG_ROLE_TOK_EMBD,
    TG_ROLE_POS_EMBD,
    TG_ROLE_OUT_NORM,
    TG_ROLE_OUTPUT,
    TG_ROLE_ROPE_FREQS, /* factors that frequencies are divided by; of LongRoPE two sets */
    TG_ROLE_ROPE_SHORT,
    TG_ROLE_ROPE_LONG,
    TG_ROLE_ATTN_NORM,
    TG_ROLE_QKV, /* Q, K and V in one matrix, one below the other */
    TG_ROLE_Q,
    TG_ROLE_K,
    TG_ROLE_V,
    TG_ROLE_Q_NORM,
    TG_ROLE_K_NORM,
    TG_ROLE_SINK, /* a logit for each head that takes its share of the sum */
    TG_ROLE_ATTN_OUT,
    TG_ROLE_ATTN_POST_NORM, /* of what attention adds to x */
    TG_ROLE_FFN_NORM,
    TG_ROLE_FFN_GATE,
    TG_ROLE_FFN_UP,
    TG_ROLE_GATE_UP, /* gate and up in one matrix, one below the other */
    TG_ROLE_FFN_DOWN,
    TG_ROLE_FFN_POST_NORM,
    TG_ROLE_ROUTER,
    TG_ROLE_GATE_EXPERTS, /* [n_expert][n_ff][n_embd], or one matrix for each */
    TG_ROLE_UP_EXPERTS,
    TG_ROLE_DOWN_EXPERTS,
    TG_ROLE_GATE_UP_EXPERTS, /* both in one, by turns (gpt-oss) */
    TG_ROLE_COUNT
} tg_role;

#define TG_BIT(role) (1u << TG_ROLE_##role)

/* Numbers that most architectures have, by their keys. */
typedef enum tg_key {
    TG_KEY_N_LAYER,
    TG_KEY_N_EMBD,
    TG_KEY_N_HEAD,
    TG_KEY_N_HEAD_KV,
    TG_KEY_HEAD_DIM,
    TG_KEY_N_FF,
    TG_KEY_N_CTX,
    TG_KEY_WINDOW,
    TG_KEY_N_EXPERT,
    TG_KEY_N_EXPERT_USED,
    TG_KEY_N_FF_EXPERT,
    TG_KEY_INTS, /* so many integers */
    TG_KEY_NORM_EPS = TG_KEY_INTS,
    TG_KEY_ACT,     /* a folder names it, a GGUF does not */
    TG_KEY_THETA,
    TG_KEY_ROTATED, /* the part of a head that rotates */
    TG_KEY_COUNT
} tg_key;

/* Reads numbers; collects the missing so that they can be named together. */
typedef struct tg_config_reader {
    const tg_container *c;
    const tg_arch *arch;
    tg_container_kind kind;
    const char *prefix; /* "llama." in a GGUF; in a folder "", or "text_config." */
    const char *group;  /* "", or "rope_scaling." and the like */
    char missing[256];
    tg_error *err;
} tg_config_reader;

/* Each returns false, with r->err filled, for a value of the wrong type or out of range; an absent
 * required key is noted in r->missing, an absent optional one leaves *out alone. */
bool tg_read_int(tg_config_reader *r, const char *key, bool required, int min, int max, int *out);
bool tg_read_real(tg_config_reader *r, const char *key, bool required, double *out); /* > 0 */
bool tg_read_float(tg_config_reader *r, const char *key, float *out);                /* > 0, optional */
bool tg_read_bool(tg_config_reader *r, const char *key, bool *out);
/* *out, when present, is one of the n names: its index. */
bool tg_read_choice(tg_config_reader *r, const char *key, bool required, const char *const *names, int n,
                    int *out);
/* The key of one of the common numbers; NULL: there is none. */
const char *tg_arch_key(const tg_config_reader *r, tg_key key);
/* A list of a folder; *list is NULL when it is absent. */
bool tg_read_list(tg_config_reader *r, const char *key, const json_t **list);
/* Fails with r->err filled: what is not supported, and what was found of it. */
bool tg_refuse(tg_config_reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Which layers are local: as the file lists them, else all but every n-th; n = 0: all, n = 1: none. */
bool tg_read_local_layers(tg_config_reader *r, tg_config *c, int n);

/* Settings of rotation (rope.c). */
bool tg_read_rope(tg_config_reader *r, tg_config *c);

struct tg_arch {
    const char *gguf_name; /* general.architecture; NULL: no such file exists */
    const char *hf_name;   /* model_type */
    const tg_arch *like;   /* whose keys and names it has where its own are NULL; "" says that it has none */
    tg_norm_kind norm;
    tg_pos_kind pos;
    bool gated;         /* down(act(gate x) * up x) instead of down(act(up x)) */
    bool ff_is_4x;      /* where no size of the feed-forward is given */
    bool permuted;      /* a GGUF has the rows of Q and K so that neighbours rotate together */
    double rotated;     /* part of a head that rotates where a folder does not say; 0: all of it */
    /* what a folder's tensors are and a GGUF's are not */
    bool conv1d;        /* matrices are [n_in][n_out] */
    bool norm_plus_one; /* norms are 1 less than what is multiplied by */
    bool qkv_by_head;   /* the fused QKV has Q, K and V of a head, then those of the next */
    tg_config base;     /* the configuration before anything is read */
    bool (*configure)(tg_config_reader *r, tg_config *c); /* NULL, or what goes beyond the common keys */
    const char *hf_prefix;                                /* that a folder's names have or lack */
    const char *hf_key[TG_KEY_COUNT];
    const char *hf[TG_ROLE_COUNT];
    const char *gguf[TG_ROLE_COUNT]; /* other names than are usual in a GGUF */
};

extern const tg_arch tg_arch_gpt2, tg_arch_gpt_neo, tg_arch_gptj, tg_arch_gpt_neox, tg_arch_opt, tg_arch_phi,
    tg_arch_starcoder2, tg_arch_stablelm;
extern const tg_arch tg_arch_llama, tg_arch_mistral, tg_arch_mixtral, tg_arch_qwen2, tg_arch_qwen3,
    tg_arch_qwen3_moe, tg_arch_smollm3, tg_arch_olmo2, tg_arch_granite, tg_arch_phi3;
extern const tg_arch tg_arch_gemma, tg_arch_gemma2, tg_arch_gemma3, tg_arch_gemma3_text;
extern const tg_arch tg_arch_gpt_oss;

/* NULL when there is none. */
const tg_arch *tg_arch_find(tg_container_kind kind, const char *name);

/* The name of a role's tensors, or NULL: the architecture has none there. */
const char *tg_arch_role_name(const tg_arch *arch, tg_container_kind kind, tg_role role);

/* "gpt2, llama" into text[n] */
void tg_arch_list(tg_container_kind kind, char *text, size_t n);

/* Finds the architecture and reads its configuration; n_vocab is 0 where the file does not say it. *name is what the file says,
 * borrowed from the container; it is set even when the architecture is not supported. */
tg_status tg_config_load(const tg_container *c, const tg_arch **arch, const char **name, tg_config *config,
                         tg_error *err);

#endif
