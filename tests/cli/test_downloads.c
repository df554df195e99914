/* test_downloads.c - lines of progress by a clock and a terminal of the test's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "cli/downloads.h"
#include "cli/text.h"

#define MIB (UINT64_C(1) << 20)

/* ---- speed ------------------------------------------------------------------------------------
 */

static void test_speed_is_that_of_the_last_seconds(void **state)
{
    tg_speed speed = {0};
    (void)state;
    assert_true(tg_speed_get(&speed) == -1);
    for (int i = 0; i <= 1000; i++) /* 10 s at 100 bytes a second, then 10 s at 400 */
        tg_speed_add(&speed, 7 + 0.01 * i, (uint64_t)i);
    assert_float_equal(tg_speed_get(&speed), 100, 0.5);
    for (int i = 1; i <= 1000; i++)
        tg_speed_add(&speed, 17 + 0.01 * i, (uint64_t)(1000 + 4 * i));
    assert_float_equal(tg_speed_get(&speed), 400, 0.5);
    for (int i = 1; i <= 600; i++) /* nothing comes any more */
        tg_speed_add(&speed, 27 + 0.01 * i, 5000);
    assert_true(tg_speed_get(&speed) == 0);
}

static void test_speed_starts_anew_when_bytes_go_away(void **state)
{
    tg_speed speed = {0};
    (void)state;
    tg_speed_add(&speed, 1, 1000);
    tg_speed_add(&speed, 2, 2000);
    assert_float_equal(tg_speed_get(&speed), 1000, 1e-9);
    tg_speed_add(&speed, 3, 500);
    assert_true(tg_speed_get(&speed) == -1);
    tg_speed_add(&speed, 4, 800);
    assert_float_equal(tg_speed_get(&speed), 300, 1e-9);
}

/* ---- lines ------------------------------------------------------------------------------------
 */

static void check_lines(const tg_downloads *d, const tg_fetch_file *files, int columns, int rows, const char *want)
{
    char text[TG_DOWNLOADS_TEXT];
    tg_downloads_render(d, files, columns, rows, text);
    assert_string_equal(text, want);
}

static void test_one_file(void **state)
{
    tg_fetch_file file = {.name = "model.gguf", .size = 100 * MIB, .state = TG_FETCH_WAITING};
    tg_downloads d = {0};
    (void)state;
    check_lines(&d, NULL, 80, 24, "asking the server");
    assert_true(tg_downloads_update(&d, &file, 1, 10));
    check_lines(&d, &file, 80, 24, "asking the server");
    file.state = TG_FETCH_RUNNING;
    assert_true(tg_downloads_update(&d, &file, 1, 10));
    check_lines(&d, &file, 80, 24, "model.gguf                               0%      0/100 MiB                     ");
    file.done = 10 * MIB;
    assert_true(tg_downloads_update(&d, &file, 1, 12));
    check_lines(&d, &file, 80, 24, "model.gguf                              10%     10/100 MiB  5.00 MiB/s     0:18");
    check_lines(&d, &file, 60, 24, "model.gguf          10%     10/100 MiB  5.00 MiB/s     0:18");
    check_lines(&d, &file, 50, 24, "model.gguf               10%  5.00 MiB/s     0:18");
    check_lines(&d, &file, 30, 24, "model.gguf       10%     0:18");
    check_lines(&d, &file, 20, 24, "model.gguf      10%");
    check_lines(&d, &file, 10, 24, "mod...guf");
    check_lines(&d, &file, 3, 24, "..");
    check_lines(&d, &file, 1, 24, "");
    file.state = TG_FETCH_WAITING; /* before another attempt */
    check_lines(&d, &file, 50, 24, "model.gguf               10%     waiting         ");
    file.state = TG_FETCH_CHECKING;
    check_lines(&d, &file, 50, 24, "model.gguf               10%    checking         ");
    file.state = TG_FETCH_RUNNING;
    file.size = TG_SIZE_UNKNOWN;
    check_lines(&d, &file, 80, 24, "model.gguf                                        10.0 MiB  5.00 MiB/s         ");
    file.size = 0;
    file.done = 0;
    assert_true(tg_downloads_update(&d, &file, 1, 13));
    check_lines(&d, &file, 30, 24, "model.gguf      100%         ");
    free(d.shown);
}

