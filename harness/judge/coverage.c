#include "harness/judge/coverage.h"

#include "base/json.h"
#include "base/sha256.h"
#include "base/str.h"
#include "harness/judge/checks/check.h"
#include "harness/run/control.h"
#include "harness/verb.h"

enum { BASELINE_VERSION = 1, BASELINE_MAX = 1 << 16 };

static bool is_backed(const struct finding *f) {
    const struct check *c = check_find(f->check);
    bool answered = f->status == FINDING_PASS || f->status == FINDING_FAIL;
    for (int s = 0; s < SOURCE_N && c && answered; s++)
        if ((c->sources & (1u << s)) && source_is_evidence((enum source)s))
            return true;
    return false;
}

void coverage_hash(const struct scenario *s, char ret[65]) {
    struct scenario one = *s;
    struct buf text = {0};
    struct sha256 sum;
    one.has_seed = false;
    scenario_print(&one, &text);
    sha256_init(&sum);
    sha256_update(&sum, text.data, text.len);
    sha256_hex(&sum, ret);
    buf_fini(&text);
}

/* ---- files ---- */

/* NULL: there is none, or none that is known. */
static const struct json *read_file(struct arena *a, const struct folder *f, const char *name) {
    BUF_FINI struct buf text = {0};
    const struct json *j = NULL;
    if (folder_read(f, name, BASELINE_MAX, &text, NULL) == 0)
        j = json_parse(a, buf_str(&text), text.len, NULL);
    return j && json_get_i64(j, "v", 0) == BASELINE_VERSION ? j : NULL;
}

static const struct json *read_cached(struct arena *a, const char *path) {
    struct folder cache;
    const char *name;
    if (cache_enter(path, false, &cache, &name, NULL) != 0)
        return NULL;
    const struct json *j = read_file(a, &cache, name);
    folder_close(&cache);
    return j;
}

static void put_names(struct json_writer *w, const char *key, const struct verdict *v, bool lost) {
    json_array(w, key);
    for (size_t i = 0; i < v->n; i++)
        if (lost ? v->v[i].lost : is_backed(&v->v[i]))
            json_put_string(w, NULL, v->v[i].check);
    json_end_array(w);
}

static int write_record(const struct coverage_spec *s, const struct verdict *v,
                        const struct json *before, const char *hash, struct err *err) {
    struct buf out = {0};
    struct json_writer w = {.out = &out};
    struct folder cache;
    const char *name;
    json_object(&w, NULL);
    json_put_i64(&w, "v", BASELINE_VERSION);
    json_put_string(&w, "scenario", hash);
    json_put_string(&w, "dir", before ? json_get_string(before, "dir", "") : s->run->path);
    if (before) {
        json_array(&w, "answered");
        json_each(check, json_get(before, "answered"))
            json_put_string(&w, NULL, json_string(check, ""));
        json_end_array(&w);
    } else {
        put_names(&w, "answered", v, false);
    }
    put_names(&w, "lost", v, true);
    json_end_object(&w);
    buf_putc(&out, '\n');
    int r = cache_enter(s->file, true, &cache, &name, err);
    if (r == 0) {
        r = folder_write_synced(&cache, name, out.data, out.len, err);
        folder_close(&cache);
    }
    buf_fini(&out);
    return r;
}

static int write_lost(const struct folder *run, const struct verdict *v, struct err *err) {
    struct buf out = {0};
    struct json_writer w = {.out = &out};
    json_object(&w, NULL);
    json_put_i64(&w, "v", BASELINE_VERSION);
    json_put_string(&w, "since", v->lost_since);
    put_names(&w, "lost", v, true);
    json_end_object(&w);
    buf_putc(&out, '\n');
    int r = folder_write(run, "lost.json", out.data, out.len, err);
    buf_fini(&out);
    return r;
}

/* ---- comparing ---- */

static size_t mark(struct verdict *v, const struct json *names, const char *since) {
    size_t n = 0;
    json_each(name, names) {
        for (size_t i = 0; i < v->n; i++)
            if (str_eq(v->v[i].check, json_string(name, "")) && !is_backed(&v->v[i])) {
                v->v[i].lost = true;
                n++;
            }
    }
    str_copy(v->lost_since, sizeof(v->lost_since), n ? since : "");
    return n;
}

int coverage_take(const struct coverage_spec *s, struct verdict *v, struct err *err) {
    ARENA_FINI struct arena a = {0};
    char hash[65];
    if (v->exit_code == EXIT_BROKEN || v->exit_code == EXIT_INTERRUPTED)
        return 0;
    coverage_hash(s->scenario, hash);
    const struct json *before = read_cached(&a, s->file);
    const char *since = before ? json_get_string(before, "dir", "") : "";
    size_t n = before ? mark(v, json_get(before, "answered"), since) : 0;
    bool same = before && str_eq(json_get_string(before, "scenario", ""), hash);
    int r = write_record(s, v, n && same && !s->renew ? before : NULL, hash, err);
    if (n && r == 0)
        r = write_lost(s->run, v, err);
    return r;
}

void coverage_recall(const struct folder *run, struct verdict *v) {
    ARENA_FINI struct arena a = {0};
    const struct json *j = read_file(&a, run, "lost.json");
    if (j)
        mark(v, json_get(j, "lost"), json_get_string(j, "since", ""));
}

size_t coverage_lost(const char *file) {
    ARENA_FINI struct arena a = {0};
    const struct json *j = read_cached(&a, file);
    const struct json *lost = j ? json_get(j, "lost") : NULL;
    return lost && lost->type == JSON_ARRAY ? lost->length : 0;
}
