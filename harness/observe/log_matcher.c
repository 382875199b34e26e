#include "harness/observe/log_matcher.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "harness/scenario/pattern.h"

#include <stdlib.h>
#include <string.h>

enum { RECORDED_MAX = 10000, LINE_SHOWN = 300 };

struct matched_line {
    const char *text;
    struct pattern *pattern;
    int64_t matched, recorded;
};

struct log_matcher {
    struct recorder *rec;
    struct matched_line *v; /* each expression once */
    size_t n;
    int64_t worker_lines, program_lines;
};

static bool is_known(const struct log_matcher *m, const char *text) {
    for (size_t i = 0; i < m->n; i++)
        if (str_eq(m->v[i].text, text))
            return true;
    return false;
}

struct log_matcher *log_matcher_new(struct recorder *rec, const struct expect *x) {
    if (!x->logs_n)
        return NULL;
    struct log_matcher *m = mem_new(struct log_matcher);
    m->rec = rec;
    for (size_t i = 0; i < x->logs_n; i++) {
        const char *text = x->logs[i].pattern;
        struct pattern *p = is_known(m, text) ? NULL : pattern_new(text, NULL);
        if (p) /* the loader has refused all that are wrong */
            mem_push(m->v, m->n) = (struct matched_line){.text = text, .pattern = p};
    }
    return m;
}

struct log_matcher *log_matcher_free(struct log_matcher *m) {
    for (size_t i = 0; m && i < m->n; i++)
        pattern_free(m->v[i].pattern);
    if (m)
        free(m->v);
    free(m);
    return NULL;
}

void log_matcher_record(struct recorder *rec, const char *node, pid_t pid, const char *key,
                        const char *value, const char *line) {
    enum source source = pid ? SOURCE_JOB : SOURCE_LAUNCHER;
    struct json_writer *w = recorder_begin(rec, clock_monotonic_ns(), source, "log");
    json_put_string(w, "node", node);
    if (pid)
        json_put_i64(w, "pid", pid);
    json_put_string(w, "from", "output");
    json_put_string(w, key, value);
    json_put_stringn(w, "line", line, strnlen(line, LINE_SHOWN));
    recorder_end(rec, NULL);
}

void log_matcher_heard(struct log_matcher *m, const char *node, pid_t pid, const char *line) {
    if (!m)
        return;
    *(pid ? &m->worker_lines : &m->program_lines) += 1;
    for (size_t i = 0; i < m->n; i++) {
        struct matched_line *x = &m->v[i];
        if (!pattern_match(x->pattern, line, NULL) || ++x->matched > RECORDED_MAX)
            continue;
        x->recorded++;
        log_matcher_record(m->rec, node, pid, "pattern", x->text, line);
    }
}

void log_matcher_end(struct log_matcher *m) {
    if (!m)
        return;
    struct json_writer *w = recorder_begin(m->rec, clock_monotonic_ns(), SOURCE_HARNESS, "lines");
    json_put_i64(w, "worker_lines", m->worker_lines);
    json_put_i64(w, "program_lines", m->program_lines);
    json_array(w, "patterns");
    for (size_t i = 0; i < m->n; i++) {
        json_object(w, NULL);
        json_put_string(w, "pattern", m->v[i].text);
        json_put_i64(w, "matched", m->v[i].matched);
        json_put_i64(w, "recorded", m->v[i].recorded);
        json_end_object(w);
    }
    json_end_array(w);
    recorder_end(m->rec, NULL);
}
