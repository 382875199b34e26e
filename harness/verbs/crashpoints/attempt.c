/* What one start of the command has come to, out of what it printed, told and left behind. */
#include "harness/verbs/crashpoints/crashing.h"

#include "base/str.h"
#include "base/sys/file.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LAST_LINES = 4, OUTPUT_MAX = 64 << 20 };

static int64_t number_of(const struct pattern_value *v) {
    char text[32] = "";
    int64_t n = -1;
    if (v->at && v->len < sizeof(text))
        memcpy(text, v->at, v->len);
    return str_to_i64(text, 0, INT64_MAX, &n) ? n : -1;
}

/* first: the first step of the run, counted from what was done before. */
struct output_reading {
    struct resumption *o;
    int64_t resume, first;
    char model[65];
    bool disagree;
};

static void read_value(struct output_reading *r, const char *kind, const struct pattern_value *v) {
    int64_t n = number_of(v);
    char text[65] = "";
    if (v->at)
        memcpy(text, v->at, v->len < 64 ? v->len : 64);
    if (str_eq(kind, "resume") && n >= 0) {
        r->disagree |= r->resume >= 0 && r->resume != n;
        r->resume = n;
    } else if (str_eq(kind, "step") && n >= 0 && r->first < 0) {
        r->first = n;
    } else if (str_eq(kind, "model")) {
        r->disagree |= *r->model && !str_eq(r->model, text);
        str_copy(r->model, sizeof(r->model), text);
    } else if (str_eq(kind, "loss")) {
        char *end;
        double x = strtod(text, &end);
        r->o->has_loss = end != text;
        r->o->loss = x;
    }
}

static void read_line(const struct crashing *c, struct output_reading *r, const char *line) {
    struct pattern_value v[PATTERN_VALUES_MAX];
    for (size_t i = 0; i < c->observed_n; i++)
        if (pattern_match(c->observed[i].pattern, line, v))
            read_value(r, c->observed[i].kind, &v[0]);
}

/* Its last lines, without those that only point to something in the line above, as Python does. */
static void take_last(struct resumption *o, char *rest) {
    size_t at = 0;
    char *line;
    *o->why = '\0';
    while (rest && (line = strsep(&rest, "\n")) && at + 1 < sizeof(o->why))
        if (line[strspn(line, " ^~")])
            at += (size_t)snprintf(o->why + at, sizeof(o->why) - at, "%s%s", at ? "\n" : "", line);
}

static void read_output(const struct crashing *c, int output, struct resumption *o) {
    BUF_FINI struct buf text = {0};
    BUF_FINI struct buf last = {0};
    ARENA_FINI struct arena mine = {0};
    struct output_reading r = {.o = o, .resume = -1, .first = -1};
    lseek(output, 0, SEEK_SET); /* it was the job's, too */
    if (file_read_fd(output, OUTPUT_MAX, &text, NULL) != 0)
        return;
    char *rest = text.data, *line;
    while (rest && (line = strsep(&rest, "\r\n")))
        read_line(c, &r, line);
    o->resumed = r.resume >= 0 ? r.resume : r.first > 0 ? r.first - 1 : -1;
    o->disagree = r.disagree;
    str_copy(o->model, sizeof(o->model), r.model);
    if (file_read_last(output, LAST_LINES, sizeof(o->why) - 1, &last, NULL) == 0)
        take_last(o, arena_strdup(&mine, buf_str(&last)));
}

void attempt_read(const struct crashing *c, const struct stage_end *end, int output,
                  struct resumption *o) {
    *o = (struct resumption){.status = end->status, .ran_ns = end->ran_ns, .resumed = -1};
    read_output(c, output, o);
    str_copy(o->sum, sizeof(o->sum), end->sum);
    str_copy(o->result, sizeof(o->result), end->result);
    bool well = WIFEXITED(end->status) && WEXITSTATUS(end->status) == 0;
    o->how = end->err.code ? ATTEMPT_BROKEN
             : end->late   ? ATTEMPT_HUNG
             : well        ? ATTEMPT_ENDED
                           : ATTEMPT_FAILED;
    if (end->err.code)
        str_copy(o->why, sizeof(o->why), end->err.msg);
    else if (c->scenario)
        crashing_read_end(o);
}

void attempt_heard(struct attempt_told *t, const char *kind, int64_t step, const char *text) {
    if (str_eq(kind, "resume") && step >= 0) {
        t->resumed_least =
            t->resumed_least < 0 || step < t->resumed_least ? step : t->resumed_least;
        t->resumed_most = step > t->resumed_most ? step : t->resumed_most;
    } else if (str_eq(kind, "done") && *text) {
        t->disagree |= *t->model && strncmp(t->model, text, sizeof(t->model) - 1) != 0;
        str_copy(t->model, sizeof(t->model), text);
    }
}

/* Events come from every rank, and are no line that was meant for people. */
void attempt_take_told(struct resumption *o, const struct attempt_told *t) {
    if (t->resumed_most >= 0)
        o->resumed = t->resumed_least;
    if (*t->model)
        str_copy(o->model, sizeof(o->model), t->model);
    o->disagree |= t->disagree || t->resumed_least != t->resumed_most;
}

const char *attempt_result(const struct crashing *c, const struct resumption *o) {
    return c->result ? o->result : *o->model ? o->model : o->sum;
}
