/* tinygpt.h - the public interface of libtinygpt.
 *
 *     prompt bytes -> token ids -> prefill -> decode -> logits -> sampled id -> bytes
 *
 * A tg_model is read-only once loaded and may be shared by sessions and threads. A tg_session owns
 * a KV cache, scratch memory and a thread team, and is used by one caller at a time.
 *
 * Ownership: what a function returns through a `tg_x **` belongs to the caller and is given back
 * with the matching `..._free` (arrays: tg_free). `const` pointers are borrowed and live as long as
 * the object they were asked of. Freeing NULL is fine.
 *
 * Errors: whatever the world can break (files, memory, arguments) returns a tg_status, TG_OK for
 * success; a failure fills `err`, which may be NULL and needs no preparation. After one, nothing was
 * created and the object called is as it was before. The library never prints, exits or aborts.
 */
#ifndef TINYGPT_H
#define TINYGPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TG_VERSION "0.1.0"

/* The values are the exit statuses of the command line. */
typedef enum tg_status {
    TG_OK = 0,
    TG_E_USAGE = 2,     /* an argument out of range */
    TG_E_MODEL = 3,     /* malformed or unsupported model, configuration or tokenizer */
    TG_E_SESSION = 4,   /* session file rejected */
    TG_E_NETWORK = 5,   /* network or HTTP failure */
    TG_E_INTEGRITY = 6, /* size or digest mismatch */
    TG_E_RESOURCE = 7,  /* memory, disk, threads, descriptors */
    TG_E_NUMERIC = 8,   /* non-finite logits */
    TG_E_IO = 9,        /* file missing, unreadable, or changed while in use */
    TG_E_STOPPED = 10   /* the caller's sink, or tg_session_interrupt, asked to stop */
} tg_status;

/* What happened, as one line without a newline: "<file>: <what> (found X, allowed Y, byte offset Z)".
 * Bytes that came from a file are escaped as \xNN and cut at 200 bytes. */
typedef struct tg_error {
    tg_status status;
    char message[1024];
} tg_error;

void tg_free(void *p);

/* ---- Model ------------------------------------------------------------------------------- */

typedef struct tg_model tg_model;

enum {
    TG_LOAD_NO_MMAP = 1 << 0,   /* read the file into memory: immune to changes under a mapping */
    TG_LOAD_META_ONLY = 1 << 1, /* container and configuration alone, for inspection: a model whose
                                   architecture is unknown still opens; it cannot be evaluated */
    TG_LOAD_TOKENIZER = 1 << 2, /* the tokenizer alone, whatever the model is: texts and tokens, no more */
    TG_LOAD_INTERLEAVED = 1 << 3, /* lay quantised weights anew, in the order in which products read them:
                                     quicker, but no more shared between processes */
};

/* Opens a GGUF file or a Hugging Face folder (config.json, *.safetensors, tokenizer files). */
tg_status tg_model_load(tg_model **model, const char *path, unsigned flags, tg_error *err);
void tg_model_free(tg_model *model);

typedef struct tg_model_info {
    const char *path;
    const char *format;       /* "GGUF v3", "safetensors", ... */
    const char *architecture; /* as the file names it */
    const char *name;         /* general.name, or NULL */
    const char *license;      /* general.license, or NULL */
    const char *file_type;    /* general.file_type by its name ("Q4_K_M"), or NULL */
    bool supported;           /* false only under TG_LOAD_META_ONLY */
    const char *unsupported;  /* why not, or why its tokenizer is not; NULL: nothing is */
    int n_layer, n_embd, n_head, n_head_kv, head_dim, n_ff, n_vocab;
    int n_ctx_train;        /* positions the model was trained for */
    bool positions_bounded; /* learned positions: nothing can be evaluated past n_ctx_train */
    float rope_theta;       /* 0 without rotary positions */
    int window;             /* positions that some or all layers attend to; 0: all attend to everything */
    int n_expert, n_expert_used; /* 0: no mixture of experts */
    float norm_eps;
    uint64_t n_params;
    uint64_t weight_bytes;
    uint64_t interleaved_bytes; /* of memory for what is laid anew under TG_LOAD_INTERLEAVED */
    int n_tensors;
} tg_model_info;

