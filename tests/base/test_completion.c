#include "base/completion.h"

#include "base/arena.h"
#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const struct completion_command commands[] = {
    {.name = "plan", .text = "says what", .operands = "PLACE|FILE"},
    {.name = "try", .text = "tries it", .takes_command = true},
    {0},
};
static const struct manual_option options[] = {
    {.letter = 'd', .name = "--device", .value = "auto|cpu", .text = "what computes"},
    {.name = "--out", .value = "DIR", .text = "where", .command = "plan"},
    {.name = "--number", .value = "N", .text = "how many", .command = "plan"},
    {.name = "--nproc", .value = "N|cpu", .text = "how many", .command = ""},
    {.name = "--hidden"},
    {0},
};

static bool values(const char *name, struct buf *out) {
    if (!str_eq(name, "PLACE"))
        return false;
    buf_puts(out, "home\tsweet\nhere\nthere\n");
    return true;
}

/* line: as it is typed behind the program, parted by blanks. */
static void assert_offers(bool program, const char *line, const char *wanted) {
    ARENA_FINI struct arena a = {0};
    BUF_FINI struct buf out = {0};
    size_t n;
    char **words = str_split(&a, line, ' ', &n);
    completion_words(
        &out,
        &(struct completion){
            .commands = commands, .options = options, .takes_program = program, .values = values},
        (const char *const *)words, n);
    assert_string_equal(buf_str(&out), wanted);
}

static void test_commands_come_first(void **state) {
    assert_offers(false, "", "plan\tsays what\ntry\ttries it\n");
    assert_offers(false, "t", "try\ttries it\n");
    assert_offers(false, "x", "");
    assert_offers(false, "--device cpu t", "try\ttries it\n");
}

static void test_options_are_those_of_the_command(void **state) {
    assert_offers(false, "plan --", "--device\twhat computes\n--out\twhere\n--number\thow many\n");
    assert_offers(false, "try --", "--device\twhat computes\n--\tthe command to run follows\n");
    assert_offers(false, "--n", "--nproc\thow many\n");
    assert_offers(false, "plan --h", "");
}

static void test_values_are_offered_in_both_forms(void **state) {
    assert_offers(false, "plan --device ", "auto\ncpu\n");
    assert_offers(false, "plan -d c", "cpu\n");
    assert_offers(false, "plan --device=c", "--device=cpu\n");
    assert_offers(false, "plan --out ", ":dirs\n");
    assert_offers(false, "plan --out=x", ":dirs\n");
    assert_offers(false, "plan --number ", "");
    assert_offers(false, "try --out=x", "");
}

static void test_operands_are_names_and_files(void **state) {
    assert_offers(false, "plan ", "home\tsweet\nhere\nthere\n:files\n");
    assert_offers(false, "plan --out x he", "here\n:files\n");
    assert_offers(false, "plan home th", "there\n:files\n");
    assert_offers(false, "try ", "--\tthe command to run follows\n");
}

static void test_somebody_elses_command_is_left_to_the_shell(void **state) {
    assert_offers(false, "try -- ls -", ":command 2\n");
    assert_offers(false, "try --device cpu -- l", ":command 4\n");
    assert_offers(true, "p", "plan\tsays what\n:command 0\n");
    assert_offers(true, "--nproc 2 python3 -", ":command 2\n");
    assert_offers(true, "python3 --device ", ":command 0\n");
    assert_offers(true, "plan h", "home\tsweet\nhere\n:files\n");
}

static void test_scripts_name_the_program_alone(void **state) {
    static const char *const shells[] = {"bash", "fish", "zsh"};
    for (size_t i = 0; i < 3; i++) {
        BUF_FINI struct buf out = {0};
        assert_true(completion_script(&out, shells[i], "thing", "ask --it"));
        assert_non_null(strstr(buf_str(&out), "command thing ask --it -- "));
        assert_null(strchr(buf_str(&out), '\x01'));
        assert_null(strstr(buf_str(&out), "@P@"));
        assert_null(strstr(buf_str(&out), "@A@"));
    }
    BUF_FINI struct buf none = {0};
    assert_false(completion_script(&none, "csh", "thing", "ask"));
    assert_int_equal(none.len, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_commands_come_first),
        cmocka_unit_test(test_options_are_those_of_the_command),
        cmocka_unit_test(test_values_are_offered_in_both_forms),
        cmocka_unit_test(test_operands_are_names_and_files),
        cmocka_unit_test(test_somebody_elses_command_is_left_to_the_shell),
        cmocka_unit_test(test_scripts_name_the_program_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
