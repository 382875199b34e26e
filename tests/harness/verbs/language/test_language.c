/* The language printed for others: the schema has every word, the page is the tables. */
#include "harness/verbs/language/language.h"

#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static const struct json *parse_schema(struct arena *a) {
    struct buf out = {0};
    struct err err = {0};
    schema_put_scenario(&out);
    const struct json *root = json_parse(a, buf_str(&out), out.len, &err);
    if (!root)
        fail_msg("%s", err.msg);
    buf_fini(&out);
    return root;
}

static void test_every_word_that_is_read_has_a_form(void **state) {
    (void)state;
    for (size_t i = 0; sections[i]; i++)
        for (const struct key *k = sections[i]->keys; k->name; k++)
            if (k->read && !form_of(k))
                fail_msg("%s.%s has no form", sections[i]->name, k->name);
}

static void test_the_schema_has_exactly_the_words_that_are_read(void **state) {
    (void)state;
    struct arena a = {0};
    const struct json *all = json_get(parse_schema(&a), "definitions");
    for (size_t i = 0; sections[i]; i++) {
        const struct json *words = json_get(json_get(all, sections[i]->name), "properties");
        size_t n = 0;
        for (const struct key *k = sections[i]->keys; k->name; k++) {
            assert_int_equal(json_get(words, k->name) != NULL, k->read != NULL);
            n += k->read != NULL;
        }
        assert_int_equal(words->length, n);
    }
    arena_fini(&a);
}

/* Whoever writes "<diration>" into a table is told here. */
static void assert_refs_lead_somewhere(const struct json *at, const struct json *all) {
    static const char prefix[] = "#/definitions/";
    if (at->type == JSON_STRING && str_eq(at->key, "$ref")) {
        assert_true(str_starts(at->string, prefix));
        if (!json_get(all, at->string + strlen(prefix)))
            fail_msg("%s leads nowhere", at->string);
    }
    if (at->type == JSON_OBJECT || at->type == JSON_ARRAY)
        json_each(it, at) assert_refs_lead_somewhere(it, all);
}

static void test_every_reference_leads_somewhere(void **state) {
    (void)state;
    struct arena a = {0};
    const struct json *root = parse_schema(&a);
    assert_refs_lead_somewhere(root, json_get(root, "definitions"));
    arena_fini(&a);
}

static const struct json *any_of(const struct json *root, const char *section, const char *key) {
    const struct json *s = json_get(json_get(root, "definitions"), section);
    return json_get(json_get(json_get(s, "properties"), key), "anyOf");
}

static void test_words_numbers_lists_and_maps_become_what_they_are(void **state) {
    (void)state;
    struct arena a = {0};
    const struct json *root = parse_schema(&a);
    const struct json *store = json_first(any_of(root, "cluster", "store"));
    assert_string_equal(json_first(json_get(store, "enum"))->string, "embedded");
    assert_int_equal(json_get(store, "enum")->length, 4);
    assert_non_null(json_get(json_get(store->next, "properties"), "on"));
    const struct json *nodes = json_first(any_of(root, "cluster", "nodes"));
    assert_int_equal(json_get_i64(nodes, "minimum", -1), 1);
    assert_int_equal(json_get_i64(nodes, "maximum", -1), 240);
    const struct json *sizes = json_first(any_of(root, "expect", "world_sizes"));
    assert_string_equal(json_get_string(sizes, "type", ""), "array");
    const struct json *phases = json_first(any_of(root, "expect", "phases_within"));
    assert_non_null(json_get(json_get(phases, "properties"), "first step"));
    arena_fini(&a);
}

static void fill(const char *page, const char *want, const char *error) {
    struct buf out = {0};
    struct err err = {0};
    int r = manual_fill(page, &out, &err);
    assert_int_equal(r < 0, error != NULL);
    if (error)
        assert_non_null(strstr(err.msg, error));
    else
        assert_non_null(strstr(buf_str(&out), want));
    buf_fini(&out);
}

static void test_a_table_takes_the_place_of_what_stood_there(void **state) {
    (void)state;
    fill("a\n<!-- words: limits -->\nold\n<!-- end -->\nz\n", "| `stall` | a duration |", NULL);
    fill("a\n<!-- words: limits -->\nold\n<!-- end -->\nz\n", "|\n\n<!-- end -->\nz\n", NULL);
    fill("a\n<!-- words: faults -->\n<!-- end -->\n", "| `worker-kill` | ", NULL);
    fill("a\n<!-- words: presets -->\n<!-- end -->\n", "| `tqdm` | ", NULL);
    fill("nothing to fill\n", "nothing to fill\n", NULL);
    fill("a\n\n<!-- words: limit -->\n<!-- end -->\n", NULL,
         "line 3: there are no words \"limit\"");
    fill("a\n<!-- words: limits -->\nfor ever\n", NULL,
         "line 3: the words of limits are not ended");
}

static void test_filling_a_filled_page_changes_nothing(void **state) {
    (void)state;
    struct buf once = {0}, twice = {0};
    assert_int_equal(manual_fill("<!-- words: when -->\n<!-- end -->\n", &once, NULL), 0);
    assert_int_equal(manual_fill(buf_str(&once), &twice, NULL), 0);
    assert_string_equal(buf_str(&once), buf_str(&twice));
    buf_fini(&once);
    buf_fini(&twice);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_word_that_is_read_has_a_form),
        cmocka_unit_test(test_the_schema_has_exactly_the_words_that_are_read),
        cmocka_unit_test(test_every_reference_leads_somewhere),
        cmocka_unit_test(test_words_numbers_lists_and_maps_become_what_they_are),
        cmocka_unit_test(test_a_table_takes_the_place_of_what_stood_there),
        cmocka_unit_test(test_filling_a_filled_page_changes_nothing),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
