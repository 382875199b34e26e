/* Files that somebody cut off, overwrote or shuffled: the loader answers with a scenario or with an
 * error, always one of them, and leaks nothing (asan says so). */
#include "tests/harness/scenario/scratch.h"

#include "base/rand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static const char sample[] =
    "scenario: sample\n"
    "about: Two lines of text\n"
    "       and \"quotes\".\n"
    "cluster: {nodes: 3, start: 3}   # a comment\n"
    "job:\n"
    "  nnodes: \"2:3\"\n"
    "  rdzv_conf: {profile: fast}\n"
    "  run: [ranktrain, --steps=400, \"--checkpoint-dir={shared}/ckpt\"]\n"
    "timeline:\n"
    "  - {id: dark, when: {step: 137}, fault: node-poweroff, on: n2}\n"
    "  - {id: save, when: {after: dark, event: ready, nth: 2}, fault: worker-kill, on: rank 0}\n"
    "expect:\n"
    "  world_sizes: [3, \"*\"]\n"
    "  detect_within: {dark: 2s, save: 500ms}\n";

static void check_answer(const char *text, size_t len) {
    struct scratch x;
    scratch_load_bytes(&x, text, len, NULL);
    assert_true((x.s != NULL) == (x.d.errors == 0));
    assert_true((x.d.errors == 0) == (x.d.out.len == 0));
    scratch_drop(&x);
}

static void test_a_file_cut_off_anywhere_gets_an_answer(void **state) {
    (void)state;
    for (size_t n = 0; n <= strlen(sample); n++)
        check_answer(sample, n);
}

static void change(char *text, size_t *len, struct rand *r) {
    static const char special[] = "{}[]:,&*!|>%@`\"'#-? \n\t~<.";
    size_t at = rand_below(r, *len), n = rand_below(r, 20);
    switch (rand_below(r, 4)) {
    case 0:
        text[at] = special[rand_below(r, sizeof(special) - 1)];
        break;
    case 1:
        text[at] = (char)rand_below(r, 256);
        break;
    case 2:
        *len = at > 0 ? at : 1;
        break;
    default:
        if (at + n < *len) {
            memmove(text + at, text + at + n, *len - at - n);
            *len -= n;
        }
    }
}

static void test_a_file_with_changed_bytes_gets_an_answer(void **state) {
    (void)state;
    struct rand r;
    rand_init(&r, 1);
    for (int i = 0; i < 2000; i++) {
        char text[sizeof(sample)];
        size_t len = strlen(sample);
        memcpy(text, sample, sizeof(sample));
        for (uint64_t n = 1 + rand_below(&r, 4); n > 0; n--)
            change(text, &len, &r);
        check_answer(text, len);
    }
}

static void test_random_bytes_get_an_answer(void **state) {
    (void)state;
    struct rand r;
    rand_init(&r, 2);
    for (int i = 0; i < 500; i++) {
        char bytes[300];
        size_t len = rand_below(&r, sizeof(bytes));
        for (size_t j = 0; j < len; j++)
            bytes[j] = (char)(i % 2 ? rand_below(&r, 256) : 32 + rand_below(&r, 95));
        check_answer(bytes, len);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_file_cut_off_anywhere_gets_an_answer),
        cmocka_unit_test(test_a_file_with_changed_bytes_gets_an_answer),
        cmocka_unit_test(test_random_bytes_get_an_answer),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
