#include "harness/certify/certificate.h"

#include "base/canonical.h"
#include "base/mem.h"
#include "base/sha256.h"
#include "base/str.h"
#include "base/sys/file.h"
#include "harness/play/suite.h"
#include "harness/verb.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CERTIFICATE_MAX = 64 << 20 };

const struct json *certificate_read(struct arena *a, const struct folder *in, struct buf *text,
                                    struct err *err) {
    struct err why = {0};
    if (folder_read(in, CERTIFICATE_FILE, CERTIFICATE_MAX, text, err) < 0)
        return NULL;
    const struct json *j = canonical_read(a, buf_str(text), text->len, &why);
    if (j && str_eq(json_get_string(j, "format", NULL), CERTIFICATE_FORMAT))
        return j;
    if (j)
        err_say(err, -EBADMSG, "%s/%s is no certificate of this format (%s)", in->path,
                CERTIFICATE_FILE, CERTIFICATE_FORMAT);
    else
        err_say(err, -EBADMSG, "%s/%s is cut or was changed: %s", in->path, CERTIFICATE_FILE,
                why.msg);
    return NULL;
}

int certificate_hash(const struct folder *in, const char *name, char ret[65], struct err *err) {
    FILE_CLOSE int fd = folder_open_file(in, name, err);
    struct sha256 sum;
    char part[1 << 16];
    ssize_t n;
    if (fd < 0)
        return fd;
    sha256_init(&sum);
    while ((n = read(fd, part, sizeof(part))) > 0)
        sha256_update(&sum, part, (size_t)n);
    if (n < 0)
        return err_set(err, -errno, "read %s/%s", in->path, name);
    sha256_hex(&sum, ret);
    return 0;
}

int certificate_result(const struct json *scenarios, const struct json *preflight) {
    size_t n = scenarios ? scenarios->length : 0;
    int *codes = mem_array(int, n + 1 + (preflight ? preflight->length : 0));
    n = 0;
    json_each(s, scenarios) codes[n++] = (int)json_get_i64(s, "exit_code", EXIT_BROKEN);
    json_each(p, preflight) if (str_eq(json_get_string(p, "status", "fail"), "fail")) codes[n++] =
        EXIT_FAIL;
    int code = suite_exit_code(codes, n);
    free(codes);
    return n ? code : EXIT_SKIPPED;
}

/* ---- nodes ---- */

/* One recovery of a run. Only those of the same fault of the same scenario can be compared. */
struct recovery {
    const char *node, *scenario, *fault;
    int64_t us; /* -1: it was none */
};

struct victim {
    const char *name;
    int64_t runs, passed;
};

struct victims {
    struct recovery *all;
    size_t all_n;
    struct victim *v;
    size_t n;
};

