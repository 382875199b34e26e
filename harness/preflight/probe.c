#include "harness/preflight/probe.h"

#include "base/str.h"
#include "base/sys/clock.h"
#include "harness/preflight/probes.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *const probe_status_names[] = {"pass", "fail", "skip"};

#define X(name) extern const struct probe probe_##name;
PROBES(X)
#undef X

const struct probe *const probes[] = {
#define X(name) &probe_##name,
    PROBES(X)
#undef X
        NULL};

const struct probe *probe_find(const char *name) {
    for (size_t i = 0; probes[i]; i++)
        if (str_eq(probes[i]->name, name))
            return probes[i];
    return NULL;
}

static void end(struct probing *p, enum probe_status status, const char *fmt, va_list ap) {
    BUF_FINI struct buf text = {0};
    buf_vprintf(&text, fmt, ap);
    struct probe_answer *a = p->ret;
    bool more = status == PROBE_FAIL && a->status == PROBE_FAIL && *a->seen;
    size_t at = more ? strlen(a->seen) : 0;
    if (a->status == PROBE_FAIL && status != PROBE_FAIL)
        return;
    snprintf(a->seen + at, sizeof(a->seen) - at, "%s%s", more ? "; " : "", buf_str(&text));
    a->status = status;
}

#define END(status)                                                                                \
    va_list ap;                                                                                    \
    va_start(ap, fmt);                                                                             \
    end(p, status, fmt, ap);                                                                       \
    va_end(ap)

void probe_pass(struct probing *p, const char *fmt, ...) {
    END(PROBE_PASS);
}

void probe_fail(struct probing *p, const char *fmt, ...) {
    END(PROBE_FAIL);
}

void probe_skip(struct probing *p, const char *fmt, ...) {
    END(PROBE_SKIP);
}

bool probe_has_failed(const struct probing *p) {
    return p->ret->status == PROBE_FAIL;
}

const struct json *probe_hear(struct probing *p, size_t i) {
    struct station *s = &p->v[i];
    bool silent = *s->why;
    const struct json *j = station_hear(s, p->arena, p->until_ns);
    const char *error = json_get_string(j, "error", NULL);
    if (!j && !silent)
        probe_fail(p, "%s: %s", s->host, s->why);
    if (error)
        probe_fail(p, "%s: %s", s->host, error);
    return error ? NULL : j;
}

const struct json **probe_ask_all(struct probing *p, const char *text) {
    const struct json **v = arena_array(p->arena, const struct json *, p->n + 1);
    for (size_t i = 0; i < p->n; i++)
        station_ask(&p->v[i], text);
    for (size_t i = 0; i < p->n; i++)
        v[i] = probe_hear(p, i);
    return v;
}

const struct json **probe_look_all(struct probing *p) {
    BUF_FINI struct buf text = {0};
    struct json_writer w = {.out = &text};
    json_object(&w, NULL);
    json_put_string(&w, "do", "look");
    json_put_string(&w, "probe", p->of->name);
    json_put_tree(&w, "given", p->given);
    json_put_i64(&w, "hangs_ms", (p->until_ns - clock_monotonic_ns()) / 1000000 - 500);
    json_end_object(&w);
    const struct json **v = probe_ask_all(p, buf_str(&text));
    for (size_t i = 0; i < p->n; i++)
        if (v[i])
            json_put_tree(p->figures, p->v[i].host, v[i]);
    return v;
}

void probe_equal(struct probing *p, const char *what, const char *const *texts) {
    size_t most = 0, best = 0;
    for (size_t i = 0; i < p->n; i++) {
        size_t same = 0;
        for (size_t k = 0; k < p->n; k++)
            same += texts[i] && str_eq(texts[i], texts[k]);
        if (same > best) {
            best = same;
            most = i;
        }
    }
    for (size_t i = 0; i < p->n; i++)
        if (texts[i] && best && !str_eq(texts[i], texts[most]))
            probe_fail(p, "%s: %s is %s, and %s on %s%s", p->v[i].host, what,
                       *texts[i] ? texts[i] : "none", *texts[most] ? texts[most] : "none",
                       p->v[most].host, best > 1 ? " and others" : "");
}
