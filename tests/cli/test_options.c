/* test_options.c - R18, R20 of the fault catalogue and more: the option table, walked row by row; number parsing; near misses; parsing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "cli/options.h"

/* Parses words given as a list; argv[0] is put before them. */
static int parse(tg_options *opt, tg_error *err, const char *command, int n,
                 const char *const *words)
{
    char *argv[16] = {0};
    argv[0] = (char *)(uintptr_t) "command";
    for (int i = 0; i < n; i++)
        argv[1 + i] = (char *)(uintptr_t)words[i];
    *err = (tg_error){0};
    return tg_options_parse(opt, tg_command_find(command, NULL), n + 1, argv, err);
}

#define PARSE(command, ...)                                                                        \
    parse(&opt, &err, command, (int)(sizeof(const char *[]){__VA_ARGS__} / sizeof(char *)),        \
          (const char *[]){__VA_ARGS__})

static bool is_numeric(const tg_option *o)
{
    return o->kind == TG_OPTION_INT || o->kind == TG_OPTION_REAL || o->kind == TG_OPTION_LIST;
}

/* ---- the table --------------------------------------------------------------------------------
 */

static void test_rows_are_sound(void **state)
{
    (void)state;
    for (int i = 0; i < tg_n_options; i++) {
        const tg_option *o = &tg_option_table[i];
        assert_true(strlen(o->name) > 1);
        assert_true(o->commands != 0 && (o->commands & ~(unsigned)TG_CMD_ALL) == 0);
        assert_true(o->field < sizeof(tg_options));
        assert_true(strlen(o->help) > 0);
        assert_int_equal(o->kind == TG_OPTION_FLAG, o->arg == NULL);
        if (is_numeric(o))
            assert_true(o->min < o->max);
    }
}

static void test_names_and_letters_differ_within_a_command(void **state)
{
    (void)state;
    for (int i = 0; i < tg_n_options; i++)
        for (int j = 0; j < i; j++) {
            const tg_option *a = &tg_option_table[i], *b = &tg_option_table[j];
            if (!(a->commands & b->commands))
                continue;
            assert_string_not_equal(a->name, b->name);
            assert_true(!a->letter || a->letter != b->letter);
        }
}

/* Every row is accepted by each of its commands, and its preset is the value without it. */
static void test_every_row_parses(void **state)
{
    tg_options opt;
    tg_error err;
    (void)state;
    for (int i = 0; i < tg_n_options; i++)
        for (int c = 0; c < tg_n_commands; c++) {
            const tg_option *o = &tg_option_table[i];
            char word[160], value[64] = "0";
            if (!(o->commands & tg_commands[c].bit))
                continue;
            if (is_numeric(o))
                snprintf(value, sizeof value, "%.0f", o->max);
            else if (o->kind == TG_OPTION_CHOICE || o->kind == TG_OPTION_CHOICES)
                snprintf(value, sizeof value, "%.*s", (int)strcspn(o->arg, "|"), o->arg);
            if (o->kind == TG_OPTION_FLAG)
                snprintf(word, sizeof word, "--%s", o->name);
            else
                snprintf(word, sizeof word, "--%s=%s", o->name, value);
            assert_int_equal(PARSE(tg_commands[c].name, word), TG_OK);
            if (o->preset) {
                snprintf(word, sizeof word, "--%s=%s", o->name, o->preset);
                assert_int_equal(PARSE(tg_commands[c].name, word), TG_OK);
            }
        }
}