void tg_model_get_info(const tg_model *model, tg_model_info *info);

typedef struct tg_tensor_info {
    const char *name;
    const char *type; /* "F32", "Q8_0", ... */
    int n_dim;
    uint64_t dim[4]; /* row-major, dim[0] the outermost */
    uint64_t n_bytes;
} tg_tensor_info;

/* Tensor `i` of info.n_tensors, in the file's order. */
void tg_model_get_tensor(const tg_model *model, int i, tg_tensor_info *info);

/* The path of the file that is mapped at an address, or NULL. Safe in a signal handler: SIGBUS comes, from whatever
 * reads a model, when its file is cut short beneath the mapping or its disk fails. */
const char *tg_mapped_file(const void *address);

/* ---- Tokens ------------------------------------------------------------------------------ */

enum {
    TG_TOK_BOS = 1 << 0,     /* add the tokens that the model's own policy puts around a text */
    TG_TOK_SPECIAL = 1 << 1, /* text that spells a special token becomes that token */
};

/* Encodes any bytes. *ids (tg_free) holds *n_ids tokens; *n_dropped, which may be NULL, counts the
 * bytes that the vocabulary cannot express and that were left out, as the reference does. */
tg_status tg_tokenize(const tg_model *model, const void *text, size_t n_bytes, unsigned flags,
                      int32_t **ids, size_t *n_ids, size_t *n_dropped, tg_error *err);

/* The bytes that `id` stands for: *n_bytes of them, possibly none; for a special token its name.
 * An id out of range has no bytes. Not terminated by a NUL. */
const char *tg_token_bytes(const tg_model *model, int32_t id, size_t *n_bytes);

typedef enum tg_token_kind {
    TG_TOKEN_NORMAL = 0,
    TG_TOKEN_SPECIAL, /* control tokens: not shown to people unless asked for */
    TG_TOKEN_UNUSED,  /* a hole in the vocabulary: never sampled */
} tg_token_kind;

tg_token_kind tg_token_get_kind(const tg_model *model, int32_t id);
bool tg_token_is_eog(const tg_model *model, int32_t id); /* does it end a generation? */

typedef struct tg_tokenizer_info {
    const char *model;    /* "BPE" (byte-level), "SentencePiece BPE" */
    const char *pre;      /* name of the pre-tokenizer's pattern; "each space" or "nothing" without one */
    bool pre_assumed;     /* a GGUF from before tokenizer.ggml.pre: GPT-2's pattern, which may be wrong */
    int n_tokens;         /* vocabulary entries, added tokens included */
    int n_merges;
    size_t longest;       /* bytes of the longest token */
    int32_t bos, eos;     /* -1 when there is none */
    bool add_bos, add_eos;
    bool strips_space;    /* a text gets a space before it when encoded: to decode one from its beginning,
                             take one away */
} tg_tokenizer_info;

void tg_model_get_tokenizer(const tg_model *model, tg_tokenizer_info *info);

/* ---- Conversations ----------------------------------------------------------------------- */

typedef struct tg_chat_message {
    const char *role; /* "system", "user", "assistant" */
    const char *content;
    size_t n_bytes; /* of the content */
} tg_chat_message;

typedef enum tg_thinking { TG_THINKING_DEFAULT = 0, TG_THINKING_ON, TG_THINKING_OFF } tg_thinking;

typedef struct tg_chat_params {
    const char *jinja; /* a template; NULL: the one that the model comes with */
    bool closed;          /* leave the answer to the last message out, instead of opening it */
    bool special;         /* special tokens spelled in the messages count as such: to be left false for texts of others */
    tg_thinking thinking; /* what the template is told as enable_thinking; the default is its own */
    int64_t now;          /* seconds since 1970, where a template asks for the date; 0: by the clock */
} tg_chat_params;

