/* What is known of the keys of a folder, beside a plain model of it: whatever was read, changed and put, in any order. */
#include "agent/legacy/mirror.h"

#include "base/rand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

enum { KEYS = 80 };

/* Keys that begin with each other, with and without a slash behind it. */
static char keys[KEYS][24];

static struct model {
    bool there;
    int value;
    int64_t modified;
} model[KEYS];

static struct rand chance;

static int draw(int n) {
    return (int)rand_below(&chance, (uint64_t)n);
}

static void name_keys(void) {
    for (int i = 0; i < KEYS; i++)
        snprintf(keys[i], sizeof(keys[i]),
                 i % 4 == 0   ? "/f/k%d"
                 : i % 4 == 1 ? "/f/k%d/a"
                 : i % 4 == 2 ? "/f/k%d/a/b"
                              : "/f/k%da",
                 i / 4);
}

static bool is_below(const char *key, const char *root) {
    size_t n = strlen(root);
    return strcmp(key, root) == 0 || (strncmp(key, root, n) == 0 && key[n] == '/');
}

static void set_model(int i, int value, int64_t modified) {
    if (!model[i].there || model[i].modified < modified)
        model[i] = (struct model){true, value, modified};
}

static struct tree_node node_of(int i, int value, int64_t modified, char text[16]) {
    snprintf(text, 16, "v%d", value);
    return (struct tree_node){.key = keys[i], .value = text, .modified = modified};
}

static void replace(struct mirror *m, int64_t index) {
    struct tree_node nodes[KEYS];
    char texts[KEYS][16];
    size_t n = 0;
    memset(model, 0, sizeof(model));
    for (int i = 0; i < KEYS; i++) {
        if (draw(3) == 0)
            continue;
        nodes[n] = node_of(i, i, index - draw(5), texts[i]);
        nodes[n].dir = draw(8) == 0;
        if (!nodes[n].dir)
            set_model(i, i, nodes[n].modified);
        n++;
    }
    mirror_replace(m, nodes, n, index);
}

static void change(struct mirror *m, int64_t index, bool put) {
    char text[16];
    int i = draw(KEYS), value = draw(1000);
    struct tree_node node = node_of(i, value, index - draw(6), text);
    node.dir = draw(6) == 0;
    node.gone = !put && draw(3) == 0;
    if (put)
        mirror_put(m, &node);
    else
        mirror_change(m, &node);
    if (!node.gone && !node.dir)
        set_model(i, value, node.modified);
    for (int k = 0; k < KEYS && node.gone; k++)
        if (is_below(keys[k], keys[i]) && model[k].modified <= node.modified)
            model[k].there = false;
}

static void assert_same(const struct mirror *m) {
    size_t n = 0;
    for (int i = 0; i < KEYS; i++) {
        char text[16];
        const struct mirror_key *k = mirror_find(m, keys[i]);
        assert_int_equal(k != NULL, model[i].there);
        if (!k)
            continue;
        snprintf(text, sizeof(text), "v%d", model[i].value);
        assert_string_equal(k->key, keys[i]);
        assert_string_equal(k->value, text);
        assert_int_equal(k->modified, model[i].modified);
        n++;
    }
    assert_int_equal(m->n, n);
}

static void test_all_that_came_is_known_and_nothing_else(void **state) {
    (void)state;
    name_keys();
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct mirror m = {0};
        int64_t index = 0, at = 100;
        uint64_t puts = 0;
        rand_init(&chance, seed);
        memset(model, 0, sizeof(model));
        for (int i = 0; i < 300; i++) {
            int what = draw(60);
            at += draw(4);
            if (what == 0) {
                replace(&m, at);
                index = at;
                assert_true(m.known);
            } else {
                int64_t before = m.index;
                change(&m, at, what < 15);
                puts += what < 15;
                assert_in_range(m.index, before, what < 15 ? before : at);
                index = m.index;
            }
            assert_int_equal(m.puts, puts);
            assert_int_equal(m.index, index);
            assert_same(&m);
        }
        mirror_fini(&m);
        assert_null(m.keys);
        assert_int_equal(m.n + (size_t)m.index + m.puts, 0);
        assert_false(m.known);
    }
}

/* A put is known before the change is told, which moves the index; nothing else does, and never back. */
static void test_the_index_is_that_of_the_last_change(void **state) {
    (void)state;
    struct mirror m = {0};
    struct tree_node node = {.key = "/f/k", .value = "v", .modified = 5};
    mirror_put(&m, &node);
    assert_int_equal(m.index, 0);
    assert_false(m.known);
    mirror_change(&m, &node);
    assert_int_equal(m.index, 5);
    node.modified = 4;
    mirror_change(&m, &node);
    assert_int_equal(m.index, 5);
    node.modified = 9;
    node.gone = true;
    mirror_change(&m, &node);
    assert_int_equal(m.index, 9);
    assert_null(mirror_find(&m, "/f/k"));
    mirror_replace(&m, NULL, 0, 3);
    assert_int_equal(m.index, 3);
    assert_true(m.known);
    mirror_fini(&m);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_that_came_is_known_and_nothing_else),
        cmocka_unit_test(test_the_index_is_that_of_the_last_change),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