/* One past either end is refused, and the line names the range. */
static void test_ranges_are_kept(void **state)
{
    tg_options opt;
    tg_error err;
    (void)state;
    for (int i = 0; i < tg_n_options; i++) {
        const tg_option *o = &tg_option_table[i];
        const char *command = "generate";
        if (!is_numeric(o))
            continue;
        for (int c = 0; c < tg_n_commands; c++)
            if (o->commands & tg_commands[c].bit)
                command = tg_commands[c].name;
        const double past[2] = {o->min - 1, o->max + 1};
        for (int side = 0; side < 2; side++) {
            char word[64], range[64];
            snprintf(word, sizeof word, "--%s=%.0f", o->name, past[side]);
            snprintf(range, sizeof range,
                     o->kind == TG_OPTION_REAL ? "from %g to %g" : "from %.0f to %.0f", o->min,
                     o->max);
            assert_int_equal(PARSE(command, word), TG_E_USAGE);
            assert_non_null(strstr(err.message, range));
        }
    }
}

/* R18, R20: every option with a number, of every command, refuses what is none and names its range. */
static void test_numbers_are_numbers(void **state)
{
    static const char *const bad[] = {"nan", "NaN", "-nan", "inf", "-inf", "infinity", "0x1", "0x1p1", "1e400", "-1e400",
                                      "1x", "1 ", " 1", "+1", "", "-", ".", "1;5", "1,5.1", "1.5.1", "one", "99999999999999999999",
                                      "-99999999999999999999", "1e", "\xd9\xa1", "1\t", "--1"};
    static const char *const not_whole[] = {"1.5", "1e1", "1.", ".5"};
    tg_options opt;
    tg_error err;
    (void)state;
    for (int i = 0; i < tg_n_options; i++)
        for (int c = 0; c < tg_n_commands; c++) {
            const tg_option *o = &tg_option_table[i];
            if (!(o->commands & tg_commands[c].bit) || !(is_numeric(o) || o->kind == TG_OPTION_SEED))
                continue;
            const size_t n = sizeof bad / sizeof bad[0], more = o->kind == TG_OPTION_REAL ? 0 : 4;
            for (size_t k = 0; k < n + more; k++) {
                char word[160], range[TG_RANGE_BYTES];
                snprintf(word, sizeof word, "--%s=%s", o->name, k < n ? bad[k] : not_whole[k - n]);
                if (PARSE(tg_commands[c].name, word) != TG_E_USAGE)
                    fail_msg("%s %s is taken", tg_commands[c].name, word);
                assert_non_null(strstr(err.message, tg_option_describe(o, range)));
            }
        }
}

static void test_presets(void **state)
{
    tg_options opt;
    tg_error err;
    (void)state;
    assert_int_equal(parse(&opt, &err, "generate", 0, NULL), TG_OK);
    assert_int_equal(opt.n_max, 256);
    assert_true(opt.temp == 0.8 && opt.top_p == 0.95 && opt.min_p == 0.05);
    assert_int_equal(opt.top_k, 40);
    assert_false(opt.seed_given);
    assert_int_equal(opt.n_ctx, 0);
    assert_int_equal(opt.n_threads, 0);
    assert_int_equal(opt.n_batch, 512);
    assert_int_equal(opt.kv_type, TG_KV_F16);
    assert_int_equal(opt.kv_type_k, -1);
    assert_int_equal(opt.blas, 0);
    assert_null(opt.operand);
}

/* ---- parsing ----------------------------------------------------------------------------------
 */

