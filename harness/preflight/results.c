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

/* ---- nccl-tests: "# Out of bounds values : 0 OK", "# Avg bus bandwidth    : 186.123"; of several programs,
 * one after the other ---- */

/* Each line of the text that begins so and has its line feed: what stands behind its colon. */
static const char *next_behind(const char **at, const char *begins) {
    for (const char *line = *at; *line;) {
        const char *end = strchr(line, '\n'), *colon = strchr(line, ':');
        if (!end)
            return NULL;
        *at = end + 1;
        if (str_starts(line, begins) && colon && colon < end)
            return colon + 1;
        line = end + 1;
    }
    return NULL;
}

static const char *const nccl_begins = "# nThread", *const nccl_wrong = "# Out of bounds values",
                         *const nccl_bandwidth = "# Avg bus bandwidth";

static bool is_nccl(const struct result *r) {
    const char *at = r->text, *head = strstr(r->text, nccl_begins);
    return (head && (head == r->text || head[-1] == '\n')) || next_behind(&at, nccl_wrong);
}

/* "node1: Test NCCL failure common.cu:958 'remote process exited ...'" */
static void read_nccl_failures(struct result *r) {
    static const char *const kinds[] = {"Test NCCL failure", "Test CUDA failure", "Test failure"};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        const char *at = strstr(r->text, kinds[i]);
        if (at)
            fail(r, "%.*s", (int)strcspn(at, "\r\n"), at);
    }
}

/* The size at which the first were wrong: "8 2 float sum -1 time algbw busbw #wrong time algbw busbw #wrong". */
static const char *first_wrong(struct result *r) {
    for (char **line = str_split(r->arena, r->text, '\n', NULL); *line; line++) {
        long long size, wrong[2] = {0};
        int n = sscanf(*line, " %lld %*s %*s %*s %*s %*s %*s %*s %lld %*s %*s %*s %lld", &size,
                       &wrong[0], &wrong[1]);
        if (n >= 2 && (wrong[0] || wrong[1]))
            return arena_printf(r->arena, ", first with %lld bytes", size);
    }
    return "";
}

static void read_nccl(struct result *r) {
    int64_t programs = 0, ended = 0, wrong = 0;
    double gb_s = 0;
    const char *at = r->text, *value;
    while ((value = next_behind(&at, nccl_wrong))) {
        wrong += strtoll(value, NULL, 10);
        programs++;
        if (!memmem(value, strcspn(value, "\n"), " OK", 3) && strtoll(value, NULL, 10) == 0)
            fail(r, "it says neither OK nor how many values were out of bounds");
    }
    for (at = r->text; (value = next_behind(&at, nccl_bandwidth)); ended++)
        gb_s += strtod(value, NULL);
    json_put_i64(r->figures, "programs", programs);
    json_put_i64(r->figures, "out_of_bounds", wrong);
    json_put_i64(r->figures, "bus_mb_s", ended ? (int64_t)(gb_s / (double)ended * 1e3) : -1);
    read_nccl_failures(r);
    if (wrong)
        fail(r, "%lld values were out of bounds%s", (long long)wrong, first_wrong(r));
    if (!programs || ended < programs)
        fail(r, "it did not come to its end: there is no average bus bandwidth");
    pass(r, "all values were right, %.2f GB/s bus bandwidth on average", gb_s / (double)ended);
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
    if (!json_first(json_get(r->json, "jobs")))
        fail(r, "it ran no job");
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
    const struct json *d = dcgm_of(r->json);
    return json_get(d, "test_categories") || json_get(d, "runtime_error");
}

/* The devices of one result: "gpu_ids": "0,1", or "entity_id": 0. */
static const char *devices_of(struct result *r, const struct json *one) {
    const char *ids = json_get_string(one, "gpu_ids", json_get_string(one, "gpu_id", NULL));
    int64_t entity = json_get_i64(one, "entity_id", -1);
    return ids           ? arena_printf(r->arena, " on GPU %s", ids)
           : entity >= 0 ? arena_printf(r->arena, " on GPU %lld", (long long)entity)
                         : "";
}

/* What is said of a failure, in one form or another: "warnings": "text", or a list of texts or of objects. */
static const char *warning_of(struct result *r, const struct json *one) {
    const struct json *w = json_get(one, "warnings");
    const struct json *first = json_first(w) ? json_first(w) : w;
    const char *text = json_string(first, json_get_string(first, "warning", NULL));
    return text ? arena_printf(r->arena, ": %.*s", (int)strcspn(text, "\r\n"), text) : "";
}

struct dcgm_counts {
    int64_t passed, failed, skipped;
};

