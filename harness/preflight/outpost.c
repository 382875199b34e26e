#include "harness/preflight/outpost.h"

#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "base/sys/outcall.h"
#include "harness/preflight/probe.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void errand_failed(struct json_writer *w, int r, const char *fmt, ...) {
    BUF_FINI struct buf text = {0};
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    buf_printf(&text, ": %s", strerror(-r));
    json_put_string(w, "error", buf_str(&text));
}

/* What a probe sees here. */
static void run_look(struct outpost *o, const struct json *asked, struct json_writer *w) {
    const struct probe *p = probe_find(json_get_string(asked, "probe", ""));
    (void)o;
    if (p && p->look)
        p->look(json_get(asked, "given"), w);
    else
        json_put_string(w, "error", "this version of rankquake does not know the probe");
}

static void run_time(struct outpost *o, const struct json *asked, struct json_writer *w) {
    (void)o;
    (void)asked;
    json_put_i64(w, "ns", clock_realtime_ns());
}

static const struct errand own[] = {{"look", run_look, true}, {"time", run_time, false}, {0}};

static const struct errand *find(const char *name) {
    static const struct errand *const all[] = {own, errands_net, errands_disk, errands_host};
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        for (const struct errand *e = all[i]; e->name; e++)
            if (str_eq(e->name, name))
                return e;
    return NULL;
}

static void answer(void *state, const char *question, struct buf *ret) {
    ARENA_FINI struct arena a = {0};
    struct json_writer w = {.out = ret};
    const struct json *asked = json_parse(&a, question, strlen(question), NULL);
    const struct errand *e = find(json_get_string(asked, "do", ""));
    json_object(&w, NULL);
    if (e)
        e->run(state, asked, &w);
    else
        json_put_string(&w, "error", "this version of rankquake does not know the question");
    json_end_object(&w);
}

static void *nothing(void) {
    return NULL;
}

/* A dead mount, or a driver, holds that process alone. */
static void answer_apart(const char *question, int64_t within_ns, struct buf *ret) {
    static const struct outcall_work work = {.begin = nothing, .answer = answer};
    struct json_writer w = {.out = ret};
    struct outcall call = OUTCALL_NONE;
    struct err err = {0};
    int r = outcall_open(&call, &work, &err);
    r = r < 0 ? r : outcall_ask(&call, question, within_ns, ret, &err);
    outcall_close(&call);
    if (r == 0)
        return;
    buf_clear(ret);
    json_object(&w, NULL);
    if (r == -ETIME)
        json_put_string(&w, "error", "it hangs: what is asked there was not done in time");
    else
        json_put_string(&w, "error", err.msg);
    json_end_object(&w);
}

static void answer_line(struct outpost *o, const char *line, size_t len) {
    ARENA_FINI struct arena a = {0};
    BUF_FINI struct buf out = {0};
    const struct json *asked = json_parse(&a, line, len, NULL);
    const struct errand *e = find(json_get_string(asked, "do", ""));
    const char *question = arena_strndup(&a, line, strcspn(line, "\n"));
    if (e && e->apart)
        answer_apart(question, json_get_i64(asked, "hangs_ms", 10000) * 1000000, &out);
    else
        answer(o, question, &out);
    buf_putc(&out, '\n');
    file_write_all(STDOUT_FILENO, out.data, out.len, NULL);
}

void outpost_serve(void) {
    struct outpost o = {.ring = -1, .hold = -1};
    char *line = NULL;
    size_t room = 0;
    ssize_t n;
    while ((n = getline(&line, &room, stdin)) > 0)
        answer_line(&o, line, (size_t)n);
    free(line);
    outpost_end_server(&o);
}
