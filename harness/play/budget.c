#include "harness/play/budget.h"

#include "base/sha256.h"
#include "base/str.h"
#include "harness/run/control.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const int64_t GUESS_NS = 15000000000, SECOND_NS = 1000000000;

/* ---- what is known ---- */

int64_t budget_guess_ns(const struct scenario *s) {
    int64_t last = 0;
    for (size_t i = 0; i < s->timeline_n; i++)
        if (s->timeline[i].when.time_ns > last)
            last = s->timeline[i].when.time_ns;
    return last + GUESS_NS;
}

/* By its name and its file as it is called from here, so that another checkout finds it. */
static int times_file(const struct selected *l, char *ret, size_t size) {
    char real[PATH_MAX], here[PATH_MAX], key[65];
    struct sha256 hash;
    if (!realpath(l->file, real) || !getcwd(here, sizeof(here)))
        return -errno;
    size_t n = strlen(here);
    bool below = n > 1 && strncmp(real, here, n) == 0 && real[n] == '/';
    const char *file = below ? real + n + 1 : real;
    sha256_init(&hash);
    sha256_update(&hash, file, strlen(file) + 1);
    sha256_update(&hash, l->scenario->name, strlen(l->scenario->name) + 1);
    for (const char *const *s = l->sets; s && *s; s++)
        sha256_update(&hash, *s, strlen(*s) + 1);
    sha256_hex(&hash, key);
    return cache_dir("durations", key, ret, size, NULL);
}

/* "MS CODE": how long the last run took, and how it ended. */
static bool last_run(const struct selected *l, int64_t *ret_ns, int64_t *ret_code) {
    char path[PATH_MAX];
    const char *name;
    struct folder cache = FOLDER_NONE;
    BUF_FINI struct buf text = {0};
    ARENA_FINI struct arena a = {0};
    int64_t ms = 0, code = 0;
    bool known = times_file(l, path, sizeof(path)) == 0 &&
                 cache_enter(path, false, &cache, &name, NULL) == 0 &&
                 folder_read(&cache, name, 64, &text, NULL) == 0;
    folder_close(&cache);
    char **words = str_split(&a, buf_str(&text), ' ', NULL);
    if (!known || !words[0] || !str_to_i64(words[0], 0, INT64_MAX / 1000000, &ms) ||
        (words[1] && !str_to_i64(words[1], 0, 255, &code)))
        return false;
    *ret_ns = ms * 1000000;
    *ret_code = code;
    return true;
}

bool budget_measured(const struct selected *l, int64_t *ret_ns) {
    int64_t code;
    return last_run(l, ret_ns, &code);
}

int64_t budget_estimate_ns(const struct selected *l) {
    int64_t ns;
    return budget_measured(l, &ns) ? ns : budget_guess_ns(l->scenario);
}

void budget_note(const struct selected *l, int64_t took_ns, int code) {
    char path[PATH_MAX], text[48];
    const char *name;
    struct folder cache;
    if (times_file(l, path, sizeof(path)) < 0)
        return;
    int n = snprintf(text, sizeof(text), "%" PRId64 " %d", took_ns / 1000000, code);
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

/* The last run of it did not pass. */
static bool is_suspect(const struct selected *l) {
    int64_t ns, code;
    return last_run(l, &ns, &code) && code != 0 && code != 4;
}

static bool has_fault(const struct scenario *s, const char *fault) {
    for (size_t i = 0; i < s->timeline_n; i++)
        if (s->timeline[i].fault && str_eq(s->timeline[i].fault, fault))
            return true;
    return false;
}

/* Kinds of faults that none of the first n has. */
static size_t new_faults(const struct selection *s, size_t n, const struct scenario *one) {
    size_t fresh = 0;
    for (size_t i = 0; i < one->timeline_n; i++) {
        bool had = !one->timeline[i].fault;
        for (size_t k = 0; k < i && !had; k++)
            had = one->timeline[k].fault && str_eq(one->timeline[k].fault, one->timeline[i].fault);
        for (size_t k = 0; k < n && !had; k++)
            had = has_fault(s->v[k].scenario, one->timeline[i].fault);
        fresh += !had;
    }
    return fresh;
}

/* What it teaches in a second, behind the first n: one that failed the last time comes before all. */
static double telling(const struct selection *s, size_t n, const struct selected *l) {
    double seconds = (double)l->estimate_ns / 1e9 + 0.001;
    return (l->suspect ? 1e9 : (double)new_faults(s, n, l->scenario)) / seconds;
}

static void swap(struct selected *a, struct selected *b) {
    struct selected x = *a;
    *a = *b;
    *b = x;
}

void budget_sort(struct selection *s) {
    for (size_t i = 0; i < s->n; i++) {
        s->v[i].order = i;
        s->v[i].estimate_ns = budget_estimate_ns(&s->v[i]);
        s->v[i].suspect = is_suspect(&s->v[i]);
    }
    qsort(s->v, s->n, sizeof(*s->v), by_estimate);
    for (size_t n = 0; n < s->n; n++) {
        size_t best = n;
        double most = telling(s, n, &s->v[n]);
        for (size_t i = n + 1; i < s->n; i++)
            if (telling(s, n, &s->v[i]) > most)
                most = telling(s, n, &s->v[best = i]);
        if (most <= 0)
            return; /* the rest has nothing new: fast ones first, as they are */
        for (size_t i = best; i > n; i--) /* the others keep their order */
            swap(&s->v[i], &s->v[i - 1]);
    }
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