static void test_forms(void **state)
{
    tg_options opt;
    tg_error err;
    (void)state;
    assert_int_equal(
        PARSE("generate", "-qn", "7", "text", "--temp=0.5", "-t3", "--kv-type-v", "f32"), TG_OK);
    assert_true(opt.quiet);
    assert_int_equal(opt.n_max, 7);
    assert_int_equal(opt.n_threads, 3);
    assert_true(opt.temp == 0.5);
    assert_int_equal(opt.kv_type_v, TG_KV_F32);
    assert_string_equal(opt.operand, "text");

    assert_int_equal(PARSE("generate", "-n", "-1", "--", "--temp"), TG_OK);
    assert_int_equal(opt.n_max, -1);
    assert_string_equal(opt.operand, "--temp");

    assert_int_equal(PARSE("generate", "-p", "--temp", "-f", "-"), TG_OK);
    assert_string_equal(opt.prompt, "--temp");
    assert_string_equal(opt.file, "-");

    assert_int_equal(PARSE("generate", ""), TG_OK); /* an empty prompt is one */
    assert_string_equal(opt.operand, "");

    assert_int_equal(PARSE("generate", "--seed", "18446744073709551615"), TG_OK);
    assert_true(opt.seed_given && opt.seed == UINT64_MAX);

    /* the same name means different things to different commands */
    assert_int_equal(PARSE("tokenize", "--ids", "text"), TG_OK);
    assert_true(opt.ids);
    assert_int_equal(PARSE("logits", "--ids", "1,2", "--format", "npy"), TG_OK);
    assert_string_equal(opt.ids_text, "1,2");
    assert_int_equal(opt.format, TG_FORMAT_NPY);

    /* what may be repeated, and any number of operands between options */
    assert_int_equal(PARSE("pull", "a/b", "--include", "*.json", "x", "--exclude=y*", "--include=", "--", "-q"), TG_OK);
    assert_int_equal(opt.include.n, 2);
    assert_string_equal(opt.include.text[0], "*.json");
    assert_string_equal(opt.include.text[1], "");
    assert_int_equal(opt.exclude.n, 1);
    assert_int_equal(opt.n_operands, 3);
    assert_string_equal(opt.operand, "a/b");

    /* nothing behind --help is looked at */
    assert_int_equal(PARSE("generate", "--help", "--nonsense"), TG_OK);
    assert_true(opt.help);
}