static void read_dcgm_result(struct result *r, const struct json *test, const struct json *one,
                             struct dcgm_counts *n) {
    const char *name = json_get_string(test, "name", "?"),
               *status = json_get_string(one, "status", "");
    bool skipped = strcasecmp(status, "skip") == 0 || strcasecmp(status, "not run") == 0;
    n->passed += strcasecmp(status, "pass") == 0;
    n->failed += strcasecmp(status, "fail") == 0;
    n->skipped += skipped;
    if (strcasecmp(status, "fail") == 0)
        fail(r, "%s failed%s%s", name, devices_of(r, one), warning_of(r, one));
    else if (strcasecmp(status, "pass") != 0 && !skipped)
        fail(r, "%s ended with \"%s\"%s%s", name, status, devices_of(r, one), warning_of(r, one));
}

static void read_dcgm(struct result *r) {
    const struct json *d = dcgm_of(r->json);
    struct dcgm_counts n = {0};
    const char *error = json_get_string(d, "runtime_error", "");
    json_each(category, json_get(d, "test_categories")) json_each(test, json_get(category, "tests"))
        json_each(one, json_get(test, "results")) read_dcgm_result(r, test, one, &n);
    json_put_i64(r->figures, "passed", n.passed);
    json_put_i64(r->figures, "failed", n.failed);
    json_put_i64(r->figures, "skipped", n.skipped);
    if (*error)
        fail(r, "it broke off: %.*s", (int)strcspn(error, "\r\n"), error);
    else if (!n.passed && !n.failed)
        fail(r, "nothing was tested");
    pass(r, "%lld tests passed, %lld were skipped", (long long)n.passed, (long long)n.skipped);
}

/* ---- SuperBench: results-summary.jsonl, one object a node; of each benchmark "NAME/return_code", with ":RANK"
 * where ranks have their own ---- */

static const char *return_code_of(const char *key) {
    const char *at = strstr(key, "/return_code");
    const char *behind = at ? at + strlen("/return_code") : "";
    return at && (!*behind || *behind == ':') ? at : NULL;
}

static bool is_superbench(const struct result *r) {
    const struct json *j = json_parse(r->arena, r->text, strcspn(r->text, "\n"), NULL);
    if (!json_get_string(j, "node", NULL))
        return false;
    json_each(m, j) if (return_code_of(m->key)) return true;
    return false;
}

static void read_benchmark(struct result *r, const char *node, const struct json *m, int name_len) {
    bool number = m->type == JSON_INT || m->type == JSON_DOUBLE;
    if (!number)
        fail(r, "%s: %.*s has no return code", node, name_len, m->key);
    else if (json_number(m, 1) > 0 || json_number(m, 1) < 0)
        fail(r, "%s: %.*s ended with %g", node, name_len, m->key, json_number(m, 1));
}

/* Of a node: how many benchmarks it has, and figures. */
static int64_t read_node(struct result *r, const struct json *j, int64_t *figures) {
    int64_t benchmarks = 0;
    json_each(m, j) {
        const char *at = return_code_of(m->key);
        *figures += !at;
        benchmarks += at != NULL;
        if (at)
            read_benchmark(r, json_get_string(j, "node", "?"), m, (int)(at - m->key));
    }
    return benchmarks;
}

static void read_superbench(struct result *r) {
    int64_t nodes = 0, figures = 0, most = 0, number = 0;
    const struct json *all = NULL; /* the node with the most benchmarks */
    char **lines = str_split(r->arena, r->text, '\n', NULL);
    for (char **line = lines; *line; line++) {
        struct err err = {0};
        const struct json *j = json_parse(r->arena, *line, strlen(*line), &err);
        number++;
        if (!j && (*line)[strspn(*line, " \t\r")])
            fail(r, "line %lld cannot be read: %s", (long long)number, err.msg);
        if (!j)
            continue;
        int64_t benchmarks = read_node(r, j, &figures);
        all = benchmarks > most ? j : all;
        most = benchmarks > most ? benchmarks : most;
        nodes++;
    }
    for (char **line = lines; *line; line++) {
        const struct json *j = json_parse(r->arena, *line, strlen(*line), NULL);
        json_each(m, j ? all : NULL) if (return_code_of(m->key) && !json_get(j, m->key))
            fail(r, "%s has no %s, which %s has", json_get_string(j, "node", "?"), m->key,
                 json_get_string(all, "node", "?"));
    }
    json_put_i64(r->figures, "nodes", nodes);
    json_put_i64(r->figures, "figures", figures);
    pass(r, "all %lld benchmarks of %lld node(s) ended well", (long long)most, (long long)nodes);
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
