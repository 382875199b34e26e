#include "harness/verbs/doctor_hosts.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sys/file.h"
#include "harness/provider/examined_host.h"
#include "harness/verb.h"
#include "reports/report.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HOSTS_MAX = 1024, HOSTFILE_MAX = 1 << 20 };

struct wanted_hosts {
    struct arena arena;
    struct examined_host *v;
    size_t n;
};

static const char *const own[] = {"--provider", "--hosts", "--hostfile", "--ssh"};

bool doctor_hosts_asked(const struct arguments *a) {
    for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
        if (arguments_value(a, own[i]))
            return true;
    return false;
}

/* ---- which ---- */

static char *trimmed(char *s) {
    while (isspace((unsigned char)*s))
        s++;
    for (size_t n = strlen(s); n && isspace((unsigned char)s[n - 1]);)
        s[--n] = 0;
    return s;
}

static int add(struct wanted_hosts *h, char *name, struct err *err) {
    if (!*name)
        return err_say(err, -EINVAL, "a host without a name");
    for (size_t i = 0; i < h->n; i++)
        if (str_eq(h->v[i].name, name))
            return err_say(err, -EINVAL, "%s is named twice", name);
    if (h->n == HOSTS_MAX)
        return err_say(err, -EINVAL, "more than %d hosts", HOSTS_MAX);
    mem_push(h->v, h->n) = (struct examined_host){.name = name};
    return 0;
}

static int read_file(struct wanted_hosts *h, const char *path, struct err *err) {
    BUF_FINI struct buf text = {0};
    size_t n;
    int r = file_read_plain(path, HOSTFILE_MAX, &text, err);
    char **lines = r ? NULL : str_split(&h->arena, buf_str(&text), '\n', &n);
    for (size_t i = 0; r == 0 && i < n; i++) {
        char *line = trimmed(lines[i]);
        if (*line && *line != '#' && (r = add(h, line, err)) != 0)
            err_wrap(err, "%s:%zu: ", path, i + 1);
    }
    if (r == 0 && !h->n)
        r = err_say(err, -EINVAL, "%s names no host", path);
    return r;
}

/* A command may have commas in it. */
static int read_list(struct wanted_hosts *h, const char *list, bool commands, struct err *err) {
    size_t n;
    char **names = str_split(&h->arena, list, commands ? '\n' : ',', &n);
    int r = 0;
    for (size_t i = 0; i < n && r == 0; i++)
        if ((r = add(h, trimmed(names[i]), err)) != 0)
            err_wrap(err, "--hosts: ");
    return r;
}

static int check_all(const struct wanted_hosts *h, const struct provider *p, struct err *err) {
    int r = 0;
    for (size_t i = 0; i < h->n && r == 0; i++)
        r = p->check(h->v[i].name, err);
    return r;
}

/* ---- what is said of them ---- */

static int64_t microseconds(int64_t ns) {
    return (ns + (ns < 0 ? -500 : 500)) / 1000;
}

static void put_clock(struct json_writer *w, const struct clock_bound *c) {
    json_object(w, "clock");
    json_put_i64(w, "low_ns", c->low_ns);
    json_put_i64(w, "high_ns", c->high_ns);
    json_put_i64(w, "round_ns", c->round_ns);
    json_put_i64(w, "samples", c->samples);
    json_put_i64(w, "steps", c->steps);
    json_end_object(w);
}

static void put_host(struct json_writer *w, const struct examined_host *h) {
    ARENA_FINI struct arena a = {0};
    json_object(w, NULL);
    json_put_string(w, "name", h->name);
    json_put_bool(w, "works", h->works);
    json_put_string(w, "why", h->works ? NULL : h->why.msg);
    if (h->works) {
        hello_put(w, &h->hello);
        json_put_i64(w, "up_ns", h->up_ns);
        json_put_bool(w, "copied", h->copied);
        put_clock(w, &h->clock);
        json_put_tree(w, "facts", json_parse(&a, buf_str(&h->facts), h->facts.len, NULL));
    }
    json_end_object(w);
}

static void print_json(const struct wanted_hosts *h, const struct provider *p) {
    BUF_FINI struct buf out = {0};
    struct json_writer w = {.out = &out};
    json_object(&w, NULL);
    json_put_string(&w, "provider", p->name);
    json_array(&w, "hosts");
    for (size_t i = 0; i < h->n; i++)
        put_host(&w, &h->v[i]);
    json_end_array(&w);
    json_end_object(&w);
    puts(buf_str(&out));
}