static void test_resumed_bytes_are_told_where_there_is_room(void **state)
{
    tg_fetch_file file = {
        .name = "model.gguf", .size = 3000 * MIB, .done = 1500 * MIB, .resumed = 1500 * MIB, .state = TG_FETCH_RUNNING};
    tg_downloads d = {0};
    (void)state;
    assert_true(tg_downloads_update(&d, &file, 1, 1));
    file.done += 3 * MIB;
    assert_true(tg_downloads_update(&d, &file, 1, 4)); /* 1 MiB a second, of what is new */
    check_lines(&d, &file, 81, 24, "model.gguf                from 1.46 GiB  50%  1.47/2.93 GiB  1.00 MiB/s    24:57");
    check_lines(&d, &file, 78, 24, "model.gguf                            50%  1.47/2.93 GiB  1.00 MiB/s    24:57");
    file.size = UINT64_C(40000) * MIB;
    check_lines(&d, &file, 36, 24, "model.gguf              3%     10 h");
    file.size = UINT64_C(20000) * MIB;
    check_lines(&d, &file, 36, 24, "model.gguf              7%  5:08:17");
    free(d.shown);
}

static void test_several_files(void **state)
{
    tg_fetch_file files[] = {
        {.name = "config.json", .size = 700, .done = 700, .state = TG_FETCH_CACHED},
        {.name = "one.safetensors", .size = 10 * MIB, .state = TG_FETCH_RUNNING},
        {.name = "two.safetensors", .size = 30 * MIB, .state = TG_FETCH_RUNNING},
        {.name = "three.safetensors", .size = 40 * MIB, .state = TG_FETCH_WAITING},
    };
    tg_downloads d = {0};
    (void)state;
    assert_true(tg_downloads_update(&d, files, 2, 1)); /* more of them become known later */
    assert_true(tg_downloads_update(&d, files, 4, 1));
    files[1].done = 10 * MIB, files[2].done = 10 * MIB;
    files[1].state = TG_FETCH_DONE;
    assert_true(tg_downloads_update(&d, files, 4, 2));
    assert_int_equal(d.kept, 10 * MIB);
    check_lines(&d, files, 60, 24,
                "two.safetensors     33%  10.0/30.0 MiB  10.0 MiB/s     0:02\n"
                "1 of 3 files        25%  20.0/80.0 MiB  20.0 MiB/s     0:03");
    check_lines(&d, files, 60, 2, "1 of 3 files        25%  20.0/80.0 MiB  20.0 MiB/s     0:03");
    files[3].size = TG_SIZE_UNKNOWN;
    check_lines(&d, files, 60, 2, "1 of 3 files                  20.0 MiB  20.0 MiB/s         ");
    free(d.shown);
}

/* However wide, high and odd: no line is wider than the terminal, nor are there more than it has. */
static void test_any_terminal(void **state)
{
    enum { N = 40 };
    static char names[N][600];
    tg_fetch_file files[N];
    tg_downloads d = {0};
    char text[TG_DOWNLOADS_TEXT];
    (void)state;
    for (int i = 0; i < N; i++) {
        for (int k = 0; k < i * 7; k++)
            strcat(names[i], k % 3 ? "x" : i % 2 ? "\xE5\xAD\x97" : "\x1b");
        files[i] = (tg_fetch_file){.name = names[i], .size = UINT64_MAX - 1, .done = UINT64_MAX / 3, .state = TG_FETCH_RUNNING};
        files[i].resumed = i % 3 ? files[i].done : 0;
    }
    assert_true(tg_downloads_update(&d, files, N, 1));
    assert_true(tg_downloads_update(&d, files, N, 2));
    for (int columns = 1; columns < 1000; columns += 1 + columns / 9)
        for (int rows = 1; rows < 60; rows += 3) {
            int n_lines = 1;
            tg_downloads_render(&d, files, columns, rows, text);
            for (char *line = text; line; n_lines++) {
                char *end = strchr(line, '\n');
                if (end)
                    *end = '\0';
                assert_true(tg_text_width(line) < columns || columns == 1);
                assert_null(strchr(line, '\x1b'));
                line = end ? end + 1 : NULL;
            }
            assert_true(n_lines - 1 <= (rows > 1 ? rows : 1) && n_lines - 1 <= TG_DOWNLOADS_FILES + 1);
        }
    free(d.shown);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_speed_is_that_of_the_last_seconds),
        cmocka_unit_test(test_speed_starts_anew_when_bytes_go_away),
        cmocka_unit_test(test_one_file),
        cmocka_unit_test(test_resumed_bytes_are_told_where_there_is_room),
        cmocka_unit_test(test_several_files),
        cmocka_unit_test(test_any_terminal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