/* A conversation as the model's chat template writes it, the same bytes as apply_chat_template of transformers:
 * *text (tg_free), of *n_bytes. Templates are untrusted; they see the messages and the date, and their time and
 * memory are bounded. TG_E_MODEL when there is none, or one that is not understood; TG_E_USAGE when it refuses the
 * messages, as some do a system's or two of one role in a row. */
tg_status tg_chat_text(const tg_model *model, const tg_chat_params *params, const tg_chat_message *messages, size_t n,
                       char **text, size_t *n_bytes, tg_error *err);

/* The same as tokens: *ids (tg_free), *n_ids of them, with one BOS if the template or the model has it. Text of the
 * messages that spells a special token stays text. */
tg_status tg_chat_tokens(const tg_model *model, const tg_chat_params *params, const tg_chat_message *messages, size_t n,
                         int32_t **ids, size_t *n_ids, tg_error *err);

/* The special token that the template writes behind an answer, or -1. Beside those of tg_token_is_eog, it ends one. */
int32_t tg_chat_end(const tg_model *model, const tg_chat_params *params);

/* The template that the model comes with, or NULL. */
const char *tg_model_chat_template(const tg_model *model);

/* Templates for models that come without: name `i` ("chatml") and its text; NULL behind the last. */
const char *tg_chat_template(int i, const char **text);

/* ---- Evaluation -------------------------------------------------------------------------- */

typedef struct tg_session tg_session;

typedef enum tg_kv_type {
    TG_KV_F32 = 0,
    TG_KV_F16 = 1,
    TG_KV_BF16 = 2,
    TG_KV_Q8_0 = 3, /* 8 bits a number and a scale for 32 of them */
    TG_KV_Q4 = 4,   /* rotated; 4 bits a number of the values and 5 of the keys, and scales likewise */
} tg_kv_type;

typedef struct tg_session_params {
    int n_threads;     /* 0: the smallest of affinity mask, cgroup quota and physical cores */
    int n_ctx;         /* positions of all sequences together; rounded up to whole blocks */
    int n_ctx_seq;     /* positions of each sequence at most, which scaled rotation may depend on; 0: n_ctx */
    int n_batch;       /* rows evaluated at once; 0: 512 */
    int n_seq_max;     /* sequences alive at once; 0: 1 */
    tg_kv_type type_k; /* number format of the cached keys */
    tg_kv_type type_v; /* and values */
    bool precise;      /* keep activations in float32 on quantised weights */
    bool no_blas;      /* own kernels only: float weights then give the same bits for any batch */
    int window;        /* a token attends to so many last positions, itself included; 0: as the model has it */
    int keep;          /* and, under a window, to so many first ones (attention sinks) */
    const char *attention; /* a name of tg_attention_name; NULL: "auto" */
} tg_session_params;

/* The attention algorithms: name `i` and, through `summary` unless NULL, what it is; NULL behind the last.
 * The first, "auto", serves; the others are there for comparison and make no promise of same bits, and most
 * know no windows. */
const char *tg_attention_name(int i, const char **summary);

/* Takes fewer threads than asked for where there are no more to be had, or no room for them: tg_session_info tells. */
tg_status tg_session_create(tg_session **session, const tg_model *model,
                            const tg_session_params *params, tg_error *err);
void tg_session_free(tg_session *session);

/* Bytes that a session of these parameters needs beside the weights: the cache when full, and the
 * scratch arena; 0 and 0 where tg_session_create would refuse the parameters. */
void tg_session_memory(const tg_model *model, const tg_session_params *params, uint64_t *kv_bytes,
                       uint64_t *scratch_bytes);

