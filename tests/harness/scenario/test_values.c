/* Every word with values that strangers write: each answer names the file, the line and the word's
 * trouble in a few words, and what cannot be meant is never taken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "harness/scenario/keys.h"
#include "harness/verbs/language/language.h"
#include "tests/harness/scenario/scratch.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char long_text[5000];

/* wrong: the forms for which it can never be right. */
static const struct value {
    const char *text, *wrong;
} values[] = {
    {"[a, b]", "<int> <duration> <bool> <text> <percent> <id> <target>"},
    {"[]", "<int> <duration> <bool> <text> <percent> <id> <target>"},
    {"[[a], {b: c}]", "<int> <duration> <bool> <text> <percent> <id> <target>"},
    {"[~]", "<int> <duration> <bool> <text> <percent> <id> <target> [<text>] [<scalar>]"},
    {"{a: b}", "<int> <duration> <bool> <text> <percent> <id> <target>"},
    {"{}", "<int> <duration> <bool> <text> <percent> <id> <target>"},
    {"", "<int> <duration> <bool> <text> <percent> <id> <target>"},
    {"~", "<int> <duration> <bool> <text> <percent> <id> <target>"},
    {"''", "<int> <duration> <bool> <text> <percent> <id> <target>"},
    {"' '", "<int> <duration> <bool> <percent> <id> <target>"},
    {"-1", "<int> <duration> <bool> <percent> <target>"},
    {"-5s", "<int> <duration> <bool> <percent> <target>"},
    {"99999999999999999999999", "<int> <duration> <bool> <percent> <target>"},
    {"99999999999999h", "<int> <duration> <bool> <percent> <target>"},
    {"5 parsecs", "<int> <duration> <bool> <percent> <id> <target>"},
    {"5", "<duration> <bool> <percent> <target>"},
    {"'5'", "<int> <duration> <bool> <percent> <target>"},
    {"1.5", "<int> <duration> <bool> <percent> <target>"},
    {"nonsense", "<int> <duration> <bool> <percent> <target>"},
    {"yes", "<int> <duration> <bool> <percent> <target>"},
    {"\"a\\0b\"", "<int> <duration> <bool> <text> <percent> <id> <target>"},
    {"\"a\\nb\"", "<int> <duration> <bool> <percent> <id> <target>"},
    {"\"\\u263a\"", "<int> <duration> <bool> <percent> <id> <target>"},
    {long_text, "<int> <duration> <bool> <percent> <id> <target>"},
};
enum { VALUES_N = sizeof(values) / sizeof(*values) };

/* Where the keys of a section stand: what goes before "key: value" and behind it, with what else
 * such a map needs. */
static const struct home {
    const char *section, *before, *behind, *needs[3];
} homes[] = {
    {"scenario", "", "\n", {"job: {run: [ls]}\n"}},
    {"cluster", "cluster: {", "}\n", {0}},
    {"job", "job: {", "}\n", {"run: [ls]"}},
    {"checkpoint", "job: {run: [ls], checkpoint: {", "}}\n", {"dir: d"}},
    {"observe", "observe: {", "}\n", {0}},
    {"timeline", "timeline: [{", "}]\n", {"when: {time: 1s}", "fault: worker-hang", "on: n0"}},
    {"when", "timeline: [{fault: worker-hang, on: n0, when: {", "}}]\n", {"round: 2"}},
    {"random", "random: {", "}\n", {0}},
    {"expect", "expect: {", "}\n", {0}},
    {"log", "expect: {log: [{", "}]}\n", {"never: /x/"}},
    {"probe", "probe: {up: {", "}}\n", {"cmd: [ls]"}},
    {"checks", "checks: [{", "}]\n", {"program: [ls]"}},
    {"limits", "limits: {", "}\n", {0}},
    {"repeat", "repeat: {", "}\n", {0}},
};

static const struct home *home_of(const char *section) {
    for (size_t i = 0; i < sizeof(homes) / sizeof(*homes); i++)
        if (str_eq(homes[i].section, section))
            return &homes[i];
    return NULL; /* suites and traces are files of their own */
}

static bool names(const char *need, const char *key) {
    size_t n = strlen(key);
    return strncmp(need, key, n) == 0 && need[n] == ':';
}