static int by_number(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int64_t median(int64_t *v, size_t n) {
    if (!n)
        return -1;
    qsort(v, n, sizeof(*v), by_number);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* scenario NULL: of all of the node's. */
static int64_t median_of(const struct victims *all, const char *node, const char *scenario,
                         const char *fault) {
    int64_t *us = mem_array(int64_t, all->all_n + 1), found;
    size_t n = 0;
    for (size_t i = 0; i < all->all_n; i++) {
        const struct recovery *r = &all->all[i];
        bool same = !scenario || (str_eq(r->scenario, scenario) && str_eq(r->fault, fault));
        if (same && str_eq(r->node, node) && r->us >= 0)
            us[n++] = r->us;
    }
    found = median(us, n);
    free(us);
    return found;
}

/* ---- who is slower than its peers ---- */

static bool is_further(int64_t us, int64_t middle, int64_t mad) {
    int64_t beyond = us - middle, least = middle / 10 > 200000 ? middle / 10 : 200000;
    return beyond > 3 * mad && beyond > least;
}

/* The medians of at least three nodes; which is the node's, and what is in the middle. */
static bool is_slower(const struct victims *all, const char *node, const struct recovery *of,
                      int64_t *ret_us, int64_t *ret_middle) {
    int64_t *medians = mem_array(int64_t, all->n + 1), mad;
    size_t n = 0;
    *ret_us = median_of(all, node, of->scenario, of->fault);
    for (size_t i = 0; i < all->n; i++) {
        int64_t us = median_of(all, all->v[i].name, of->scenario, of->fault);
        if (us >= 0)
            medians[n++] = us;
    }
    *ret_middle = median(medians, n);
    for (size_t i = 0; i < n; i++)
        medians[i] = llabs(medians[i] - *ret_middle);
    mad = median(medians, n);
    free(medians);
    return n >= 3 && *ret_us >= 0 && is_further(*ret_us, *ret_middle, mad);
}

static bool came_before(const struct victims *all, size_t i) {
    for (size_t k = 0; k < i; k++)
        if (str_eq(all->all[k].node, all->all[i].node) &&
            str_eq(all->all[k].scenario, all->all[i].scenario) &&
            str_eq(all->all[k].fault, all->all[i].fault))
            return true;
    return false;
}

static void put_slower(const struct victims *all, const char *node, struct json_writer *w) {
    json_array(w, "slower");
    for (size_t i = 0; i < all->all_n; i++) {
        const struct recovery *r = &all->all[i];
        int64_t us, middle;
        if (!str_eq(r->node, node) || came_before(all, i) || !is_slower(all, node, r, &us, &middle))
            continue;
        json_object(w, NULL);
        json_put_string(w, "name", r->scenario);
        json_put_string(w, "fault", r->fault);
        json_put_i64(w, "recover_us", us);
        json_put_i64(w, "peers_us", middle);
        json_end_object(w);
    }
    json_end_array(w);
}

/* ---- out of the runs ---- */

static struct victim *find(struct victims *all, const char *name) {
    for (size_t i = 0; i < all->n; i++)
        if (str_eq(all->v[i].name, name))
            return &all->v[i];
    mem_push(all->v, all->n) = (struct victim){.name = name};
    return &all->v[all->n - 1];
}

static bool was_victim(const struct json *fault, const char *node) {
    json_each(n, json_get(fault, "nodes")) if (str_eq(json_string(n, ""), node)) return true;
    return false;
}

static bool is_first(const struct json *scenario, const struct json *fault, const char *node) {
    json_each(f, json_get(scenario, "faults")) {
        if (f == fault)
            return true;
        if (was_victim(f, node))
            return false;
    }
    return true;
}

static void take_fault(struct victims *all, const struct json *scenario, const struct json *fault) {
    bool passed = json_get_i64(scenario, "exit_code", EXIT_BROKEN) == EXIT_PASS;
    json_each(node, json_get(fault, "nodes")) {
        struct victim *x = find(all, json_string(node, "?"));
        if (is_first(scenario, fault, x->name)) {
            x->runs++;
            x->passed += passed;
        }
        mem_push(all->all, all->all_n) =
            (struct recovery){.node = x->name,
                              .scenario = json_get_string(scenario, "scenario", "?"),
                              .fault = json_get_string(fault, "name", "?"),
                              .us = json_get_i64(fault, "recover_us", -1)};
    }
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct victim *)a)->name, ((const struct victim *)b)->name);
}

void certificate_put_nodes(const struct json *scenarios, struct json_writer *w, const char *key) {
    struct victims all = {0};
    json_each(s, scenarios) json_each(f, json_get(s, "faults")) take_fault(&all, s, f);
    if (all.n)
        qsort(all.v, all.n, sizeof(*all.v), by_name);
    json_array(w, key);
    for (size_t i = 0; i < all.n; i++) {
        json_object(w, NULL);
        json_put_string(w, "name", all.v[i].name);
        json_put_i64(w, "runs", all.v[i].runs);
        json_put_i64(w, "passed", all.v[i].passed);
        json_put_i64(w, "recover_us", median_of(&all, all.v[i].name, NULL, NULL));
        put_slower(&all, all.v[i].name, w);
        json_end_object(w);
    }
    json_end_array(w);
    free(all.all);
    free(all.v);
}