typedef struct tg_session_info {
    int n_threads, n_ctx, n_ctx_seq, n_batch, n_seq_max;
    int n_threads_asked;    /* more than n_threads where the system had no more of them, or no memory for them */
    int n_block;            /* positions by which sequences take room in the cache */
    uint64_t kv_bytes, scratch_bytes;
    uint64_t n_saturated;   /* values beyond the range of a narrow cache type, clamped so far */
    const char *isa;        /* the kernels' instruction-set level */
} tg_session_info;

void tg_session_get_info(const tg_session *session, tg_session_info *info);

/* Sequences. Ids are 0 .. n_seq_max - 1; sequence 0 exists from the start. */
tg_status tg_seq_new(tg_session *session, int *seq, tg_error *err);
tg_status tg_seq_fork(tg_session *session, int from, int *seq, tg_error *err); /* shares the prefix */
tg_status tg_seq_truncate(tg_session *session, int seq, int n_tokens, tg_error *err);
void tg_seq_free(tg_session *session, int seq);
int tg_seq_length(const tg_session *session, int seq);

/* Rows to evaluate, each one token of some sequence. The rows of one sequence stand in the order of
 * their positions, and the first continues where that sequence ends: pos[i] == its length. */
typedef struct tg_batch {
    int n;
    const int32_t *id;
    const int32_t *seq;  /* NULL: all of sequence 0 */
    const int32_t *pos;  /* NULL: each sequence is continued */
    const uint8_t *want; /* rows whose logits are wanted; NULL: the last row alone */
} tg_batch;

/* Receives logits float32 [n_vocab] of batch row `row`, in ascending order of rows, from the calling
 * thread; they live for the call. Returning false stops the evaluation with TG_E_STOPPED. */
typedef bool (*tg_logits_sink)(void *arg, int row, const float *logits, int n_vocab);

/* Appends the batch to its sequences. Any size is taken; n_batch rows are computed at a time. On an
 * error the sequences are as long as before. */
tg_status tg_eval(tg_session *session, const tg_batch *batch, tg_logits_sink sink, void *arg,
                  tg_error *err);

/* Safe in a signal handler: a running tg_eval ends with TG_E_STOPPED at the next layer. */
void tg_session_interrupt(tg_session *session);

/* ---- Saved sessions ---------------------------------------------------------------------- */

/* A text, and a file with it and what the cache has of it: who goes on from there computes none of that again, and gets
 * the same bits as if nothing had been between. */
typedef struct tg_saved_text {
    const int32_t *ids; /* [n_ids] */
    size_t n_ids;
    size_t n_cached; /* the first of them, which are in the cache; the rest is to be evaluated */
    uint64_t seed, stream, n_drawn; /* of the sampler that goes on: fields of tg_sampling */
    const char *note; /* [n_note] bytes of the caller's own, up to 64 MiB */
    size_t n_note;
} tg_saved_text;

/* Writes the text, and its cache from a sequence that begins with it, of a session of this model. The file has mode
 * 0600 and appears complete, in the place of an old one, or not at all: TG_E_RESOURCE for want of space, TG_E_IO for the
 * rest. TG_E_IO, too, when the model's file was overwritten since it was loaded. */
tg_status tg_session_save(const tg_session *session, const tg_model *model, int seq, const tg_saved_text *text,
                          const char *path, tg_error *err);

/* A saved session as it is read. Nothing in it is trusted: TG_E_SESSION, and what is wrong, for whatever is not a whole
 * file that belongs to this model and its tokenizer; TG_E_IO when it is not there or cannot be read. */
typedef struct tg_saved tg_saved;

tg_status tg_saved_open(tg_saved **saved, const tg_model *model, const char *path, tg_error *err);
void tg_saved_free(tg_saved *saved);
const tg_saved_text *tg_saved_get_text(const tg_saved *saved); /* borrowed */

/* Fills an empty sequence with what the file has of the cache. TG_E_SESSION where it is damaged, the text is longer than
 * a sequence may be, or the session computes otherwise: other types in the cache, window, attention, precise, BLAS for
 * float weights, or another rotation because of the context. On an error the sequence is empty. */