static void test_errors(void **state)
{
    static const struct {
        const char *command, *word, *value, *says;
    } cases[] = {
        {"generate", "--tmep", "1", "unknown option --tmep (did you mean --temp?)"},
        {"generate", "--temperature", "1", "unknown option --temperature (did you mean --temp?)"},
        {"generate", "--tem", "1", "unknown option --tem (did you mean --temp?)"},
        {"generate", "--qqqqqqqq", NULL, "unknown option --qqqqqqqq (see tinygpt generate --help)"},
        {"generate", "--x\x1b[2J", NULL,
         "unknown option --x\\x1B[2J (see tinygpt generate --help)"},
        {"generate", "-z", NULL, "unknown option -z (see tinygpt generate --help)"},
        {"generate", "--decode", "1", "generate has no option --decode; tokenize has one"},
        {"generate", "--temp", NULL, "--temp needs an argument: a number from 0 to 100"},
        {"generate", "-n", NULL, "-n needs an argument: a whole number from -1 to 1048576"},
        {"generate", "--echo=1", NULL, "--echo takes no argument"},
        {"generate", "-temp", "1", "-temp: long options take two dashes: --temp"},
        {"generate", "--seed", "-1",
         "--seed: '-1' is not a whole number from 0 to 18446744073709551615"},
        {"generate", "--kv-type", "q8", "--kv-type: 'q8' is not one of f32|f16|bf16|q8_0|q4"},
        {"generate", "--kv-type", "f32|f16", "--kv-type: 'f32|f16' is not one of f32|f16|bf16|q8_0|q4"},
        {"generate", "one", "two",
         "generate takes [PROMPT], not 'two' too (quote a text of several words)"},
        {"logits", "text", NULL, "logits takes options only, not 'text'"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tg_options opt;
        tg_error err;
        const char *words[2] = {cases[i].word, cases[i].value};
        assert_int_equal(parse(&opt, &err, cases[i].command, cases[i].value ? 2 : 1, words),
                         TG_E_USAGE);
        assert_string_equal(err.message, cases[i].says);
    }
}

/* ---- lists ------------------------------------------------------------------------------------
 */

static void assert_list(const tg_list *list, int n, const int *values)
{
    assert_int_equal(list->n, n);
    assert_memory_equal(list->value, values, (size_t)n * sizeof *values);
}

#define LIST_IS(list, ...)                                                                         \
    assert_list(&(list), (int)(sizeof(int[]){__VA_ARGS__} / sizeof(int)), (const int[]){__VA_ARGS__})

static void test_lists(void **state)
{
    tg_options opt;
    tg_error err;
    (void)state;
    assert_int_equal(parse(&opt, &err, "bench", 0, NULL), TG_OK);
    LIST_IS(opt.n_prompts, 512);
    LIST_IS(opt.n_gens, 128);
    LIST_IS(opt.n_depths, 0);
    LIST_IS(opt.batches, 512);
    LIST_IS(opt.kv_types, TG_KV_F16);
    assert_int_equal(opt.thread_counts.n, 0);
    assert_int_equal(opt.kv_types_k.n, 0);

    assert_int_equal(PARSE("bench", "-p", "1,2,8", "-n", "0", "-d0-3,7", "-t", "1-7+3"), TG_OK);
    LIST_IS(opt.n_prompts, 1, 2, 8);
    LIST_IS(opt.n_gens, 0);
    LIST_IS(opt.n_depths, 0, 1, 2, 3, 7);
    LIST_IS(opt.thread_counts, 1, 4, 7);
    assert_int_equal(PARSE("bench", "-b", "1-100*4,5-5", "--kv-type", "q8_0,f32", "-b=9"), TG_E_USAGE);
    assert_int_equal(PARSE("bench", "-b", "1-100*4,5-5", "--kv-type", "q8_0,f32", "-b", "9"), TG_OK);
    LIST_IS(opt.batches, 1, 4, 16, 64, 5, 9); /* given again: more of them */
    LIST_IS(opt.kv_types, TG_KV_Q8_0, TG_KV_F32);
    assert_int_equal(PARSE("bench", "-p", "1-64", "-d", "1048576"), TG_OK);
    assert_int_equal(opt.n_prompts.n, TG_LIST_MAX);
    assert_int_equal(opt.n_prompts.value[TG_LIST_MAX - 1], TG_LIST_MAX);
}

static void test_bad_lists(void **state)
{
    static const char *const numbers[] = {
        "",      ",",     "1,",    ",1",   "1,,2",  "a",     "1-",    "-1",    "1-2-3", "4-2",
        "1-9+",  "1-9+0", "1-9*",  "1-9*1", "1-9*0", "0-9*2", "1+2",  "1 2",   "1;2",   "513",
        "1-513", "1.5",   "1-9/2", "1-65,", "00000000000000000000000000000001", "99999999999999999999",
    };
    static const char *const words[] = {"", ",", "f16,", "f8", "f16,f8", "f16|f32", "f16 f32", "F16"};
    tg_options opt;
    tg_error err;
    (void)state;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        char want[240];
        if (PARSE("bench", "-t", numbers[i]) != TG_E_USAGE)
            fail_msg("'%s' is taken", numbers[i]);
        snprintf(want, sizeof want,
                 "-t: '%s' is not a list (1,2 or 1-8 or 1-9+2 or 1-8*2) of up to 64 from 0 to 512",
                 numbers[i]);
        assert_string_equal(err.message, want);
    }
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        assert_int_equal(PARSE("bench", "--kv-type", words[i]), TG_E_USAGE);
        assert_non_null(strstr(err.message, "is not a list, separated by commas, of f32|f16|bf16|q8_0|q4"));
    }
    assert_int_equal(PARSE("bench", "-p", "1-65"), TG_E_USAGE);
    assert_int_equal(PARSE("bench", "-p", "1-64", "-p", "1"), TG_E_USAGE);
}

static void test_repeated_texts_end_somewhere(void **state)
{
    char word[] = "pull", option[] = "--include=*", *argv[TG_LIST_MAX + 2] = {word};
    tg_options opt;
    tg_error err;
    (void)state;
    for (int i = 0; i <= TG_LIST_MAX; i++)
        argv[1 + i] = option;
    assert_int_equal(tg_options_parse(&opt, tg_command_find("pull", NULL), TG_LIST_MAX + 1, argv, &err), TG_OK);
    assert_int_equal(opt.include.n, TG_LIST_MAX);
    assert_int_equal(tg_options_parse(&opt, tg_command_find("pull", NULL), TG_LIST_MAX + 2, argv, &err), TG_E_USAGE);
    assert_string_equal(err.message, "--include: '*' is not PATTERN, given up to 64 times");
}

