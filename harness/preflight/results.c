#include "harness/preflight/results.h"

#include "base/str.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct result {
    const char *text;
    const struct json *json; /* NULL: it is none */
    struct arena *arena;
    struct probe_answer *ret;
    struct json_writer *figures;
};

static void fail(struct result *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Failures are added to each other. */
static void fail(struct result *r, const char *fmt, ...) {
    struct probe_answer *a = r->ret;
    size_t at = a->status == PROBE_FAIL ? strlen(a->seen) : 0;
    va_list ap;
    va_start(ap, fmt);
    const char *text = arena_vprintf(r->arena, fmt, ap);
    va_end(ap);
    snprintf(a->seen + at, sizeof(a->seen) - at, "%s%s", at ? "; " : "", text);
    a->status = PROBE_FAIL;
}

static void pass(struct result *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void pass(struct result *r, const char *fmt, ...) {
    va_list ap;
    if (r->ret->status == PROBE_FAIL)
        return;
    va_start(ap, fmt);
    vsnprintf(r->ret->seen, sizeof(r->ret->seen), fmt, ap);
    va_end(ap);
}

/* ---- nccl-tests: "# Out of bounds values : 0 OK", "# Avg bus bandwidth    : 186.123" ---- */

/* What stands behind the colon of the line that begins so; NULL: there is none. */
static const char *behind(const char *text, const char *begins) {
    for (const char *at = text; (at = strstr(at, begins)); at++)
        if (at == text || at[-1] == '\n') {
            const char *colon = at + strcspn(at, ":\n");
            return *colon == ':' ? colon + 1 : NULL;
        }
    return NULL;
}

static bool is_nccl(const struct result *r) {
    return behind(r->text, "# Out of bounds values");
}

static void read_nccl(struct result *r) {
    const char *bandwidth = behind(r->text, "# Avg bus bandwidth");
    long long wrong = strtoll(behind(r->text, "# Out of bounds values"), NULL, 10);
    double gb_s = bandwidth ? strtod(bandwidth, NULL) : -1;
    json_put_i64(r->figures, "out_of_bounds", wrong);
    json_put_i64(r->figures, "bus_mb_s", (int64_t)(gb_s * 1e3));
    if (wrong)
        fail(r, "%lld values were out of bounds", wrong);
    if (!bandwidth)
        fail(r, "it did not come to its end: there is no average bus bandwidth");
    pass(r, "all values were right, %.2f GB/s bus bandwidth on average", gb_s);
}

/* ---- fio --output-format=json ---- */

static bool is_fio(const struct result *r) {
    return json_get(r->json, "fio version") && json_get(r->json, "jobs");
}

static void read_fio(struct result *r) {
    int64_t read = 0, written = 0;
    json_each(job, json_get(r->json, "jobs")) {
        int64_t error = json_get_i64(job, "error", 0);
        read += json_get_i64(json_get(job, "read"), "bw", 0);
        written += json_get_i64(json_get(job, "write"), "bw", 0);
        if (error)
            fail(r, "job %s ended with error %lld (%s)", json_get_string(job, "jobname", "?"),
                 (long long)error, strerror((int)error));
    }
    json_put_i64(r->figures, "read_kb_s", read);
    json_put_i64(r->figures, "write_kb_s", written);
    pass(r, "%zu job(s) without an error, %lld MiB/s read and %lld MiB/s written",
         json_get(r->json, "jobs")->length, (long long)read / 1024, (long long)written / 1024);
}

/* ---- dcgmi diag -j ---- */

static const struct json *dcgm_of(const struct json *j) {
    const struct json *older = json_get(j, "DCGM GPU Diagnostic");
    return older ? older : json_get(j, "DCGM Diagnostic");
}

static bool is_dcgm(const struct result *r) {
    return json_get(dcgm_of(r->json), "test_categories");
}

/* The devices of one result: "gpu_ids": "0,1", or "entity_id": 0. */
static const char *devices_of(struct result *r, const struct json *one) {
    const char *ids = json_get_string(one, "gpu_ids", json_get_string(one, "gpu_id", NULL));
    int64_t entity = json_get_i64(one, "entity_id", -1);
    return ids           ? arena_printf(r->arena, " on GPU %s", ids)
           : entity >= 0 ? arena_printf(r->arena, " on GPU %lld", (long long)entity)
                         : "";
}

static void read_dcgm(struct result *r) {
    int64_t passed = 0, failed = 0, others = 0;
    json_each(category, json_get(dcgm_of(r->json), "test_categories"))
        json_each(test, json_get(category, "tests")) json_each(one, json_get(test, "results")) {
        const char *status = json_get_string(one, "status", "");
        bool bad = strcasecmp(status, "fail") == 0;
        passed += strcasecmp(status, "pass") == 0;
        failed += bad;
        others += !bad && strcasecmp(status, "pass") != 0;
        if (bad)
            fail(r, "%s failed%s", json_get_string(test, "name", "?"), devices_of(r, one));
    }
    json_put_i64(r->figures, "passed", passed);
    json_put_i64(r->figures, "failed", failed);
    json_put_i64(r->figures, "skipped", others);
    if (!passed && !failed)
        fail(r, "nothing was tested");
    pass(r, "%lld tests passed, %lld were skipped", (long long)passed, (long long)others);
}

/* ---- SuperBench: results-summary.jsonl, one object a node ---- */

static const struct json *first_line(struct result *r) {
    return json_parse(r->arena, r->text, strcspn(r->text, "\n"), NULL);
}

static bool is_superbench(const struct result *r) {
    struct result own = *r;
    const struct json *j = first_line(&own);
    if (!json_get_string(j, "node", NULL))
        return false;
    json_each(m, j) if (str_ends(m->key, "/return_code")) return true;
    return false;
}

static void read_superbench(struct result *r) {
    int64_t nodes = 0, figures = 0;
    for (char **line = str_split(r->arena, r->text, '\n', NULL); *line; line++) {
        const struct json *j = json_parse(r->arena, *line, strlen(*line), NULL);
        if (!j)
            continue;
        nodes++;
        json_each(m, j) {
            bool code = str_ends(m->key, "/return_code");
            figures += !code;
            if (code && (json_number(m, 1) > 0 || json_number(m, 1) < 0))
                fail(r, "%s: %.*s ended with %g", json_get_string(j, "node", "?"),
                     (int)(strlen(m->key) - strlen("/return_code")), m->key, json_number(m, 1));
        }
    }
    json_put_i64(r->figures, "nodes", nodes);
    json_put_i64(r->figures, "figures", figures);
    pass(r, "all benchmarks of %lld node(s) ended well", (long long)nodes);
}

static const struct {
    const char *name;
    bool (*is)(const struct result *r);
    void (*read)(struct result *r);
} kinds[] = {{"nccl-tests", is_nccl, read_nccl},
             {"fio", is_fio, read_fio},
             {"dcgm", is_dcgm, read_dcgm},
             {"superbench", is_superbench, read_superbench}};

const char *results_read(const char *text, size_t len, struct probe_answer *ret,
                         struct json_writer *figures, struct err *err) {
    ARENA_FINI struct arena a = {0};
    /* fio and dcgmi may print a warning in front of the object. */
    const char *brace = memchr(text, '{', len);
    struct result r = {
        .text = arena_strndup(&a, text, len), .arena = &a, .ret = ret, .figures = figures};
    if (brace)
        r.json = json_parse(&a, brace, len - (size_t)(brace - text), NULL);
    *ret = (struct probe_answer){.status = PROBE_PASS, .took_ns = -1};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        if (kinds[i].is(&r)) {
            kinds[i].read(&r);
            return kinds[i].name;
        }
    err_say(err, -EINVAL,
            "it is no result that is known: the output of nccl-tests, fio --output-format=json, "
            "dcgmi diag "
            "-j, SuperBench's results-summary.jsonl");
    return NULL;
}