tg_status tg_session_restore(tg_session *session, int seq, tg_saved *saved, tg_error *err);

/* TG_E_IO when a mapped file of the model was overwritten in place since it was loaded. */
tg_status tg_model_check_unchanged(const tg_model *model, tg_error *err);

/* TG_E_USAGE when a new file at `path` would take the place of one that is read: of the model's, or of the n others
 * (those that are NULL, or not there, apart), or the path is empty. Links between them hide nothing. */
tg_status tg_model_check_output(const tg_model *model, const char *path, const char *const *others, size_t n,
                                tg_error *err);

/* ---- What the machine can do ------------------------------------------------------------- */

/* Rates of n_threads threads together, each the best of a few runs of a loop that does nothing else.
 * Measuring takes part of a second, and memory for a while: 512 MiB, or less where memory is short. */
typedef struct tg_machine {
    int n_threads;
    double read_bytes_per_s; /* from memory */
    double f32_flops;        /* multiply-adds of float32 in registers, a second; each counts two */
    double int8_ops;         /* the same of 8-bit integers, by the instruction of quantised products */
} tg_machine;

tg_status tg_machine_measure(int n_threads, tg_machine *machine, tg_error *err); /* 0: as sessions have it */

/* Reads once, by the session's threads in a loop that does nothing else, what evaluating one more token
 * of the sequence would read: the matrices and vectors of every layer, the output matrix (of the token
 * embedding no more), and the keys and values that the token attends to, in whole groups of 16. No
 * evaluation can take less time than that. */
typedef struct tg_read {
    uint64_t weight_bytes, kv_bytes;
    double seconds;
} tg_read;

tg_status tg_session_read(tg_session *session, int seq, tg_read *read, tg_error *err);

/* The operations, two a multiply-add, that evaluating n_tokens behind n_past others of a sequence takes
 * with the logits of the last: products with 8-bit activations, and those in float32, attention's
 * among them. */
typedef struct tg_work {
    uint64_t f32_flops, int8_ops;
} tg_work;

void tg_session_work(const tg_session *session, int n_past, int n_tokens, tg_work *work);

/* ---- Sampling ---------------------------------------------------------------------------- */

typedef struct tg_sampler tg_sampler;

/* Added to the logit of a token. */
typedef struct tg_logit_bias {
    int32_t id;
    float by;
} tg_logit_bias;

/* Steps in this order, each on what the one before left; none leaves less than one token: biases,
 * penalties, top-k, typical, top-p, min-p, temperature, draw. */
typedef struct tg_sampling {
    float temp;    /* below 1e-6: the largest logit, the lowest id on ties */
    int top_k;     /* the likeliest; 0: all */
    float typical; /* those whose information is nearest to the expected, so many that they have this
                      probability together (Meister et al. 2022); 0 or 1: off */
    float top_p;   /* the likeliest that have this probability together; 1: off */
    float min_p;   /* those at least so many times as probable as the likeliest; 0: off */
    /* Of every token that is among the last `last_n` of prompt and text (-1: all; 0: no penalties), n times:
     * a positive logit is divided by `repeat`, a negative one multiplied (0 or 1: off), and n * frequency
     * and presence are taken away. */
    int last_n;
    float repeat, presence, frequency;
    const tg_logit_bias *bias; /* [n_bias], needed during the creation of the sampler alone */
    int n_bias;
    bool ignore_eos; /* tokens that end a generation are never drawn */
    uint64_t seed;   /* with `stream`, names one sequence of draws */
    uint64_t stream;
    uint64_t n_drawn; /* of which so many have been made: this sampler goes on behind them */
} tg_sampling;

#define TG_SAMPLING_DEFAULT                                                                        \
    {                                                                                              \
        .temp = 0.8f, .top_k = 40, .top_p = 0.95f, .min_p = 0.05f, .last_n = 64                    \
    }

/* Tokens that the model's vocabulary does not use are never drawn. */
tg_status tg_sampler_create(tg_sampler **sampler, const tg_model *model, const tg_sampling *params,
                            tg_error *err);
