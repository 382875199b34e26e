/* Reads the command line of a verb by the options in its table. */
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "harness/verbs.h"
#include "reports/headway.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct verb_option *find_option(const struct verb *v, const char *arg, size_t len) {
    for (const struct verb_option *o = v->options; o && o->name; o++)
        if (strlen(o->name) == len && strncmp(o->name, arg, len) == 0)
            return o;
    return NULL;
}

static int unknown_option(const struct verb *v, const char *arg) {
    enum { OPTIONS_MAX = 40 };
    const char *names[OPTIONS_MAX];
    size_t n = 0;
    for (const struct verb_option *o = v->options; o && o->name && n < OPTIONS_MAX - 1; o++)
        if (o->text)
            names[n++] = o->name;
    names[n] = NULL;
    const char *near = str_nearest(arg, names);
    if (near)
        return verb_usage_error(v, "there is no option %s; did you mean %s?", arg, near);
    return verb_usage_error(v, "there is no option %s", arg);
}

/* One option; *i is left at the last word it took. */
static int read_option(struct arguments *a, int argc, char **argv, int *i) {
    const char *arg = argv[*i], *equals = strchr(arg, '=');
    size_t len = equals ? (size_t)(equals - arg) : strlen(arg);
    const struct verb_option *o = find_option(a->verb, arg, len);
    if (!o)
        return unknown_option(a->verb, arg);
    if (!o->value && equals)
        return verb_usage_error(a->verb, "%s takes no value", o->name);
    if (o->value && !equals && *i + 1 >= argc)
        return verb_usage_error(a->verb, "%s needs a value: %s %s", o->name, o->name, o->value);
    a->names[a->options_n] = o->name;
    a->values[a->options_n++] = !o->value ? "" : equals ? equals + 1 : argv[++*i];
    return 0;
}

int arguments_read(struct arguments *ret, const struct verb *v, int argc, char **argv) {
    size_t most = (size_t)argc + 1;
    *ret = (struct arguments){.verb = v, .argv = argv};
    ret->files = mem_array(const char *, most);
    ret->names = mem_array(const char *, most);
    ret->values = mem_array(const char *, most);
    int r = 0;
    for (int i = 1; i < argc && !r; i++) {
        if (str_eq(argv[i], "--")) {
            ret->rest = argv + i + 1;
            break;
        }
        if (argv[i][0] == '-' && argv[i][1])
            r = read_option(ret, argc, argv, &i);
        else
            ret->files[ret->files_n++] = argv[i];
    }
    if (r)
        arguments_fini(ret);
    return r;
}

void arguments_fini(struct arguments *a) {
    free(a->files);
    free(a->names);
    free(a->values);
    *a = (struct arguments){0};
}

const char *arguments_value(const struct arguments *a, const char *name) {
    const char *value = NULL;
    for (size_t i = 0; i < a->options_n; i++)
        if (str_eq(a->names[i], name))
            value = a->values[i];
    return value;
}

int arguments_number(const struct arguments *a, const char *name, int64_t least, int64_t most,
                     int64_t *ret) {
    const char *value = arguments_value(a, name);
    if (!value || str_to_i64(value, least, most, ret))
        return 0;
    return verb_usage_error(a->verb, "%s %s: write a whole number from %lld to %lld", name, value,
                            (long long)least, (long long)most);
}

int arguments_duration(const struct arguments *a, const char *name, int64_t *ret_ns) {
    const char *value = arguments_value(a, name);
    struct err err;
    int64_t ns;
    if (!value)
        return 0;
    if (str_to_duration_ns(value, &ns, &err) < 0 || ns <= 0)
        return verb_usage_error(a->verb, "%s %s: write a duration, as in 90s or 5m", name, value);
    *ret_ns = ns;
    return 0;
}

int arguments_headway(const struct arguments *a, struct headway_wish *ret) {
    int64_t fd = -1;
    int r = arguments_number(a, "--json-progress", 1, 1 << 20, &fd);
    *ret = HEADWAY_WISH_NONE;
    ret->quiet = arguments_value(a, "--quiet");
    if (r || fd < 0)
        return r;
    int flags = fcntl((int)fd, F_GETFL);
    if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY)
        return verb_usage_error(a->verb,
                                "--json-progress %d: that descriptor is not open for writing; open "
                                "it as in %d>progress.jsonl, or take 2",
                                (int)fd, (int)fd);
    if (fd > STDERR_FILENO) /* whoever reads to the end must not wait for a worker that is left */
        fcntl((int)fd, F_SETFD, FD_CLOEXEC);
    ret->json = (int)fd;
    return 0;
}

const char **arguments_all(const struct arguments *a, const char *name) {
    const char **v = mem_array(const char *, a->options_n + 1);
    size_t n = 0;
    for (size_t i = 0; i < a->options_n; i++)
        if (str_eq(a->names[i], name))
            v[n++] = a->values[i];
    return v;
}

const char *arguments_set(struct arena *arena, const char *key, const char *value) {
    BUF_FINI struct buf text = {0};
    struct json_writer w = {.out = &text};
    json_put_string(&w, NULL, value);
    return arena_printf(arena, "%s=%s", key, buf_str(&text));
}

/* step='step ([0-9]+)', or the name of a preset. */
static const char *observe_set(struct arena *arena, const char *value) {
    const char *equals = strchr(value, '=');
    if (!equals)
        return arguments_set(arena, "observe.preset", value);
    const char *key = arena_printf(arena, "observe.%.*s", (int)(equals - value), value);
    return arguments_set(arena, key, equals + 1);
}

const char **arguments_sets(const struct arguments *a, struct arena *arena) {
    const char *launcher = arguments_value(a, "--launcher");
    const char *rootfs = arguments_value(a, "--rootfs");
    const char *isolation = arguments_value(a, "--isolation");
    const char *faults = arguments_value(a, "--max-concurrent-faults");
    const char **v = arena_array(arena, const char *, a->options_n + 5);
    size_t n = 0;
    for (size_t i = 0; i < a->options_n; i++)
        if (str_eq(a->names[i], "--set"))
            v[n++] = a->values[i];
        else if (str_eq(a->names[i], "--observe"))
            v[n++] = observe_set(arena, a->values[i]);
    if (launcher)
        v[n++] = arguments_set(arena, "launcher", launcher);
    if (isolation)
        v[n++] = arena_printf(arena, "cluster.isolation=%s", isolation);
    if (rootfs)
        v[n++] = arena_printf(arena, "cluster.rootfs=%s", rootfs);
    if (faults)
        v[n++] = arena_printf(arena, "limits.faults=%s", faults);
    return v;
}
