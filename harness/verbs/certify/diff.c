/* certify diff: what has changed from one certificate to another: inventory, preflight, verdicts and
 * times. */
#include "harness/verbs/certify/certifying.h"

#include "base/str.h"
#include "harness/certify/difference.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct comparison_of_two {
    const struct arguments *arguments;
    struct arena arena;
    struct buf texts[2];
    const struct json *v[2];
    int64_t percent;
    const char *heading; /* to be printed before the first line of its part; NULL: it has been */
    size_t n;
};

static void begin(struct comparison_of_two *c, const char *heading) {
    c->heading = heading;
}

static void line(struct comparison_of_two *c, const struct difference *d) {
    BUF_FINI struct buf was = {0}, is = {0};
    difference_put_value(d->was, &was);
    difference_put_value(d->is, &is);
    if (c->heading)
        printf("%s\n", c->heading);
    c->heading = NULL;
    c->n++;
    printf("  %s: %s -> %s\n", d->path, buf_str(&was), buf_str(&is));
}

static void tell(void *arg, const struct difference *d) {
    line(arg, d);
}

static bool is_time(const char *path) {
    return str_ends(path, "_us");
}

static void tell_verdict(void *arg, const struct difference *d) {
    if (!is_time(d->path))
        line(arg, d);
}

/* Both have it, and it moved by more than the noise that is allowed for. */
static void tell_time(void *arg, const struct difference *d) {
    struct comparison_of_two *c = arg;
    int64_t was = json_i64(d->was, -1), is = json_i64(d->is, -1);
    if (is_time(d->path) && d->was && d->is && was >= 0 && is >= 0 &&
        llabs(is - was) * 100 > was * c->percent)
        line(c, d);
    else if (is_time(d->path) && (was < 0) != (is < 0))
        line(c, d);
}

static void compare_part(struct comparison_of_two *c, const char *key, const char *heading,
                         const char *const *left_out,
                         void (*told)(void *arg, const struct difference *d)) {
    const struct json *a = json_get(c->v[0], key), *b = json_get(c->v[1], key);
    begin(c, heading);
    if (a && b) {
        difference_each(a, b, left_out, told, c);
    } else if (a || b) {
        struct difference d = {.path = key, .was = a, .is = b};
        line(c, &d);
    }
}

/* Where one of them has none of it, that has been told. */
static void compare_times(struct comparison_of_two *c, const char *key, const char *heading) {
    static const char *const left_out[] = {"slower", NULL};
    if (json_get(c->v[0], key) && json_get(c->v[1], key))
        compare_part(c, key, heading, left_out, tell_time);
}

static int compare_all(struct comparison_of_two *c) {
    static const char *const of_runs[] = {
        "dir",   "file",    "sets", "history_sha256", "scenario_sha256", "seen", "on", "nodes",
        "racks", "version", NULL};
    static const char *const of_probes[] = {"seen", "figures", NULL};
    static const char *const of_suite[] = {"name", NULL};
    compare_part(c, "version", "version", NULL, tell);
    compare_part(c, "suite", "suite", of_suite, tell);
    compare_part(c, "hosts", "inventory", NULL, tell);
    compare_part(c, "preflight", "preflight", of_probes, tell);
    compare_part(c, "scenarios", "verdicts", of_runs, tell_verdict);
    compare_part(c, "nodes", "nodes", NULL, tell_verdict);
    compare_part(c, "racks", "racks", NULL, tell_verdict);
    compare_part(c, "scenarios", "times, in microseconds", of_runs, tell_time);
    compare_times(c, "nodes", "times of nodes, in microseconds");
    compare_times(c, "racks", "times of racks, in microseconds");
    if (!c->n)
        printf("nothing has changed: inventory, preflight, verdicts, and times to within %lld %%\n",
               (long long)c->percent);
    return c->n ? EXIT_FAIL : EXIT_PASS;
}

static int read_one(struct comparison_of_two *c, size_t i) {
    struct folder dir;
    struct err err = {0};
    int code = certify_open(c->arguments, c->arguments->files[i + 1], &dir);
    if (code)
        return code;
    c->v[i] = certificate_read(&c->arena, &dir, &c->texts[i], &err);
    folder_close(&dir);
    if (c->v[i])
        return 0;
    fprintf(stderr, "rankquake certify: %s\n", err.msg);
    return CERTIFICATE_CUT;
}

int certify_diff(const struct arguments *a) {
    struct comparison_of_two c = {.arguments = a, .percent = 20};
    if (a->files_n != 3)
        return verb_usage_error(a->verb, "diff which two? Name their directories, the older first");
    int code = arguments_number(a, "--slower", 0, 10000, &c.percent);
    code = code ? code : read_one(&c, 0);
    code = code ? code : read_one(&c, 1);
    code = code ? code : compare_all(&c);
    buf_fini(&c.texts[0]);
    buf_fini(&c.texts[1]);
    arena_fini(&c.arena);
    return code;
}
