/* Files that would take much to read, by what stands in them. */
#include "tests/harness/scenario/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

/* text is the head, then unit again and again up to size. */
static void expect_refusal_of(const char *head, const char *unit, size_t size,
                              const char *sentence) {
    struct buf text = {0};
    buf_puts(&text, head);
    while (text.len < size)
        buf_puts(&text, unit);
    struct scratch x;
    scratch_load(&x, buf_str(&text));
    assert_null(x.s);
    if (!strstr(buf_str(&x.d.out), sentence))
        fail_msg("%.200s", buf_str(&x.d.out));
    buf_fini(&text);
    scratch_drop(&x);
}

static void test_a_file_that_explodes_is_refused(void **state) {
    (void)state;
    expect_refusal_of("", "job: 1\n", 10 << 20, ": is larger than 1 MiB");
    expect_refusal_of("a: &a [x, x]\n", "b: &b [*a, *a, *a, *a, *a]\n", 200, "anchors and aliases");
    expect_refusal_of("", "[", 100000, "nested more than 24 deep");
    expect_refusal_of("a: ", "{a: ", 100000, "nested more than 24 deep");
    expect_refusal_of("", "- ", 100000, "nested more than 24 deep");
    expect_refusal_of("a: [", "x, ", 100000, "more than 30000 values");
    expect_refusal_of("", "? ", 100000, "a key must be a word");
    /* What libfyaml would take hundreds of bytes each for before it says a word. */
    static const char marks[] = ":1:120001: more than 120000 brackets, commas, quotes and the like";
    expect_refusal_of("", "[", 1000000, marks);
    expect_refusal_of("", "{", 1000000, marks);
    expect_refusal_of("", "{a}", 1000000, "more than 120000 brackets");
    expect_refusal_of("a: [", "x, ", 1000000, "more than 120000 brackets");
    expect_refusal_of("[", ": ", 1000000, "more than 120000 brackets");
    expect_refusal_of("", "{a}\n", 1000000, ":60001:1: more than 120000 brackets");
    expect_refusal_of("", "\x01\x02", 100, "this is not text: byte 0x01");
    expect_refusal_of("a: \xff\xfe", "x", 100, ":1:4: this is not text: byte 0xff");
    expect_refusal_of("a: \xed\xa0\x80", "x", 100, ":1:4: this is not text: byte 0xed");
}

/* A variable makes much of little. */
static void test_variables_that_explode_are_refused(void **state) {
    (void)state;
    struct buf head = {0};
    buf_puts(&head, "job: {run: [train]}\nvars: {long: ");
    for (int i = 0; i < 30000; i++)
        buf_putc(&head, 'x');
    buf_puts(&head, "}\nabout: |\n  ");
    expect_refusal_of(buf_str(&head), "{long}", 100000, "{long}: with it vars put more than 1 MiB");
    buf_clear(&head);
    buf_puts(&head, "job: {run: [train]}\nvars: {long: [");
    for (int i = 0; i < 5000; i++)
        buf_puts(&head, "x,");
    buf_puts(&head, "]}\ntags:\n");
    expect_refusal_of(buf_str(&head), "- '{long}'\n", 20000, "or 30000 values into the file");
    buf_fini(&head);
}

static void test_a_sweep_that_explodes_is_refused(void **state) {
    (void)state;
    struct buf head = {0};
    buf_puts(&head, "job: {run: [train]}\nsweep:\n  seed: [1");
    for (int i = 2; i < 900; i++)
        buf_printf(&head, ",%d", i);
    buf_puts(&head, "]\n  about:\n  - ");
    expect_refusal_of(buf_str(&head), "x", 100000, "its values are too long for 899 runs");
    buf_fini(&head);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_file_that_explodes_is_refused),
        cmocka_unit_test(test_variables_that_explode_are_refused),
        cmocka_unit_test(test_a_sweep_that_explodes_is_refused),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