static void print_facts(const struct examined_host *h) {
    ARENA_FINI struct arena a = {0};
    const struct json *f = json_parse(&a, buf_str(&h->facts), h->facts.len, NULL);
    int64_t gpus = json_get_i64(f, "gpus", 0);
    printf("      %s, uid %lld, Linux %s, %s, %lld processors, %.1f GB of memory, %.1f GB free, ",
           h->hello.host, (long long)h->hello.uid, json_get_string(f, "kernel", "?"),
           json_get_string(f, "machine", "?"), (long long)json_get_i64(f, "cpus", 0),
           (double)json_get_i64(f, "memory", 0) / 1e9, (double)json_get_i64(f, "free", 0) / 1e9);
    printf(gpus ? "%lld GPUs\n" : "no GPU\n", (long long)gpus);
}

/* The middle of a bound is no better than any other value in it: the two ends are what is known. */
static void print_clock(const struct clock_bound *c) {
    printf(
        "      clock: %lld to %lld us ahead of ours (+-%.1f us, %u samples, shortest way there and "
        "back %lld us)%s\n",
        (long long)microseconds(c->low_ns), (long long)microseconds(c->high_ns),
        (double)(c->high_ns - c->low_ns) / 2000.0, c->samples, (long long)microseconds(c->round_ns),
        c->steps ? "; it was set while we looked: no order of events will be known" : "");
}

static void print_abilities(const struct hello *h) {
    const char *comma = "";
    printf("      can: ");
    for (int i = 0; i < HELLO_ABILITIES_N; i++)
        if (h->can >> i & 1) {
            printf("%s%s", comma, hello_abilities[i]);
            comma = ", ";
        }
    puts(*comma ? "" : "nothing of what helpers know");
}

static void print_host(const struct examined_host *h, bool unicode) {
    printf("%s %s\n", h->works ? unicode ? "✓" : "+" : unicode ? "✗" : "x", h->name);
    if (!h->works) {
        printf("      %s\n", h->why.msg);
        return;
    }
    print_facts(h);
    print_clock(&h->clock);
    print_abilities(&h->hello);
    printf("      helper up in %.3f s%s\n", (double)h->up_ns / 1e9,
           h->copied ? ", after it was copied there" : "");
}

static void print_all(const struct wanted_hosts *h, const struct provider *p) {
    size_t works = 0;
    bool unicode = report_style_of(stdout).unicode;
    printf("hosts %s\n", p->summary);
    for (size_t i = 0; i < h->n; i++) {
        print_host(&h->v[i], unicode);
        works += h->v[i].works;
    }
    printf("\n%zu of %zu can be used\n", works, h->n);
}

/* ---- the verb ---- */

static const struct provider *provider_of(const struct arguments *a) {
    const char *name = arguments_value(a, "--provider");
    const struct provider *p = provider_find(name ? name : "ssh");
    if (!p)
        verb_usage_error(a->verb, "--provider %s: there are exec and ssh", name);
    return p;
}

static int read_hosts(const struct arguments *a, const struct provider *p, struct wanted_hosts *h,
                      struct err *err) {
    const char *list = arguments_value(a, "--hosts"), *file = arguments_value(a, "--hostfile");
    if (!list == !file)
        return err_say(err, -EINVAL, "name the hosts by --hosts or by --hostfile; one of %s is %s",
                       p->name, p->hosts);
    int r = list ? read_list(h, list, !p->copy, err) : read_file(h, file, err);
    return r ? r : check_all(h, p, err);
}

static int ask(const struct arguments *a, const struct provider *p, struct wanted_hosts *h) {
    char folder[PATH_MAX];
    struct err err;
    const char *format = arguments_value(a, "--format");
    char *helper = mem_printf("%s/rankquake-node", file_own_folder(folder, sizeof(folder)));
    struct provider_wish wish = {.ssh = arguments_value(a, "--ssh")};
    int r = examined_hosts_ask(p, &wish, helper, EXAMINED_SAMPLES, h->v, h->n, &h->arena, &err);
    free(helper);
    if (r)
        return verb_broken(a->verb, &err);
    if (format && str_eq(format, "json"))
        print_json(h, p);
    else
        print_all(h, p);
    for (size_t i = 0; i < h->n; i++)
        if (!h->v[i].works)
            return EXIT_SKIPPED;
    return EXIT_PASS;
}

int doctor_hosts(const struct arguments *a) {
    const struct provider *p = provider_of(a);
    struct wanted_hosts h = {0};
    struct err err;
    if (!p)
        return EXIT_USAGE_ERROR;
    if (arguments_value(a, "--ssh") && !p->copy)
        return verb_usage_error(a->verb, "--ssh is for hosts that ssh reaches");
    int code =
        read_hosts(a, p, &h, &err) == 0 ? ask(a, p, &h) : verb_usage_error(a->verb, "%s", err.msg);
    examined_hosts_fini(h.v, h.n);
    free(h.v);
    arena_fini(&h.arena);
    return code;
}
