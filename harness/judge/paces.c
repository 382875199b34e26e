#include "harness/judge/paces.h"

#include "base/json.h"
#include "base/str.h"
#include "harness/judge/checks/lags.h"
#include "harness/judge/coverage.h"
#include "harness/run/control.h"
#include "harness/verb.h"

#include <stdlib.h>

enum { PACES_VERSION = 1, PACES_MAX = 1 << 20, RUNS_MAX = 8 };
static const int64_t MORE_NS = 1000000000;
static const char told[] = "slower.txt";

/* NULL: there is none of this scenario as it is now. */
static const struct json *read_record(struct arena *a, const char *path, const char *hash) {
    BUF_FINI struct buf text = {0};
    const struct json *j = NULL;
    struct folder cache;
    const char *name;
    if (cache_enter(path, false, &cache, &name, NULL) != 0)
        return NULL;
    if (folder_read(&cache, name, PACES_MAX, &text, NULL) == 0)
        j = json_parse(a, buf_str(&text), text.len, NULL);
    folder_close(&cache);
    bool known = j && json_get_i64(j, "v", 0) == PACES_VERSION &&
                 str_eq(json_get_string(j, "scenario", ""), hash);
    return known ? j : NULL;
}

/* ---- comparing ---- */

static int by_size(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int64_t phase_of(const struct json *incident, int phase) {
    int k = 0;
    json_each(ns, json_get(incident, "phases")) if (k++ == phase) return json_i64(ns, -1);
    return -1;
}

/* Of the earlier runs; -1: none of them had it. */
static int64_t median_ns(const struct json *record, const struct incident *in, int phase) {
    int64_t v[RUNS_MAX];
    size_t n = 0;
    json_each(run, json_get(record, "runs")) {
        json_each(i, json_get(run, "incidents")) {
            if (n == RUNS_MAX || !str_eq(json_get_string(i, "id", ""), in->id) ||
                json_get_i64(i, "n", 0) != in->n)
                continue;
            v[n] = phase_of(i, phase);
            n += v[n] >= 0;
        }
    }
    qsort(v, n, sizeof(*v), by_size);
    return n ? v[(n - 1) / 2] : -1;
}

static bool is_measured(const struct incident *in) {
    return in->id && in->ended_round && in->next && in->recover_ns >= 0;
}

static void compare(const struct json *record, const struct incident *in, const struct lags *lags,
                    struct buf *out) {
    for (int k = 0; k < PHASE_N; k++) {
        int64_t before = median_ns(record, in, k), bound = 2 * before + MORE_NS;
        if (before < 0 || in->phase_ns[k] <= bound ||
            lags_most_ns(lags, in->t0_ns, in->t0_ns + in->recover_ns) > bound / 10)
            continue;
        buf_printf(out, "%s%s of %s took %.0f ms, and %.0f ms in earlier runs",
                   out->len ? "; " : "", phase_name((enum phase)k), in->id,
                   (double)in->phase_ns[k] / 1e6, (double)before / 1e6);
    }
}

static void mark(struct verdict *v, const char *text) {
    for (size_t i = 0; i < v->n; i++) {
        struct finding *f = &v->v[i];
        BUF_FINI struct buf both = {0};
        if (!str_eq(f->check, "pace") || !*text)
            continue;
        buf_printf(&both, "%s%s%s", text, *f->seen ? "; " : "", f->seen);
        str_copy(f->seen, sizeof(f->seen), buf_str(&both));
        f->loud = true;
    }
}

/* ---- keeping ---- */

static void put_run(struct json_writer *w, const struct paces_spec *s, const struct incidents *is) {
    json_object(w, NULL);
    json_put_string(w, "dir", s->run->path);
    json_array(w, "incidents");
    for (size_t i = 0; i < is->n; i++) {
        if (!is_measured(is->v[i]))
            continue;
        json_object(w, NULL);
        json_put_string(w, "id", is->v[i]->id);
        json_put_i64(w, "n", is->v[i]->n);
        json_array(w, "phases");
        for (int k = 0; k < PHASE_N; k++)
            json_put_i64(w, NULL, is->v[i]->phase_ns[k]);
        json_end_array(w);
        json_end_object(w);
    }
    json_end_array(w);
    json_end_object(w);
}

/* The newest runs of before, and this one. */
static int write_record(const struct paces_spec *s, const struct json *before, const char *hash,
                        const struct incidents *is, struct err *err) {
    BUF_FINI struct buf out = {0};
    struct json_writer w = {.out = &out};
    const struct json *runs = before ? json_get(before, "runs") : NULL;
    size_t skip = runs && runs->length >= RUNS_MAX ? runs->length - RUNS_MAX + 1 : 0, at = 0;
    struct folder cache;
    const char *name;
    json_object(&w, NULL);
    json_put_i64(&w, "v", PACES_VERSION);
    json_put_string(&w, "scenario", hash);
    json_array(&w, "runs");
    json_each(run, runs) if (at++ >= skip) json_put_tree(&w, NULL, run);
    put_run(&w, s, is);
    json_end_array(&w);
    json_end_object(&w);
    buf_putc(&out, '\n');
    int r = cache_enter(s->file, true, &cache, &name, err);
    if (r != 0)
        return r;
    r = folder_write_synced(&cache, name, out.data, out.len, err);
    folder_close(&cache);
    return r;
}

int paces_take(const struct paces_spec *s, struct verdict *v, struct err *err) {
    ARENA_FINI struct arena a = {0};
    BUF_FINI struct buf slower = {0};
    struct incidents is;
    char hash[65];
    int r = 0;
    if (v->exit_code != EXIT_PASS)
        return 0;
    coverage_hash(s->scenario, hash);
    const struct json *before = read_record(&a, s->file, hash);
    struct lags *lags = lags_new(s->history);
    incidents_load(&is, s->history, s->rounds);
    for (size_t i = 0; before && i < is.n; i++)
        if (is_measured(is.v[i]))
            compare(before, is.v[i], lags, &slower);
    if (slower.len)
        r = folder_write(s->run, told, slower.data, slower.len, err);
    mark(v, buf_str(&slower));
    if (r == 0 && (!slower.len || s->renew))
        r = write_record(s, s->renew ? NULL : before, hash, &is, err);
    incidents_fini(&is);
    lags_free(lags);
    return r;
}

void paces_recall(const struct folder *run, struct verdict *v) {
    BUF_FINI struct buf text = {0};
    if (folder_read(run, told, PACES_MAX, &text, NULL) == 0)
        mark(v, buf_str(&text));
}
