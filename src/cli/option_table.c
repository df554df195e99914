/* option_table.c - every option of every command: what it takes, its range, its default, its help. */
#include "cli/options.h"

/* To add an option: a field in tg_options and a row here. Rows of one command differ in name and
 * letter; tests/cli/test_options.c walks the table. Limits are those of the library. */

#define KV_TYPES "f32|f16|bf16|q8_0|q4" /* in the order of tg_kv_type */

#define GEN                            TG_CMD_GENERATE
#define CHA                            TG_CMD_CHAT
#define TOK                            TG_CMD_TOKENIZE
#define LOG                            TG_CMD_LOGITS
#define INS                            TG_CMD_INSPECT
#define BEN                            TG_CMD_BENCH
#define PPL                            TG_CMD_PERPLEXITY
#define SCO                            TG_CMD_SCORE
#define QUA                            TG_CMD_QUANTIZE
#define PUL                            TG_CMD_PULL
#define LIS                            TG_CMD_LIST
#define FIELD(f)                       offsetof(tg_options, f)
#define FLAG(f)                        TG_OPTION_FLAG, FIELD(f), NULL, 0, 0, NULL
#define TEXT(f, arg)                   TG_OPTION_TEXT, FIELD(f), arg, 0, 0, NULL
#define TEXTS(f, arg)                  TG_OPTION_TEXTS, FIELD(f), arg, 0, 0, NULL
#define INT(f, arg, min, max, preset)  TG_OPTION_INT, FIELD(f), arg, min, max, preset
#define REAL(f, arg, min, max, preset) TG_OPTION_REAL, FIELD(f), arg, min, max, preset
#define CHOICE(f, words, preset)       TG_OPTION_CHOICE, FIELD(f), words, 0, 0, preset
#define LIST(f, min, max, preset)      TG_OPTION_LIST, FIELD(f), "N,...", min, max, preset
#define CHOICES(f, words, preset)      TG_OPTION_CHOICES, FIELD(f), words, 0, 0, preset

