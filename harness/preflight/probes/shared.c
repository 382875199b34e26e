/* Whether the shared directory is shared: what one host writes, every other reads; and in which time. */
#include "harness/preflight/probe.h"

#include "base/sys/random.h"

enum { WITHIN_MS = 5000 };

/* What a host writes, and where. */
struct written {
    const char *path, *text;
    const struct json *wrote; /* NULL: it could not */
};

static void put_written(const struct probing *p, const struct written *v, size_t i,
                        struct json_writer *w) {
    json_put_string(w, "name", p->v[i].host);
    json_put_string(w, "path", v[i].path);
    json_put_string(w, "text", v[i].text);
}

static void ask_own(struct probing *p, const struct written *v, size_t i, const char *what) {
    BUF_FINI struct buf out = {0};
    struct json_writer w = {.out = &out};
    json_object(&w, NULL);
    json_put_string(&w, "do", what);
    put_written(p, v, i, &w);
    json_end_object(&w);
    station_ask(&p->v[i], buf_str(&out));
}

/* What all the others have written. */
static void ask_others(struct probing *p, const struct written *v, size_t i) {
    BUF_FINI struct buf out = {0};
    struct json_writer w = {.out = &out};
    json_object(&w, NULL);
    json_put_string(&w, "do", "read");
    json_put_i64(&w, "within_ms", WITHIN_MS);
    json_array(&w, "files");
    for (size_t k = 0; k < p->n; k++)
        if (k != i && v[k].wrote) {
            json_object(&w, NULL);
            put_written(p, v, k, &w);
            json_end_object(&w);
        }
    json_end_array(&w);
    json_end_object(&w);
    station_ask(&p->v[i], buf_str(&out));
}

/* All at the same time, as a checkpoint is written. */
static struct written *write_all(struct probing *p, const char *shared) {
    struct written *v = arena_array(p->arena, struct written, p->n);
    for (size_t i = 0; i < p->n; i++) {
        unsigned long long random = random_u64();
        v[i].text = arena_printf(p->arena, "%s %016llx", p->v[i].host, random);
        v[i].path = arena_printf(p->arena, "%s/.rankquake-preflight-%zu-%016llx", shared, i,
                                 (unsigned long long)random_u64());
        ask_own(p, v, i, "write");
    }
    for (size_t i = 0; i < p->n; i++)
        v[i].wrote = probe_hear(p, i);
    return v;
}

/* One sentence a host, however many it misses. */
static void blame(struct probing *p, size_t i, const char *shared, const struct json *missing) {
    const struct json *first = json_first(missing);
    if (!first)
        return;
    probe_fail(p, "%s does not see in %s what %s%s written there%s: it is not shared", p->v[i].host,
               shared, json_get_string(first, "name", "?"),
               missing->length > 1
                   ? arena_printf(p->arena, " and %zu more have", missing->length - 1)
                   : " has",
               json_get_bool(first, "there", false) ? " (it sees something else)" : "");
}

/* In which time the slowest has read all; each host's own is put beside what it wrote. */
static int64_t read_all(struct probing *p, const struct written *v, const char *shared) {
    int64_t slowest = 0;
    for (size_t i = 0; i < p->n; i++)
        ask_others(p, v, i);
    for (size_t i = 0; i < p->n; i++) {
        const struct json *j = probe_hear(p, i);
        int64_t us = json_get_i64(j, "us", -1);
        blame(p, i, shared, json_get(j, "missing"));
        json_object(p->figures, p->v[i].host);
        json_put_i64(p->figures, "fsync_us", json_get_i64(v[i].wrote, "fsync_us", -1));
        json_put_i64(p->figures, "rename_us", json_get_i64(v[i].wrote, "rename_us", -1));
        json_put_i64(p->figures, "sees_all_us", us);
        json_end_object(p->figures);
        slowest = us > slowest ? us : slowest;
    }
    return slowest;
}

static void remove_all(struct probing *p, const struct written *v) {
    for (size_t i = 0; i < p->n; i++)
        if (v[i].wrote)
            ask_own(p, v, i, "remove");
    for (size_t i = 0; i < p->n; i++)
        if (v[i].wrote)
            probe_hear(p, i);
}

static void ask(struct probing *p) {
    const char *shared = json_get_string(p->given, "shared", NULL);
    if (!shared) {
        probe_skip(p, "no directory is said to be shared (--shared DIR)");
        return;
    }
    struct written *v = write_all(p, shared);
    int64_t slowest = read_all(p, v, shared);
    remove_all(p, v);
    probe_pass(p, "%s: what one host writes is read by all others within %.1f ms", shared,
               (double)slowest / 1e3);
}

const struct probe probe_shared = {
    .name = "shared",
    .text =
        "what each host writes into the shared directory, every other reads; fsync, rename, delay",
    .within_ns = INT64_C(60) * 1000000000,
    .ask = ask,
};
