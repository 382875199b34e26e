#include "harness/verbs/doctor_hosts.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sys/file.h"
#include "harness/provider/examined_host.h"
#include "harness/verb.h"
#include "harness/verbs/wanted_hosts.h"
#include "reports/report.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

/* Those of a command line, asked. */
struct asked_hosts {
    struct wanted_hosts wanted;
    struct examined_host *v;
};

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

static void print_json(const struct asked_hosts *h) {
    BUF_FINI struct buf out = {0};
    struct json_writer w = {.out = &out};
    json_object(&w, NULL);
    json_put_string(&w, "provider", h->wanted.provider->name);
    json_array(&w, "hosts");
    for (size_t i = 0; i < h->wanted.n; i++)
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
    json_each(it, json_get(f, "jobs"))
        printf("      a rankrun is at work there: process %lld of uid %lld\n",
               (long long)json_get_i64(it, "pid", 0), (long long)json_get_i64(it, "uid", -1));
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

static void print_all(const struct asked_hosts *h) {
    size_t works = 0;
    bool unicode = report_style_of(stdout).unicode;
    printf("hosts %s\n", h->wanted.provider->summary);
    for (size_t i = 0; i < h->wanted.n; i++) {
        print_host(&h->v[i], unicode);
        works += h->v[i].works;
    }
    printf("\n%zu of %zu can be used\n", works, h->wanted.n);
}

/* ---- the verb ---- */

static int ask(const struct arguments *a, struct asked_hosts *h) {
    char folder[PATH_MAX];
    struct err err;
    struct wanted_hosts *w = &h->wanted;
    const char *format = arguments_value(a, "--format");
    const char *helper =
        arena_printf(&w->arena, "%s/rankquake-node", file_own_folder(folder, sizeof(folder)));
    struct provider_wish wish = {.ssh = w->ssh};
    for (size_t i = 0; i < w->n; i++)
        h->v[i].name = w->names[i];
    if (examined_hosts_ask(w->provider, &wish, helper, EXAMINED_SAMPLES, h->v, w->n, &w->arena,
                           &err) != 0)
        return verb_broken(a->verb, &err);
    if (format && str_eq(format, "json"))
        print_json(h);
    else
        print_all(h);
    for (size_t i = 0; i < w->n; i++)
        if (!h->v[i].works)
            return EXIT_SKIPPED;
    return EXIT_PASS;
}

int doctor_hosts(const struct arguments *a) {
    struct asked_hosts h = {0};
    int code = wanted_hosts_read(a, &h.wanted);
    if (code == 0) {
        h.v = mem_array(struct examined_host, h.wanted.n);
        code = ask(a, &h);
        examined_hosts_fini(h.v, h.wanted.n);
    }
    free(h.v);
    wanted_hosts_fini(&h.wanted);
    return code;
}
