/* score.c - evaluates token ids and prints what the logits say about them.
 *
 *     score [-p] [-f] [-k TYPE] [-t THREADS] [-b BATCH] MODEL < ids
 *
 * Three lines: the mean negative log-likelihood of the ids after the first; a hash of all the
 * logits' bits; after each id the most likely next one. -p keeps activations in float32, -f the
 * cache. The logits of a long text would fill hundreds of megabytes: they are taken in as they are
 * made. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tinygpt/tinygpt.h>

enum { MAX_IDS = 1 << 20 };

typedef struct score {
    const int32_t *id;
    int n;
    double nll;
    uint64_t hash; /* FNV-1a over 32-bit words */
    int32_t *best;
} score;

static bool take(void *arg, int row, const float *logits, int n_vocab)
{
    score *s = arg;
    int best = 0;
    for (int i = 0; i < n_vocab; i++) {
        uint32_t bits;
        memcpy(&bits, &logits[i], sizeof bits);
        s->hash = (s->hash ^ bits) * 0x100000001b3u;
        if (logits[i] > logits[best])
            best = i;
    }
    s->best[row] = best;
    if (row + 1 < s->n) {
        double sum = 0;
        for (int i = 0; i < n_vocab; i++)
            sum += exp((double)logits[i] - (double)logits[best]);
        s->nll += log(sum) + (double)logits[best] - (double)logits[s->id[row + 1]];
    }
    return true;
}

static int die(const char *what)
{
    fprintf(stderr, "score: %s\n", what);
    return 1;
}

static int run(const char *path, const tg_session_params *params, const int32_t *id, int n)
{
    tg_error err;
    tg_model *model = NULL;
    tg_session *session = NULL;
    score s = {.id = id, .n = n, .hash = 0xcbf29ce484222325u};
    uint8_t *want = malloc((size_t)n);
    s.best = malloc((size_t)n * sizeof *s.best);
    if (!want || !s.best)
        return die("out of memory");
    memset(want, 1, (size_t)n);
    const tg_batch batch = {.n = n, .id = id, .want = want};
    if (tg_model_load(&model, path, 0, &err) || tg_session_create(&session, model, params, &err) ||
        tg_eval(session, &batch, take, &s, &err))
        return die(err.message);
    printf("%.9f\n%016llx\n", s.nll / (n - 1), (unsigned long long)s.hash);
    for (int i = 0; i < n; i++)
        printf("%d%c", s.best[i], i + 1 < n ? ' ' : '\n');
    tg_session_free(session);
    tg_model_free(model);
    free(s.best);
    free(want);
    return 0;
}

int main(int argc, char **argv)
{
    tg_session_params params = {.type_k = TG_KV_F16, .type_v = TG_KV_F16};
    static int32_t id[MAX_IDS];
    int n = 0;
    for (int c; (c = getopt(argc, argv, "pfk:t:b:")) != -1;) {
        switch (c) {
        case 'p':
            params.precise = true;
            break;
        case 'f':
            params.type_k = params.type_v = TG_KV_F32;
            break;
        case 'k': /* f32, f16, bf16, q8_0 or q4, by number */
            params.type_k = params.type_v = (tg_kv_type)atoi(optarg);
            break;
        case 't':
            params.n_threads = atoi(optarg);
            break;
        case 'b':
            params.n_batch = atoi(optarg);
            break;
        default:
            return 2;
        }
    }
    while (n < MAX_IDS && scanf("%d%*[, ]", &id[n]) == 1)
        n++;
    if (optind + 1 != argc || n < 2)
        return die("usage: score [-p] [-f] [-t THREADS] [-b BATCH] MODEL < ids (two or more)");
    params.n_ctx = n;
    return run(argv[optind], &params, id, n);
}
