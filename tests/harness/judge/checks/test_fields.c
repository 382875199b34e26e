/* Fields: what all checks say of each history when one field of its scenario is another is what they said
 * before. Of a number it is also looked for at which value an answer turns.
 *
 *   test_fields --show worker-killed expect.goodput   all of it, in full
 *
 * `make verdicts` writes anew what is compared with. */
#include "tests/harness/judge/checks/asked.h"
#include "tests/harness/judge/checks/cases_judge.h"
#include "tests/harness/judge/checks/verdicts_compare.h"

#include <inttypes.h>

static void judge(struct verdict *ret, struct asked *a, const struct history *h) {
    struct trial t = {.scenario = asked_scenario(a), .history = h};
    verdict_judge(ret, &t);
}

/* ---- one field of it ---- */

/* A field that is another, and what comes of it. */
struct altered_field {
    const struct field *of;
    const char *name; /* of the history */
    const struct history *history;
    const struct verdict *base;
    bool differs[64];
    uint64_t sum;
    struct buf *told; /* NULL: nobody wants it in full */
};

static void note(struct altered_field *f, const char *text) {
    f->sum = verdicts_sum(f->sum, text);
    if (f->told)
        buf_puts(f->told, text);
}

static void note_verdict(struct altered_field *f, const char *value, const struct verdict *v) {
    struct buf said = {0};
    buf_printf(&said, "%s\n", value);
    verdicts_put_difference(&said, f->base, v);
    note(f, buf_str(&said));
    for (size_t i = 0; i < v->n; i++)
        f->differs[i] |=
            v->v[i].status != f->base->v[i].status || !str_eq(v->v[i].seen, f->base->v[i].seen);
    buf_fini(&said);
}

static void judge_number(struct altered_field *f, int64_t n, struct verdict *ret) {
    struct asked a;
    asked_begin(&a, f->name, DIALECT_STRICT);
    asked_set_number(&a, f->of, n);
    judge(ret, &a, f->history);
}

static bool same_answers(const struct verdict *a, const struct verdict *b) {
    for (size_t i = 0; i < a->n; i++)
        if (a->v[i].status != b->v[i].status)
            return false;
    return true;
}

/* Of the values from low to high the first at which not all answers are those of low. */
static void find_turn(struct altered_field *f, int64_t low, int64_t high,
                      const struct verdict *at_low) {
    char text[40];
    while (high - low > 1) {
        struct verdict v;
        int64_t middle = low + (high - low) / 2;
        judge_number(f, middle, &v);
        if (same_answers(&v, at_low))
            low = middle;
        else
            high = middle;
    }
    snprintf(text, sizeof(text), "turns at %" PRId64 "\n", high);
    note(f, text);
}

static void try_numbers(struct altered_field *f) {
    static const int64_t values[] = {-1, 0,   1,       2,         3,           5,
                                     9,  100, 1000000, 100000000, 10000000000, 10000000000000};
    size_t n = f->of->n ? (size_t)f->of->n : 8;
    struct verdict was, v;
    if (f->of->type == FIELD_I64)
        n = sizeof(values) / sizeof(*values);
    for (size_t i = 0; i < n; i++) {
        int64_t value = f->of->n ? (int64_t)i : values[i];
        char text[40];
        snprintf(text, sizeof(text), "%" PRId64, value);
        judge_number(f, value, &v);
        note_verdict(f, text, &v);
        if (!f->of->n && i && !same_answers(&v, &was))
            find_turn(f, values[i - 1], value, &was);
        was = v;
    }
}

static void try_text(struct altered_field *f, const char *text) {
    struct asked a;
    struct verdict v;
    asked_begin(&a, f->name, DIALECT_STRICT);
    asked_set_text(&a, f->of, text);
    judge(&v, &a, f->history);
    note_verdict(f, text ? text : "(none)", &v);
}

static void try_field(struct altered_field *f) {
    if (f->of->type != FIELD_TEXT) {
        try_numbers(f);
        return;
    }
    for (const char *const *text = f->of->texts; *text; text++)
        try_text(f, *text);
    if (f->of->may_be_null)
        try_text(f, NULL);
}

/* Every field of one history, or that of this name. */
static void try_history(const char *name, const char *only, struct buf *told, struct buf *out) {
    static const struct edit none[1];
    struct history h;
    struct verdict base;
    struct asked a;
    planted_load(&h, name, none);
    asked_begin(&a, name, DIALECT_STRICT);
    judge(&base, &a, &h);
    for (size_t i = 0; i < asked_fields_n; i++) {
        struct altered_field f = {&asked_fields[i],        name, &h, &base, {false},
                                  VERDICTS_SUM_OF_NOTHING, told};
        if (only && !str_eq(asked_fields[i].name, only))
            continue;
        try_field(&f);
        buf_printf(out, "%s %s:", name, asked_fields[i].name);
        for (size_t k = 0; k < base.n; k++)
            if (f.differs[k])
                buf_printf(out, " %s", base.v[k].check);
        buf_printf(out, " %016" PRIx64 "\n", f.sum);
    }
    history_fini(&h);
}

static void test_what_is_said_under_another_scenario_is_the_same_as_before(void **state) {
    (void)state;
    static const char *const names[] = {
        "given",  "gpu-worker-killed", "lines",        "node-powered-off", "printed-steps",
        "probed", "weights",           "worker-killed"};
    struct buf is = {0};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        try_history(names[i], NULL, NULL, &is);
    compare("fields", &is);
    buf_fini(&is);
}

static int show(const char *history, const char *field) {
    struct buf told = {0}, out = {0};
    try_history(history, field, &told, &out);
    fputs(buf_str(&told), stdout);
    buf_fini(&told);
    buf_fini(&out);
    return 0;
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_said_under_another_scenario_is_the_same_as_before),
    };
    if (argc == 4 && str_eq(argv[1], "--show"))
        return show(argv[2], argv[3]);
    fill = argc == 2 && str_eq(argv[1], "--fill");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