void tg_sampler_free(tg_sampler *sampler);
void tg_sampler_ban(tg_sampler *sampler, int32_t id); /* never draw `id` */
void tg_sampler_accept(tg_sampler *sampler, int32_t id); /* a token of the prompt, for the penalties */
/* Draws the next token, and accepts it. */
int32_t tg_sampler_draw(tg_sampler *sampler, const float *logits, int n_vocab);

typedef struct tg_top {
    float logit;
    int32_t id;
} tg_top;

/* The k largest of logits [n_vocab] into top, which has room for k: descending, the lowest id first
 * among equals, -inf last, NaN never. Returns how many there are, at most k.
 * *lse, unless `lse` is NULL, becomes log sum e^logit over the whole row: an entry's log-probability
 * is its logit - *lse. It is -inf when every logit is, NaN when one is NaN or +inf. */
int tg_top_k(const float *logits, int n_vocab, int k, tg_top *top, float *lse);

/* ---- Text as it streams ------------------------------------------------------------------ */

/* Holds back the bytes of an incomplete UTF-8 character. */
typedef struct tg_stream {
    unsigned char held[4];
    int n_held;
} tg_stream;

/* Takes n bytes and puts into `out`, which has room for n + 3, all that is whole; an invalid byte
 * counts as whole. Returns the number of bytes put. */
size_t tg_stream_push(tg_stream *stream, const char *bytes, size_t n, char *out);
/* Puts what is left, at most 3 bytes. */
size_t tg_stream_flush(tg_stream *stream, char *out);

/* ---- Generating -------------------------------------------------------------------------- */

/* Continues texts. Each step is one evaluation for all of them together, so that weights are read once, and
 * what the beginnings of prompts have in common with each other, or with what is still in the cache, is not
 * computed again. With quantised weights a text is the same, byte for byte, as it is alone.
 *
 * A generator has the session, and all its sequences, to itself; both are used by one caller at a time. */
typedef struct tg_generator tg_generator;

typedef enum tg_finish {
    TG_FINISH_NONE = 0,
    TG_FINISH_END,     /* the model ended the text */
    TG_FINISH_STOP,    /* a stop string came */
    TG_FINISH_LENGTH,  /* n_max tokens are there */
    TG_FINISH_CONTEXT, /* prompt and text fill the positions that there are */
} tg_finish;

/* What one token brings. The pieces' texts, one behind the other, are the text. */
typedef struct tg_piece {
    int32_t id;       /* the token drawn; -1: none, where n_max or what is left of the context is 0 */
    const char *text; /* n_bytes that are certain now: what may be the beginning of a stop string waits */
    size_t n_bytes;
    size_t at;        /* where the token's own bytes begin in the text; behind its end: a stop has cut them off */
    float logit, lse; /* of the token, and log sum e^logit of its row: both 0 unless n_top is given */
    const tg_top *top; /* the n_top likeliest of that row, as of tg_top_k, before biases and all else */
    int n_top;
    tg_finish finish; /* not NONE: this is the last piece. At an END the id is the token that ended the text and
                         is not part of it */
} tg_piece;

/* Returning false ends this text alone. A piece lives for the call, in which the generator may not be used. */
typedef bool (*tg_piece_sink)(void *arg, const tg_piece *piece);

typedef struct tg_stop_text {
    const char *bytes; /* 1 to 4096 of them. The name of a special token stands for that token, too */
    size_t n;
} tg_stop_text;

typedef struct tg_request {
    const int32_t *ids; /* [n_ids] the prompt, one token at least */
    size_t n_ids;
    tg_sampling sampling;
    int n_max; /* tokens; -1: as many as there are positions for */
    const tg_stop_text *stop; /* [n_stop]: where one comes in the text, the text ends before it */
    int n_stop;
    bool special; /* special tokens are part of the text */
    int n_top;    /* likeliest tokens to tell of every row, 0: the one drawn alone; -1: nothing, it costs time */
    int n_draft;  /* tokens guessed at most, from what came after the same words before, and verified in one
                     evaluation: prompt lookup, which changes speed and no text; 0: none. Texts that are active
                     together have as many rows together; seven serve well */
    tg_piece_sink sink;
    void *arg;
} tg_request;

