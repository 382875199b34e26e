/* The words of `ranktrain prepare`: what each sets, its bounds, and what is refused, word for word. */
#include "scenarios/jobs/ranktrain/prepare/prepare.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static int parse(const char *words, struct prepare *p, struct err *err) {
    static char text[512];
    char *argv[16] = {"prepare"}, *save;
    int argc = 1;
    snprintf(text, sizeof(text), "%s", words);
    for (char *w = strtok_r(text, " ", &save); w; w = strtok_r(NULL, " ", &save))
        argv[argc++] = w;
    return prepare_parse(argc, argv, p, err);
}

static int setup(void **state) {
    (void)state;
    unsetenv("CURL_CA_BUNDLE");
    unsetenv("GROUP_RANK");
    unsetenv("GROUP_WORLD_SIZE");
    return 0;
}

static bool same(const char *a, const char *b) {
    return a == b || (a && b && strcmp(a, b) == 0);
}

static void assert_same(const char *words, const struct prepare *a, const struct prepare *b) {
    if (!same(a->dataset, b->dataset) || !same(a->from, b->from) || !same(a->to, b->to) ||
        !same(a->cacert, b->cacert) || a->side != b->side || a->part != b->part ||
        a->parts != b->parts || a->folders != b->folders || a->samples != b->samples ||
        a->unverified != b->unverified || a->help != b->help)
        fail_msg("%s sets something else", words);
}

static void test_a_word_sets_its_own_member_and_no_other(void **state) {
    (void)state;
#define USUAL .dataset = "fashion-mnist", .to = "d", .parts = 1
    static const struct {
        const char *words;
        struct prepare wanted;
    } rows[] = {
        {"--to=d", {USUAL}},
        {"--to d", {USUAL}},
        {"--dataset=mnist --to=d", {.dataset = "mnist", .to = "d", .parts = 1}},
        {"--dataset CIFAR-10 --to=d", {.dataset = "CIFAR-10", .to = "d", .parts = 1}},
        {"--to=d --from=x", {USUAL, .from = "x"}},
        {"--to=d --from http://a/b=c", {USUAL, .from = "http://a/b=c"}},
        {"--to=d --image-size=8", {USUAL, .side = 8}},
        {"--to=d --image-size=1024", {USUAL, .side = 1024}},
        {"--to=d --split=0/1", {USUAL}},
        {"--to=d --split=0/65536", {.dataset = "fashion-mnist", .to = "d", .parts = 65536}},
        {"--to=d --split=65535/65536",
         {.dataset = "fashion-mnist", .to = "d", .part = 65535, .parts = 65536}},
        {"--to=d --split=2/3", {.dataset = "fashion-mnist", .to = "d", .part = 2, .parts = 3}},
        {"--to=d --as=images", {USUAL}},
        {"--to=d --as=folders", {USUAL, .folders = true}},
        {"--to=d --as=folders --as=images", {USUAL}},
        {"--to=d --as=folders --samples=1", {USUAL, .folders = true, .samples = 1}},
        {"--to=d --as=folders --samples=1073741824",
         {USUAL, .folders = true, .samples = 1073741824}},
        {"--to=d --samples=5 --as=folders --image-size=9",
         {USUAL, .folders = true, .samples = 5, .side = 9}},
        {"--to=d --cacert=c", {USUAL, .cacert = "c"}},
        {"--to=d --no-verify", {USUAL, .unverified = true}},
        {"--help", {.dataset = "fashion-mnist", .parts = 1, .help = true}},
        {"--help --dataset=none", {.dataset = "none", .parts = 1, .help = true}},
        {"--no-verify --help",
         {.dataset = "fashion-mnist", .parts = 1, .help = true, .unverified = true}},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct prepare p;
        struct err err;
        memset(&p, 0xa5, sizeof(p));
        if (parse(rows[i].words, &p, &err) < 0)
            fail_msg("%s: %s", rows[i].words, err.msg);
        assert_same(rows[i].words, &p, &rows[i].wanted);
    }
}

static void test_the_environment_says_which_part_and_who_signs(void **state) {
    (void)state;
    struct prepare p;
    struct err err;
    setenv("CURL_CA_BUNDLE", "bundle", 1);
    setenv("GROUP_RANK", "3", 1);
    setenv("GROUP_WORLD_SIZE", "5", 1);
    assert_int_equal(parse("--to=d", &p, &err), 0);
    assert_string_equal(p.cacert, "bundle");
    assert_int_equal(p.parts, 1);
    assert_int_equal(parse("--to=d --split=node --cacert=c", &p, &err), 0);
    assert_string_equal(p.cacert, "c");
    assert_int_equal(p.part, 3);
    assert_int_equal(p.parts, 5);
    setenv("GROUP_RANK", "5", 1);
    assert_int_equal(parse("--to=d --split=node", &p, &err), -EINVAL);
    assert_string_equal(err.msg, "GROUP_RANK=5: expected a whole number from 0 to 4");
    unsetenv("GROUP_RANK");
    assert_int_equal(parse("--to=d --split=node", &p, &err), -EINVAL);
    assert_string_equal(err.msg, "GROUP_RANK=: expected a whole number from 0 to 4");
    unsetenv("GROUP_WORLD_SIZE");
    assert_int_equal(parse("--to=d --split=node", &p, &err), -EINVAL);
    assert_string_equal(err.msg, "GROUP_WORLD_SIZE=: expected a whole number from 1 to 65536");
}