/* clang-format off */
const tg_option tg_option_table[] = {
    {"prompt", 'p', GEN | LOG, TEXT(prompt, "STR"), "the text to start from"},
    {"prompt", 'p', SCO, TEXT(prompt, "STR"), "what the continuations, one a line of stdin or of FILE, continue"},
    {"file", 'f', SCO, TEXT(file, "FILE"), "read the continuations from FILE; - is stdin"},
    {"jsonl", 0, SCO, FLAG(jsonl),
     "lines are objects {\"prompt\": ..., \"continuation\": ...}, and so are those written: logprob, greedy, tokens, "
     "logprobs"},
    {"file", 'f', GEN | CHA | TOK | LOG | PPL, TEXT(file, "FILE"), "read the text from FILE; - is stdin"},
    {"no-stdin", 0, GEN | CHA | TOK | LOG | PPL, FLAG(no_stdin),
     "leave stdin alone; else what a pipe brings goes before the text given, and is the text when "
     "none is given"},
    {"chomp", 0, GEN | TOK | LOG | PPL, FLAG(chomp), "drop one newline (LF or CRLF) at the end of the text"},

    {"max-tokens", 'n', GEN, INT(n_max, "N", -1, 1048576, "256"),
     "tokens to generate; -1: to the end of the context"},
    {"max-tokens", 'n', CHA, INT(n_max, "N", -1, 1048576, "-1"),
     "tokens of an answer at most; -1: to the end of the context"},
    {"system", 0, CHA, TEXT(system, "STR"), "the system message, which says how answers are to be"},
    {"chat-template", 0, CHA, TEXT(chat_template, "NAME"),
     "how the conversation is written, instead of as the model says itself: chatml, gemma, llama2, llama3, mistral, "
     "phi3, zephyr, or a file with a Jinja template"},
    {"think", 0, CHA, CHOICE(think, "on|off", NULL),
     "tell the template to have the model think before it answers, or not; absent: as the model has it"},
    {"temp", 0, GEN | CHA, REAL(temp, "X", 0, 100, "0.8"),
     "temperature of the draw; 0 always takes the likeliest token"},
    {"top-k", 0, GEN | CHA, INT(top_k, "N", 0, 2147483647, "40"), "draw from the N likeliest; 0: from all"},
    {"typical", 0, GEN | CHA, REAL(typical, "X", 0, 1, "1"),
     "draw from the tokens of most typical information that have probability X together; 1: from all"},
    {"top-p", 0, GEN | CHA, REAL(top_p, "X", 0, 1, "0.95"),
     "draw from the fewest tokens that have probability X together; 1: from all"},
    {"min-p", 0, GEN | CHA, REAL(min_p, "X", 0, 1, "0.05"),
     "drop tokens less likely than X times the likeliest; 0: none"},
    {"repeat-penalty", 0, GEN | CHA, REAL(repeat_penalty, "X", 0.01, 100, "1"),
     "divide logits of tokens that were there by X, or multiply them where they are negative; 1: off"},
    {"presence-penalty", 0, GEN | CHA, REAL(presence_penalty, "X", -100, 100, "0"),
     "take X from the logits of tokens that were there"},
    {"frequency-penalty", 0, GEN | CHA, REAL(frequency_penalty, "X", -100, 100, "0"),
     "take X from them for each time they were there"},
    {"repeat-last-n", 0, GEN | CHA, INT(repeat_last_n, "N", -1, 1048576, "64"),
     "tokens of prompt and text that count as having been there; -1: all, 0: none"},
    {"logit-bias", 0, GEN | CHA, TEXTS(logit_bias, "ID+X"),
     "add X to the logit of a token, or take it: ID-X"},
    {"seed", 0, GEN | CHA, TG_OPTION_SEED, FIELD(seed), "N", 0, 0, NULL,
     "start of the random draws; the same seed gives the same text"},
    {"ignore-eos", 0, GEN, FLAG(ignore_eos), "go on where the model would end"},
    {"stop", 0, GEN | CHA, TEXTS(stop, "STR"),
     "end where the text would have STR, and do not write it. The name of a special "
     "token stands for that token, too"},
    {"lookup", 0, GEN | CHA, FLAG(lookup),
     "guess tokens from what came after the same words before, and verify many at once: the same text, "
     "sooner where it repeats its prompt"},
    {"draft", 0, GEN | CHA, INT(n_draft, "N", 1, 32, "7"), "tokens that --lookup guesses at most"},
    {"session", 0, GEN, TEXT(session, "FILE"),
     "save prompt and text with their cache in FILE at the end. If it is there already, a prompt that begins as the saved "
     "text does is not computed again so far, and an empty prompt goes on where that text ended"},
    {"session", 0, CHA, TEXT(session, "FILE"),
     "go on with the conversation saved in FILE, if it is there, and save it there at the end"},
    {"append", 0, GEN, FLAG(append), "the prompt is what follows the text of --session"},
    {"each-line", 0, GEN, FLAG(each_line),
     "each line of FILE or stdin is a prompt, text or an object {\"prompt\": ...} with OpenAI's other fields; they are "
     "continued together, and written in order: a line each, with \\n for newlines, or by --jsonl"},
    {"n-best", 0, GEN, INT(n_best, "N", 1, 1024, "1"), "texts for each prompt; without JSON each is a line"},
    {"parallel", 0, GEN, INT(n_parallel, "N", 1, 256, "16"), "texts that are continued together at most"},
    {"logprobs", 0, GEN, INT(n_logprobs, "N", -1, 1000, "-1"),
     "JSON tells the log-probabilities of each token, and of the N likeliest in its place; -1: none"},
    {"jsonl", 0, GEN, FLAG(jsonl), "write an object for each prompt, on a line"},
    {"stats", 0, CHA, FLAG(stats), "tell counts and speeds on stderr after each answer"},
    {"echo", 0, GEN, FLAG(echo), "write the prompt before the text"},
    {"stats", 0, GEN, FLAG(stats), "tell counts, speeds and peak memory on stderr at the end"},

    {"ids", 0, TOK, FLAG(ids), "the ids alone, on one line"},
    {"count", 0, TOK, FLAG(count), "the number of tokens alone"},
    {"decode", 0, TOK, TEXT(decode, "IDS"),
     "write the text of IDS, which commas or blanks separate; - reads them from stdin"},

    {"ids", 0, LOG, TEXT(ids_text, "IDS"),
     "token ids instead of a text, which commas or blanks separate; - reads them from stdin"},
    {"all", 0, LOG, FLAG(all), "a row for every position, not for the last alone"},
    {"format", 0, LOG, CHOICE(format, "text|json|npy", "text"),
     "text: the likeliest tokens of each row; json, npy: whole rows in the order of ids"},
    {"top", 0, LOG, INT(top, "N", 1, 4194304, "10"), "tokens shown of each row as text"},
    {"output", 'o', LOG, TEXT(output, "FILE"), "write to FILE; - is stdout"},

    {"special", 0, GEN | TOK | LOG | PPL | SCO, FLAG(special),
     "special tokens spelled in the text count as such, and are shown"},
    {"special", 0, CHA, FLAG(special),
     "special tokens spelled in messages count as such, and those of answers are shown"},
    {"no-bos", 0, GEN | TOK | LOG | PPL | SCO, FLAG(no_bos), "add no begin-of-text token"},

    {"tensors", 0, INS, FLAG(tensors), "list the tensors too"},
    {"json", 0, GEN | TOK | INS | PPL | PUL | LIS, FLAG(json), "write JSON"},

    {"n-prompt", 'p', BEN, LIST(n_prompts, 0, 1048576, "512"),
     "tokens of a prompt to evaluate; 0: no such test. A list is 1,2,8, with ranges 1-8, 1-9+2 or "
     "1-8*2, and all combinations of the lists are run"},
    {"n-gen", 'n', BEN, LIST(n_gens, 0, 1048576, "128"),
     "tokens to generate, one at a time; 0: no such test"},
    {"n-depth", 'd', BEN, LIST(n_depths, 0, 1048576, "0"), "tokens in the cache before"},
    {"repetitions", 'r', BEN, INT(n_repetitions, "N", 1, 1000, "5"), "runs of each test"},
    {"output", 'o', BEN, CHOICE(table, "md|csv|json|jsonl", "md"),
     "the format, as llama-bench has it (and not a file, as logits has it)"},
    {"no-warmup", 0, BEN, FLAG(no_warmup), "no run before those that count"},
    {"threads", 't', BEN, LIST(thread_counts, 0, 512, NULL),
     "threads; 0 or absent: OMP_NUM_THREADS, else one per core that may be used"},
    {"batch", 'b', BEN, LIST(batches, 1, 65536, "512"), "prompt tokens computed at once"},
    {"kv-type", 0, BEN, CHOICES(kv_types, KV_TYPES, "f16"),
     "number formats of the cached keys and values, separated by commas"},
    {"kv-type-k", 0, BEN, CHOICES(kv_types_k, KV_TYPES, NULL), "those of the keys alone"},
    {"kv-type-v", 0, BEN, CHOICES(kv_types_v, KV_TYPES, NULL),
     "those of the values alone"},

    {"type", 0, QUA, TEXT(type, "TYPE"),
     "number formats of the weights: Q4_K_M, Q8_0, F16 and others, as llama.cpp names them; help lists them"},
    {"requantize", 0, QUA, FLAG(requantize),
     "take weights that are quantised already, too: what was lost stays lost, and more is"},

    {"revision", 0, PUL, TEXT(revision, "REV"), "branch, tag or commit (default main)"},
    {"include", 0, PUL, TEXTS(include, "PATTERN"),
     "fetch the files of the repository that match, such as '*.json', instead of what a model needs"},
    {"exclude", 0, PUL, TEXTS(exclude, "PATTERN"), "leave out the files that match"},
    {"local-dir", 0, PUL, TEXT(local_dir, "FOLDER"), "put the files below FOLDER, not into the cache"},
    {"dry-run", 0, PUL, FLAG(dry_run), "list the files that would be fetched, and fetch none"},
    {"force", 0, PUL, FLAG(force), "fetch anew what is here already"},
    {"offline", 0, PUL, FLAG(offline), "make no request: tell the path of what is here, or fail"},
    {"sha256", 0, PUL, TEXT(sha256, "HEX"), "the digest that the one file must have"},
    {"max-wait", 0, PUL, REAL(max_wait, "SECONDS", 0, 86400, TG_MAX_WAIT),
     "the longest that a server which is busy may ask to wait"},

    {"catalog", 0, LIS, FLAG(catalog), "list the names that pull knows instead"},

    {"stride", 0, PPL, INT(stride, "N", 1, 1048576, NULL),
     "tokens by which the window over the text moves on; absent: half the context"},
    {"save-logits", 0, PPL, TEXT(save_logits, "FILE"),
     "write what was predicted, a row of float32 for each token, to a safetensors file"},
    {"kl", 0, PPL, TEXT(kl, "FILE"),
     "tell how far the predictions are from those saved in FILE: the Kullback-Leibler divergence"},

    {"man", 0, TG_CMD_HELP, FLAG(man), "write the manual page, of all commands, in roff"},

    {"context", 'c', PPL, INT(n_ctx, "N", 1, 1048576, NULL),
     "positions of the window over the text; absent: 2048, but at most what the model was trained for"},
    {"context", 'c', SCO, INT(n_ctx, "N", 1, 1048576, NULL),
     "tokens that a prompt and a continuation may have; absent: what the model was trained for"},
    {"context", 'c', CHA, INT(n_ctx, "N", 1, 1048576, NULL),
     "tokens of the conversation that the model sees; the oldest turns give way. Absent: 8192, but at most what the "
     "model was trained for"},
    {"context", 'c', GEN | LOG | INS, INT(n_ctx, "N", 1, 1048576, NULL),
     "positions that the cache holds; by default what the run needs, rounded up to 256, but at most "
     "what the model was trained for"},
    {"batch", 'b', GEN | CHA | LOG | INS | PPL | SCO, INT(n_batch, "N", 1, 65536, "512"),
     "prompt tokens computed at once"},
    {"threads", 't', GEN | CHA | LOG | INS | PPL | SCO | QUA, INT(n_threads, "N", 0, 512, NULL),
     "threads; 0 or absent: OMP_NUM_THREADS, else one per core that may be used"},
    {"kv-type", 0, GEN | CHA | LOG | INS | PPL | SCO, CHOICE(kv_type, KV_TYPES, "f16"),
     "number format of the cached keys and values"},
    {"kv-type-k", 0, GEN | CHA | LOG | INS | PPL | SCO, CHOICE(kv_type_k, KV_TYPES, NULL),
     "that of the keys alone"},
    {"kv-type-v", 0, GEN | CHA | LOG | INS | PPL | SCO, CHOICE(kv_type_v, KV_TYPES, NULL),
     "that of the values alone"},
    {"window", 0, GEN | CHA | LOG | PPL | SCO, INT(window, "N", 1, 1048576, NULL),
     "attend to the last N positions only; absent: as the model has it"},
    {"keep", 0, GEN | CHA | LOG | PPL | SCO, INT(keep, "N", 0, 1048576, NULL),
     "under a window, attend to the first N positions as well"},
    {"attention", 0, GEN | CHA | LOG | PPL | SCO | BEN, TEXT(attention, "NAME"),
     "the attention algorithm, for comparison; help lists them (default auto)"},
    {"precise", 0, GEN | CHA | LOG | INS | PPL | SCO | BEN, FLAG(precise), "keep activations in float32 on quantised weights"},
    {"blas", 0, GEN | CHA | LOG | PPL | SCO | BEN, CHOICE(blas, "on|off", "on"),
     "off: float weights give the same bits for any batch size"},

    {"interleave", 0, GEN | CHA | LOG | INS | PPL | SCO | BEN, FLAG(interleave),
     "lay quantised weights anew at the start, as products read them: quicker, but loading takes longer, and their "
     "memory is no more shared with other processes"},

    {"model", 'm', TG_CMD_MODEL, TEXT(model, "MODEL"),
     "a GGUF file, a Hugging Face folder, the name of a pulled model, or hf:REPO[:FILE], which is "
     "pulled when it is not here; else TINYGPT_MODEL, else the model that comes with tinygpt"},
    {"no-mmap", 0, TG_CMD_MODEL, FLAG(no_mmap), "read the model instead of mapping it"},
    {"color", 0, TG_CMD_ALL, CHOICE(color, "auto|always|never", "auto"),
     "colours; auto: on a terminal, unless NO_COLOR is set"},
    {"quiet", 'q', TG_CMD_ALL, FLAG(quiet), "errors alone on stderr"},
    {"verbose", 'v', TG_CMD_ALL, FLAG(verbose), "tell what was chosen"},
    {"help", 'h', TG_CMD_ALL, FLAG(help), "this text"},
    {"version", 0, TG_CMD_ALL, FLAG(version), "version and build"},
};
/* clang-format on */
enum { N_OPTIONS = sizeof tg_option_table / sizeof tg_option_table[0] };
_Static_assert(N_OPTIONS <= (int)TG_OPTIONS_MAX, "raise TG_OPTIONS_MAX");
const int tg_n_options = N_OPTIONS;
