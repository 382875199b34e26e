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

int certificate_result(const struct json *scenarios) {
    size_t n = scenarios ? scenarios->length : 0, i = 0;
    int *codes = mem_array(int, n + 1);
    json_each(s, scenarios) codes[i++] = (int)json_get_i64(s, "exit_code", EXIT_BROKEN);
    int code = suite_exit_code(codes, n);
    free(codes);
    return n ? code : EXIT_SKIPPED;
}

/* ---- nodes ---- */

struct victim {
    const char *name;
    int64_t runs, passed;
    int64_t *us; /* of each recovery */
    size_t n;
    int64_t median_us; /* -1: none */
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

struct victims {
    struct victim *v;
    size_t n;
};

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
    int64_t us = json_get_i64(fault, "recover_us", -1);
    json_each(node, json_get(fault, "nodes")) {
        struct victim *x = find(all, json_string(node, "?"));
        if (is_first(scenario, fault, x->name)) {
            x->runs++;
            x->passed += passed;
        }
        if (us >= 0)
            mem_push(x->us, x->n) = us;
    }
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct victim *)a)->name, ((const struct victim *)b)->name);
}

static bool is_outlier(const struct victim *x, int64_t middle, int64_t mad) {
    int64_t beyond = x->median_us - middle, least = middle / 10;
    if (least < 200000)
        least = 200000;
    return x->median_us >= 0 && middle >= 0 && beyond > 3 * mad && beyond > least;
}

static void put_victims(struct victims *all, struct json_writer *w) {
    int64_t *medians = mem_array(int64_t, all->n + 1), middle, mad;
    size_t n = 0;
    for (size_t i = 0; i < all->n; i++) {
        all->v[i].median_us = median(all->v[i].us, all->v[i].n);
        if (all->v[i].median_us >= 0)
            medians[n++] = all->v[i].median_us;
    }
    middle = median(medians, n);
    for (size_t i = 0; i < n; i++)
        medians[i] = llabs(medians[i] - middle);
    mad = median(medians, n);
    for (size_t i = 0; i < all->n; i++) {
        const struct victim *x = &all->v[i];
        json_object(w, NULL);
        json_put_string(w, "name", x->name);
        json_put_i64(w, "runs", x->runs);
        json_put_i64(w, "passed", x->passed);
        json_put_i64(w, "recover_us", x->median_us);
        json_put_bool(w, "outlier", n >= 3 && is_outlier(x, middle, mad));
        json_end_object(w);
    }
    free(medians);
}

void certificate_put_nodes(const struct json *scenarios, struct json_writer *w, const char *key) {
    struct victims all = {0};
    json_each(s, scenarios) json_each(f, json_get(s, "faults")) take_fault(&all, s, f);
    if (all.n)
        qsort(all.v, all.n, sizeof(*all.v), by_name);
    json_array(w, key);
    put_victims(&all, w);
    json_end_array(w);
    for (size_t i = 0; i < all.n; i++)
        free(all.v[i].us);
    free(all.v);
}