static void test_what_is_refused_is_named(void **state) {
    (void)state;
    static const struct {
        const char *words, *said;
    } rows[] = {
        {"", "--to=DIR is needed: where it goes"},
        {"--from=x", "--to=DIR is needed: where it goes"},
        {"--to=d --samples=5", "--samples=5: only with --as=folders; ranktrain --samples takes the "
                               "first of what is prepared"},
        {"--to=d --dataset=none",
         "--dataset=none is not known: there are cifar10, fashion-mnist, folder, generated, mnist"},
        {"--to=d x", "unexpected argument 'x': see ranktrain prepare --help"},
        {"--to=d -x", "unexpected argument '-x': see ranktrain prepare --help"},
        {"--tu=d", "unknown option '--tu=d': did you mean --to?"},
        {"--zzzzzzzz", "unknown option '--zzzzzzzz': see ranktrain prepare --help"},
        {"--to=d --help=1", "--help takes no value"},
        {"--to=d --no-verify=1", "--no-verify takes no value"},
        {"--to=", "--to needs a value: DIR"},
        {"--to", "--to needs a value: DIR"},
        {"--to=d --dataset", "--dataset needs a value: NAME"},
        {"--to=d --as=", "--as needs a value: images|folders"},
        {"--to=d --as=zip", "--as=zip: expected images or folders"},
        {"--to=d --image-size=7", "--image-size=7: expected a whole number from 8 to 1024"},
        {"--to=d --image-size=1025", "--image-size=1025: expected a whole number from 8 to 1024"},
        {"--to=d --image-size=9x", "--image-size=9x: expected a whole number from 8 to 1024"},
        {"--to=d --image-size=x", "--image-size=x: expected a whole number from 8 to 1024"},
        {"--to=d --as=folders --samples=0",
         "--samples=0: expected a whole number from 1 to 1073741824"},
        {"--to=d --as=folders --samples=1073741825",
         "--samples=1073741825: expected a whole number from 1 to 1073741824"},
        {"--to=d --as=folders --samples=99999999999999999999",
         "--samples=99999999999999999999: expected a whole number from 1 to 1073741824"},
        {"--to=d --split=4", "--split=4: expected K/N, as 0/4, or node"},
        {"--to=d --split=nodes", "--split=nodes: expected K/N, as 0/4, or node"},
        {"--to=d --split=4/4", "K of --split=4: expected a whole number from 0 to 3"},
        {"--to=d --split=-1/4", "K of --split=-1: expected a whole number from 0 to 3"},
        {"--to=d --split=/4", "K of --split=: expected a whole number from 0 to 3"},
        {"--to=d --split=0/", "N of --split=: expected a whole number from 1 to 65536"},
        {"--to=d --split=0/0", "N of --split=0: expected a whole number from 1 to 65536"},
        {"--to=d --split=0/65537", "N of --split=65537: expected a whole number from 1 to 65536"},
        {"--to=d --split=0/4x", "N of --split=4x: expected a whole number from 1 to 65536"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct prepare p, before;
        struct err err = {0};
        memset(&p, 0xa5, sizeof(p));
        before = p;
        assert_int_equal(parse(rows[i].words, &p, &err), -EINVAL);
        assert_string_equal(err.msg, rows[i].said);
        assert_memory_equal(&p, &before, sizeof(p));
    }
}

/* Each word with what it means, in lines that are alike. */
static void test_help_has_every_word(void **state) {
    (void)state;
    static const char wanted[] =
        "usage: ranktrain prepare --to=DIR [OPTION...]\n\n"
        "Fetches a dataset, verifies it, splits it, makes its images one size and writes it as it "
        "is\n"
        "trained on, once: cifar10, fashion-mnist, folder, generated, mnist.\n\n"
        "  --dataset=NAME       what it is; fashion-mnist unless said\n"
        "  --from=DIR|URL       where its files are; where they usually are unless said\n"
        "  --to=DIR             where it goes, made if need be: what --data-dir of ranktrain names "
        "then\n"
        "  --image-size=N       folder: images are made N pixels wide and high; 32 unless said\n"
        "  --split=K/N|node     only every Nth image, from number K on (from 0); node: as "
        "GROUP_RANK and "
        "GROUP_WORLD_SIZE say\n"
        "  --as=images|folders  images: as ranktrain maps them, unless said; folders: train/CLASS/ "
        "and "
        "val/CLASS/ with a PNG for each image\n"
        "  --samples=N          of folders: the first N images of each set; all unless said\n"
        "  --cacert=FILE        https: who signs the server's certificate; $CURL_CA_BUNDLE unless "
        "said\n"
        "  --no-verify          take other files than those whose SHA-256 is known\n"
        "  --help               print this\n";
    static char got[8192];
    FILE *f = tmpfile();
    assert_non_null(f);
    fflush(stdout);
    int kept = dup(STDOUT_FILENO);
    dup2(fileno(f), STDOUT_FILENO);
    prepare_help();
    fflush(stdout);
    dup2(kept, STDOUT_FILENO);
    close(kept);
    rewind(f);
    got[fread(got, 1, sizeof(got) - 1, f)] = 0;
    fclose(f);
    assert_string_equal(got, wanted);
}

int main(int argc, char **argv) {
#define TEST(name) cmocka_unit_test_setup(test_##name, setup)
    const struct CMUnitTest tests[] = {
        TEST(a_word_sets_its_own_member_and_no_other),
        TEST(the_environment_says_which_part_and_who_signs),
        TEST(what_is_refused_is_named),
        TEST(help_has_every_word),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
