/* Whether the shared directory is shared: what one host writes, every other reads; and in which time. */
#include "harness/preflight/probe.h"

#include "base/str.h"
#include "base/sys/random.h"

#include <stdio.h>

enum { WITHIN_MS = 5000 };

static const char *question(struct probing *p, const char *what, const char *path,
                            const char *text) {
    BUF_FINI struct buf out = {0};
    struct json_writer w = {.out = &out};
    json_object(&w, NULL);
    json_put_string(&w, "do", what);
    json_put_string(&w, "path", path);
    json_put_string(&w, "text", text);
    json_put_i64(&w, "within_ms", WITHIN_MS);
    json_end_object(&w);
    return arena_strdup(p->arena, buf_str(&out));
}

/* Host i writes its token, all others read it. */
static int64_t ask_one(struct probing *p, size_t i, const char *shared) {
    int64_t slowest = 0;
    const char *text =
        arena_printf(p->arena, "%s %016llx", p->v[i].host, (unsigned long long)random_u64());
    const char *path = arena_printf(p->arena, "%s/.rankquake-preflight-%zu-%016llx", shared, i,
                                    (unsigned long long)random_u64());
    station_ask(&p->v[i], question(p, "write", path, text));
    const struct json *wrote = probe_hear(p, i);
    const char *read = question(p, "read", path, text);
    for (size_t k = 0; k < p->n && wrote; k++)
        if (k != i)
            station_ask(&p->v[k], read);
    for (size_t k = 0; k < p->n && wrote; k++) {
        const struct json *j = k == i ? NULL : probe_hear(p, k);
        int64_t us = json_get_i64(j, "us", 0);
        if (j && !json_get_bool(j, "same", false))
            probe_fail(p, "%s does not see in %s what %s has written there%s: it is not shared",
                       p->v[k].host, shared, p->v[i].host,
                       json_get_bool(j, "there", false) ? " (it sees something else)" : "");
        slowest = us > slowest ? us : slowest;
    }
    if (wrote) {
        station_ask(&p->v[i], question(p, "remove", path, ""));
        probe_hear(p, i);
        json_object(p->figures, p->v[i].host);
        json_put_i64(p->figures, "fsync_us", json_get_i64(wrote, "fsync_us", -1));
        json_put_i64(p->figures, "rename_us", json_get_i64(wrote, "rename_us", -1));
        json_put_i64(p->figures, "seen_by_all_us", slowest);
        json_end_object(p->figures);
    }
    return slowest;
}

static void ask(struct probing *p) {
    const char *shared = json_get_string(p->given, "shared", NULL);
    int64_t slowest = 0;
    if (!shared) {
        probe_skip(p, "no directory is said to be shared (--shared DIR)");
        return;
    }
    for (size_t i = 0; i < p->n && (i < 1 || !probe_has_failed(p)); i++) {
        int64_t us = ask_one(p, i, shared);
        slowest = us > slowest ? us : slowest;
    }
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