static void put(struct buf *out, const struct home *h, const char *key, const char *value) {
    bool top = str_eq(h->section, "scenario"), job = strstr(h->before, "job: {") || top;
    buf_printf(out, "%s%s%s: %s", job ? "" : "job: {run: [ls]}\n", h->before, key, value);
    for (size_t i = 0; i < 3 && h->needs[i]; i++)
        if (!names(h->needs[i], key))
            buf_printf(out, "%s%s", top ? "\n" : ", ", h->needs[i]);
    buf_puts(out, h->behind);
}

static bool is_wrong(const struct value *v, const struct key *k) {
    struct arena a = {0};
    char **forms = str_split(&a, v->wrong, ' ', NULL);
    bool wrong = false;
    for (; *forms; forms++)
        wrong |= str_eq(*forms, form_of(k));
    arena_fini(&a);
    return wrong;
}

/* FILE:LINE:COLUMN: and a sentence that a person reads. */
static void assert_said(const char *out, const char *text) {
    const char *at = strstr(out, ".yaml:");
    size_t line = strcspn(out, "\n");
    if (!at || !isdigit((unsigned char)at[6]) || line > 1200 || line < 20)
        fail_msg("%.200s\nis answered by\n%.300s", text, out);
}

static void try(const struct home *h, const struct key *k, const struct value *v) {
    struct buf text = {0};
    struct scratch x = {0};
    put(&text, h, k->name, v->text);
    scratch_load(&x, buf_str(&text));
    if (!x.s)
        assert_said(buf_str(&x.d.out), buf_str(&text));
    else if (is_wrong(v, k))
        fail_msg("%.200s is taken", buf_str(&text));
    scratch_drop(&x);
    buf_fini(&text);
}

static void test_every_word_answers_a_wrong_value_with_its_place(void **state) {
    (void)state;
    size_t tried = 0;
    memset(long_text, 'x', sizeof(long_text) - 1);
    for (size_t i = 0; sections[i]; i++) {
        const struct home *h = home_of(sections[i]->name);
        for (const struct key *k = sections[i]->keys; h && k->name; k++)
            for (size_t n = 0; n < VALUES_N; n++, tried++)
                try(h, k, &values[n]);
    }
    assert_true(tried > 2000);
}

static void test_an_item_of_a_list_is_something(void **state) {
    (void)state;
    static const char *const lists[] = {
        "job: {run: [ls, ~]}\n",
        "job: {run: ['', a]}\n",
        "job: {run: [ls], needs: ['']}\n",
        "tags: ['']\njob: {run: [ls]}\n",
        "launcher: ['']\njob: {run: [ls]}\n",
        "job: {run: [ls]}\nchecks: [{program: ['']}]\n",
        "job: {run: [ls]}\nprobe: {up: {cmd: ['', a]}}\n",
    };
    for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
        struct scratch x = {0};
        scratch_load(&x, lists[i]);
        if (x.s)
            fail_msg("%s is taken", lists[i]);
        assert_said(buf_str(&x.d.out), lists[i]);
        scratch_drop(&x);
    }
    struct scratch x = {0};
    scratch_load(&x, "job: {run: [ls, '', '~']}\n"); /* a program may be given an empty word */
    assert_non_null(x.s);
    scratch_drop(&x);
}

static void test_a_long_value_is_not_said_again(void **state) {
    (void)state;
    struct buf text = {0};
    struct scratch x = {0};
    buf_puts(&text, "job: {run: [ls]}\nseed: ");
    for (int i = 0; i < 2000; i++)
        buf_puts(&text, "\xe2\x98\xba");
    scratch_load(&x, buf_str(&text));
    assert_null(x.s);
    assert_true(strcspn(buf_str(&x.d.out), "\n") < 1000);
    assert_non_null(strstr(buf_str(&x.d.out), "seed must be a whole number, not \""));
    assert_non_null(strstr(buf_str(&x.d.out), "\xe2\x98\xba ... \xe2\x98\xba"));
    scratch_drop(&x);
    buf_fini(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_word_answers_a_wrong_value_with_its_place),
        cmocka_unit_test(test_an_item_of_a_list_is_something),
        cmocka_unit_test(test_a_long_value_is_not_said_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
