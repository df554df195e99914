/* Tests of recipe.c: the types that llama-quantize gives the tensors of small models. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "convert/recipe.h"
#include "recipe_vectors.h"

static void as_llama_quantize_has_it(void **state)
{
    (void)state;
    for (size_t v = 0; v < sizeof vec_recipes / sizeof *vec_recipes; v++) {
        const int e = vec_recipes[v].n_embd, f = vec_recipes[v].n_ff, x = vec_recipes[v].n_expert;
        const int kv = e / vec_recipes[v].n_head * vec_recipes[v].n_head_kv;
        const tg_recipe_model model = {vec_recipes[v].n_layer, vec_recipes[v].n_head, vec_recipes[v].n_head_kv, x,
                                        vec_recipes[v].tied};
        const struct {
            const char *name;
            int rows, columns;
            bool here, stacked;
        } tensors[] = {
            {"output", 32, e, !model.tied, false}, {"token_embd", 32, e, true, false},
            {"attn_k", kv, e, true, false},        {"attn_output", e, e, true, false},
            {"attn_q", e, e, true, false},         {"attn_v", kv, e, true, false},
            {"ffn_down", e, f, true, x > 0},       {"ffn_gate", f, e, true, x > 0},
            {"ffn_gate_inp", x, e, x > 0, false},  {"ffn_up", f, e, true, x > 0},
        };
        const tg_recipe *m = tg_recipe_find(vec_recipes[v].mixture);
        assert_non_null(m);
        const char *at = vec_recipes[v].types;
        int left = 0;
        char wanted[16] = "";
        for (int layer = -1; layer < model.n_layer; layer++)
            for (size_t i = layer < 0 ? 0 : 2; i < (layer < 0 ? 2 : sizeof tensors / sizeof *tensors); i++) {
                if (!tensors[i].here)
                    continue;
                if (left == 0) {
                    int used = 0;
                    left = 1;
                    assert_int_equal(sscanf(at, "%15[A-Z0-9_]%n", wanted, &used), 1);
                    at += used;
                    if (*at == '*')
                        left = (int)strtol(at + 1, (char **)(uintptr_t)&at, 10);
                    at += *at == ' ';
                }
                left--;
                char name[64];
                snprintf(name, sizeof name, layer < 0 ? "%.0d%s%s.weight" : "blk.%d.%s%s.weight", layer < 0 ? 0 : layer,
                         tensors[i].name, tensors[i].stacked ? "_exps" : "");
                uint64_t dim[3] = {(uint64_t)x, (uint64_t)tensors[i].rows, (uint64_t)tensors[i].columns};
                int skip = tensors[i].stacked ? 0 : 1;
                tg_type got = tg_recipe_type(m, &model, name, 3 - skip, dim + skip, NULL);
                if (strcmp(tg_dtypes[got].name, wanted) != 0)
                    fail_msg("%s of model %zu as %s: %s, not %s", name, v, m->name, tg_dtypes[got].name, wanted);
            }
        assert_true(left == 0 && *at == 0);
    }
}

static void what_stays(void **state)
{
    (void)state;
    static const char *const names[] = {"blk.0.attn_q_norm.weight", "position_embd.weight", "blk.1.ffn_gate_inp.weight",
                                        "blk.0.ffn_up_exps.bias", "rope_freqs.weight"};
    static const uint64_t matrix[2] = {32, 256}, vector[2] = {1, 256};
    const tg_recipe_model model = {.n_layer = 2, .n_head = 4, .n_head_kv = 4};
    for (int i = 0; tg_recipe_at(i); i++) {
        for (size_t k = 0; k < sizeof names / sizeof *names - 1; k++)
            assert_int_equal(tg_recipe_type(tg_recipe_at(i), &model, names[k], 2, matrix, NULL), TG_F32);
        assert_int_equal(tg_recipe_type(tg_recipe_at(i), &model, names[4], 1, vector + 1, NULL), TG_F32);
        assert_int_equal(tg_recipe_type(tg_recipe_at(i), &model, "output.weight", 2, vector, NULL), TG_F32);
    }
}

static void rows_that_do_not_fit(void **state)
{
    (void)state;
    const tg_recipe_model model = {.n_layer = 8, .n_head = 4, .n_head_kv = 4};
    const uint64_t by_32[2] = {8, 96}, by_8[2] = {8, 40};
    const tg_recipe *m = tg_recipe_find("q4_k_s");
    bool fell_back = false;
    assert_int_equal(tg_recipe_type(m, &model, "blk.5.ffn_up.weight", 2, by_32, &fell_back), TG_Q5_0);
    assert_true(fell_back);
    assert_int_equal(tg_recipe_type(m, &model, "blk.5.ffn_up.weight", 2, by_8, &fell_back), TG_F16);
    assert_true(fell_back);
    assert_int_equal(tg_recipe_type(tg_recipe_find("F32"), &model, "blk.5.ffn_up.weight", 2, by_8, &fell_back), TG_F32);
    assert_false(fell_back);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_llama_quantize_has_it),
        cmocka_unit_test(what_stays),
        cmocka_unit_test(rows_that_do_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
