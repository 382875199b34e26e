#include "harness/play/budget.h"

#include "base/str.h"
#include "harness/run/control.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>

static const int64_t GUESS_NS = 15000000000, SECOND_NS = 1000000000;

/* ---- what is known ---- */

static int64_t guess_ns(const struct scenario *s) {
    int64_t last = 0;
    for (size_t i = 0; i < s->timeline_n; i++)
        if (s->timeline[i].when.time_ns > last)
            last = s->timeline[i].when.time_ns;
    return last + GUESS_NS;
}

int64_t budget_estimate_ns(const struct selected *l) {
    char path[PATH_MAX];
    const char *name;
    struct folder cache = FOLDER_NONE;
    BUF_FINI struct buf text = {0};
    int64_t ms = 0;
    bool known = selected_cache(l, "durations", false, path, sizeof(path)) == 0 &&
                 cache_enter(path, false, &cache, &name, NULL) == 0 &&
                 folder_read(&cache, name, 64, &text, NULL) == 0 &&
                 str_to_i64(buf_str(&text), 0, INT64_MAX / 1000000, &ms);
    folder_close(&cache);
    return known ? ms * 1000000 : guess_ns(l->scenario);
}

void budget_note(const struct selected *l, int64_t took_ns) {
    char path[PATH_MAX], text[32];
    const char *name;
    struct folder cache;
    if (selected_cache(l, "durations", false, path, sizeof(path)) < 0)
        return;
    int n = snprintf(text, sizeof(text), "%" PRId64, took_ns / 1000000);
    if (cache_enter(path, true, &cache, &name, NULL) != 0)
        return;
    folder_write_synced(&cache, name, text, (size_t)n, NULL);
    folder_close(&cache);
}

/* ---- what is chosen ---- */

static int by_estimate(const void *a, const void *b) {
    const struct selected *x = a, *y = b;
    if (x->estimate_ns != y->estimate_ns)
        return x->estimate_ns < y->estimate_ns ? -1 : 1;
    return x->order < y->order ? -1 : 1;
}

void budget_sort(struct selection *s) {
    for (size_t i = 0; i < s->n; i++) {
        s->v[i].order = i;
        s->v[i].estimate_ns = budget_estimate_ns(&s->v[i]);
    }
    qsort(s->v, s->n, sizeof(*s->v), by_estimate);
}

void budget_choose(struct selection *s, int64_t left_ns, int at_once,
                   int64_t (*runs)(const void *arg, const struct selected *l), const void *arg) {
    for (size_t i = 0; i < s->n; i++) {
        struct selected *l = &s->v[i];
        int64_t each = l->alone ? l->estimate_ns : l->estimate_ns / at_once;
        int64_t n = runs(arg, l);
        l->left_out = each > 0 && n > left_ns / each;
        if (!l->left_out)
            left_ns -= each * n;
    }
}

static void put_seconds(int64_t ns, FILE *out) {
    fprintf(out, "%" PRId64 " s", (ns + SECOND_NS - 1) / SECOND_NS);
}

void budget_print(const struct selection *s, int64_t budget_ns, FILE *out) {
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        n += s->v[i].left_out;
    if (!n)
        return;
    fprintf(out, "\nleft out by --budget ");
    put_seconds(budget_ns, out);
    fprintf(out, ": %zu of %zu\n", n, s->n);
    for (size_t i = 0; i < s->n; i++) {
        if (!s->v[i].left_out)
            continue;
        fprintf(out, "  %s (%s), about ", s->v[i].scenario->name, s->v[i].file);
        put_seconds(s->v[i].estimate_ns, out);
        fputc('\n', out);
    }
}
