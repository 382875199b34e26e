#include "harness/verbs/hosts_left.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sys/file.h"
#include "base/sys/printing.h"
#include "harness/provider/examined_host.h"
#include "harness/verbs/wanted_hosts.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct looking {
    const struct arguments *args;
    const char *what;
    size_t done, failed;
};

static void failed(struct looking *l, const char *host, const char *why) {
    fprintf(stderr, "rankquake %s: %s: %s\n", l->args->verb->name, host, why);
    l->failed++;
}

static void say_helper(struct looking *l, const char *host, const struct json *m) {
    const char *error = json_get_string(m, "error", NULL);
    if (error) {
        failed(l, host, error);
        return;
    }
    printing_line(stdout, "%s: %s, helper %lld of %s", host,
                  str_eq(l->what, "halt") ? "ended" : "left alone",
                  (long long)json_get_i64(m, "pid", 0), json_get_string(m, "run", "a run"));
    l->done += str_eq(l->what, "halt");
}

static void say_process(struct looking *l, const char *host, const struct json *m) {
    const char *error = json_get_string(m, "error", NULL);
    if (error) {
        failed(l, host, error);
        return;
    }
    printing_line(stdout, "%s: %s process %lld (%s), left by %s", host,
                  str_eq(l->what, "clean") ? "ended" : "would end",
                  (long long)json_get_i64(m, "pid", 0), json_get_string(m, "name", ""),
                  json_get_string(m, "run", "a run"));
    l->done++;
}

static void say_thing(struct looking *l, const char *host, const struct json *m, const char *what) {
    const char *error = json_get_string(m, "error", NULL);
    if (error) {
        failed(l, host, error);
        return;
    }
    printing_line(stdout, "%s: %s %s, left by helper %lld", host,
                  str_eq(l->what, "clean") ? "removed" : "would remove", what,
                  (long long)json_get_i64(m, "pid", 0));
    l->done++;
}

/* Who halts a run is told nothing of what others have left. */
static void say_host(struct looking *l, const struct examined_host *h) {
    ARENA_FINI struct arena a = {0};
    if (!h->works) {
        fprintf(stderr, "rankquake %s: %s\n", l->args->verb->name, h->why.msg);
        l->failed++;
        return;
    }
    const struct json *m = json_parse(&a, buf_str(&h->facts), h->facts.len, NULL);
    json_each(it, json_get(m, "at_work")) say_helper(l, h->name, it);
    if (str_eq(l->what, "halt"))
        return;
    json_each(it, json_get(m, "left")) say_process(l, h->name, it);
    json_each(it, json_get(m, "pages")) say_thing(l, h->name, it, "the page of a clock");
    json_each(it, json_get(m, "groups"))
        say_thing(l, h->name, it, json_get_string(it, "path", "a control group"));
}

static int ask(struct looking *l, struct wanted_hosts *w, const char *run) {
    char folder[PATH_MAX];
    struct err err;
    struct examined_host *v = mem_array(struct examined_host, w->n);
    struct provider_wish wish = {.ssh = w->ssh};
    const char *helper =
        arena_printf(&w->arena, "%s/rankquake-node", file_own_folder(folder, sizeof(folder)));
    for (size_t i = 0; i < w->n; i++)
        v[i] = (struct examined_host){.name = w->names[i], .errand = l->what, .run = run};
    int r = examined_hosts_ask(w->provider, &wish, helper, 0, v, w->n, &w->arena, &err);
    for (size_t i = 0; i < w->n && r == 0; i++)
        say_host(l, &v[i]);
    examined_hosts_fini(v, w->n);
    free(v);
    if (r)
        return verb_broken(l->args->verb, &err);
    if (!l->done && !l->failed)
        puts(str_eq(l->what, "halt") ? "no run is at work there" : "nothing to clean");
    return l->failed ? EXIT_LEFTOVERS : EXIT_PASS;
}

int hosts_left(const struct arguments *a, const char *what, const char *run) {
    struct wanted_hosts w = {0};
    struct looking l = {.args = a, .what = what};
    int code = wanted_hosts_read(a, &w);
    code = code ? code : ask(&l, &w, run);
    wanted_hosts_fini(&w);
    return code;
}