enum { TG_DRAFT_MAX = 32 };

typedef struct tg_generator_info {
    int n_slots;           /* texts at once: the session's n_seq_max */
    int n_active;          /* now */
    int n_reading;         /* of these, whose prompt is not evaluated yet */
    uint64_t n_prompt;     /* tokens of their prompts */
    uint64_t n_prompt_done; /* and those of them that are in the cache */
    uint64_t n_reused;     /* tokens of all prompts so far that had been computed before */
    uint64_t n_drafted, n_accepted; /* tokens guessed so far, and those that were right */
} tg_generator_info;

tg_status tg_generator_create(tg_generator **generator, const tg_model *model, tg_session *session, tg_error *err);
void tg_generator_free(tg_generator *generator);
void tg_generator_get_info(const tg_generator *generator, tg_generator_info *info);

/* Begins a text, for which a slot must be free; everything but `arg` is copied. TG_E_USAGE where the prompt is longer
 * than a sequence may be. */
tg_status tg_generator_add(tg_generator *generator, const tg_request *request, tg_error *err);

/* Evaluates a batch: a token of every text whose prompt is read, and of prompts as much as n_batch allows. On an
 * error, an interruption for one, no text has lost anything: another step goes on. */
tg_status tg_generator_step(tg_generator *generator, tg_error *err);

/* Saves a text as tg_session_save does, with as much of it as any cache has; n_cached is found. */
tg_status tg_generator_save(const tg_generator *generator, const tg_saved_text *text, const char *path, tg_error *err);

/* Takes the cache of a saved text, for which a slot must be free: prompts that begin like the text go on from it. */
tg_status tg_generator_restore(tg_generator *generator, tg_saved *saved, tg_error *err);

/* Ends all texts, without a piece; what is in the cache can still be shared. */
void tg_generator_cancel(tg_generator *generator);

/* ---- Quantising -------------------------------------------------------------------------- */

/* The types that tg_quantize knows: name `i` ("Q4_K_M") and, through `summary` unless NULL, what it is; NULL
 * behind the last. Names and rules, which tensors get more bits than others, are llama.cpp's. */
const char *tg_quantize_type(int i, const char **summary);

typedef struct tg_quantize_params {
    const char *type; /* letters of either case */
    bool requantize;  /* take tensors that are quantised already, too: their errors add up */
    int n_threads;    /* 0: as sessions have it; the result is the same for any number */
    /* Called every few megabytes with bytes done of all; false ends it with TG_E_STOPPED. May be NULL. */
    bool (*progress)(void *arg, uint64_t done, uint64_t of);
    void *arg;
} tg_quantize_params;

typedef struct tg_quantize_result {
    uint64_t n_params;            /* numbers in all tensors */
    uint64_t in_bytes, out_bytes; /* that they take */
    int n_tensors, n_quantized;
    int n_fell_back; /* tensors in another type than the rules give, since their rows are no whole blocks of it */
} tg_quantize_result;

/* Writes the model of a GGUF file or a Hugging Face folder to the GGUF file `out`, in other number formats. `out`
 * appears when it is complete, and takes the place of a GGUF file of that name; otherwise nothing is left of it. It
 * takes memory for a few megabytes of one tensor. *result may be NULL. */
tg_status tg_quantize(const char *in, const char *out, const tg_quantize_params *params, tg_quantize_result *result,
                      tg_error *err);

/* ---- Build ------------------------------------------------------------------------------- */

/* One line: version, compiler, instruction-set level, BLAS core. */
const char *tg_build_info(void);

#ifdef __cplusplus
}
#endif
#endif