/* ---- numbers ----------------------------------------------------------------------------------
 */

static void test_real_numbers(void **state)
{
    static const struct {
        const char *text;
        double value;
    } good[] = {{"0", 0},  {"1", 1},    {"0.5", 0.5},  {".5", 0.5},
                {"5.", 5}, {"1e1", 10}, {"1E+1", 10},  {"25e-1", 2.5},
                {"-0", 0}, {"007", 7},  {"1e-400", 0}, {"-1.5", -1.5}};
    static const char *const bad[] = {"",    " 1",  "1 ",       "+1",    "1,5",     "0x10",
                                      "nan", "NAN", "inf",      "-inf",  "1e",      "1e+",
                                      ".",   "-",   "--1",      "1e400", "1.2.3",   "1f",
                                      "11",  "-11", "infinity", "1_0",   "\xd9\xa1"};
    double value;
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_true(tg_number_real(good[i].text, -10, 10, &value));
        assert_true(value == good[i].value);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(tg_number_real(bad[i], -10, 10, &value));
}

static void test_whole_numbers(void **state)
{
    static const char *const bad[] = {"",
                                      "-",
                                      " 1",
                                      "1 ",
                                      "+1",
                                      "1.0",
                                      "1e1",
                                      "0x1",
                                      "one",
                                      "9",
                                      "-9",
                                      "99999999999999999999",
                                      "-99999999999999999999"};
    int64_t value;
    uint64_t big;
    (void)state;
    assert_true(tg_number_int("-8", -8, 8, &value));
    assert_int_equal(value, -8);
    assert_true(tg_number_int("8", -8, 8, &value));
    assert_int_equal(value, 8);
    assert_true(tg_number_int("9223372036854775807", 0, INT64_MAX, &value));
    assert_true(value == INT64_MAX);
    assert_false(tg_number_int("9223372036854775808", 0, INT64_MAX, &value));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(tg_number_int(bad[i], -8, 8, &value));
    assert_true(tg_number_u64("18446744073709551615", &big));
    assert_true(big == UINT64_MAX);
    assert_false(tg_number_u64("18446744073709551616", &big));
    assert_false(tg_number_u64("-1", &big));
    assert_false(tg_number_u64("", &big));
}

/* ---- near misses ------------------------------------------------------------------------------
 */

static void test_nearest(void **state)
{
    static const char *const names[] = {"generate", NULL, "tokenize", "logits", "inspect"};
    static const struct {
        const char *typed, *nearest;
    } cases[] = {
        {"genrate", "generate"},
        {"gneerate", "generate"},
        {"gen", "generate"},
        {"tokenise", "tokenize"},
        {"logit", "logits"},
        {"inspcet", "inspect"},
        {"logitsx", "logits"},
        {"chat", NULL},
        {"", NULL},
        {"x", NULL},
        {"generategenerategenerategenerategenerategenerategenerategenerategenerategenerategenerategenerate"
         "generategenerategenerategenerategenerate",
         NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *nearest = tg_options_nearest(cases[i].typed, names, 5);
        if (cases[i].nearest)
            assert_string_equal(nearest, cases[i].nearest);
        else
            assert_null(nearest);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_are_sound),
        cmocka_unit_test(test_names_and_letters_differ_within_a_command),
        cmocka_unit_test(test_every_row_parses),
        cmocka_unit_test(test_ranges_are_kept),
        cmocka_unit_test(test_numbers_are_numbers),
        cmocka_unit_test(test_presets),
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_bad_lists),
        cmocka_unit_test(test_repeated_texts_end_somewhere),
        cmocka_unit_test(test_real_numbers),
        cmocka_unit_test(test_whole_numbers),
        cmocka_unit_test(test_nearest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
