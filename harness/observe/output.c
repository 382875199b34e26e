#include "harness/observe/output.h"

#include "base/list.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "harness/scenario/pattern.h"
#include "scenarios/jobs/rankquake.h"

#include <stdlib.h>
#include <string.h>

/* Nearness is asked of so many lines; who prints more has been seen enough. */
enum { NEAR_LINES_MAX = 20000, LINE_SHOWN = 160, VALUE_MAX = 71 };

/* A history is kept in memory: of a loop that prints as fast as it can not every step goes into it.
 */
enum { RECORDS_A_WINDOW = 500 };
static const int64_t WINDOW_NS = 250000000;

/* Who tells its steps in bursts, so many at a time or all at once, and not because it makes so
 * many, does not print them when it makes them. */
enum { BURST = 30, ALL_AT_ONCE = 10 };
static const int64_t FAST_STEP_NS = 2000000;

/* One expression of the scenario, and what has come of it. */
struct expression {
    const struct observed *spec;
    struct pattern *pattern;
    int64_t matched, unread; /* unread: what it took is no number */
    size_t nearness;         /* of the closest line that did not match */
    char closest[LINE_SHOWN + 1];
};

/* Who writes a file. */
struct writer {
    struct list link;
    struct output_reader *owner;
    const char *node;
    pid_t pid; /* 0: the node's own program */
    struct lines_file *file;
    uint32_t speaks;    /* kinds it has sent as events */
    bool ended, ending; /* ending: these are its last words */
    bool closed;        /* nobody follows it any more */
    int64_t since_ns, ended_ns;
    int64_t steps, bursts; /* told, and the portions of output they came in */
    uint64_t burst;        /* the newest of these */
    int64_t step;          /* the newest that was recorded, -1: none */
    int64_t pending;       /* the newest that was not, for there were too many; -1 */
    int64_t total;         /* of its steps, as the first line said; 0: not said */
    char loss[VALUE_MAX + 1];
};

struct output_reader {
    struct recorder *rec;
    struct lines *lines;
    output_fn *fn;
    void *arg;
    struct list writers;
    struct expression *v;
    size_t n;
    struct arena arena;
    int64_t near_lines, late_lines;
    int64_t window_ns; /* when it began */
    int records;       /* in it */
    int64_t thinned;   /* events that did not become records */
};

/* ---- records ---- */

static struct json_writer *begin(const struct writer *w, const char *kind) {
    struct json_writer *out = recorder_begin(w->owner->rec, clock_monotonic_ns(), SOURCE_JOB, kind);
    json_put_string(out, "node", w->node);
    json_put_i64(out, "pid", w->pid);
    json_put_string(out, "from", "output");
    return out;
}

static bool has_room(struct output_reader *o) {
    int64_t now = clock_monotonic_ns();
    if (now - o->window_ns >= WINDOW_NS) {
        o->window_ns = now;
        o->records = 0;
    }
    return o->records++ < RECORDS_A_WINDOW;
}

static void record_step(struct writer *w, int64_t step) {
    bool room = has_room(w->owner) || w->ending;
    w->step = step;
    w->pending = room ? -1 : step;
    w->owner->thinned += !room;
    if (!room)
        return;
    struct json_writer *out = begin(w, "step");
    json_put_i64(out, "step", step);
    if (*w->loss)
        json_put_double(out, "loss", strtod(w->loss, NULL));
    *w->loss = '\0';
    recorder_end(w->owner->rec, NULL);
}

/* What a kind's value is called; NULL: it has none. */
static const char *field_of(const char *kind) {
    if (str_eq(kind, "done"))
        return "model";
    return str_eq(kind, "resume") || str_starts(kind, "checkpoint-") ? "step" : NULL;
}

static void record_event(struct writer *w, const char *kind, const char *value, int64_t number) {
    if (!has_room(w->owner) && !w->ending) {
        w->owner->thinned++;
        return;
    }
    struct json_writer *out = begin(w, kind);
    const char *field = field_of(kind);
    if (str_eq(field, "model"))
        json_put_string(out, field, value);
    else if (field)
        json_put_i64(out, field, number);
    recorder_end(w->owner->rec, NULL);
}

/* ---- values ---- */

static bool number_of(const struct pattern_value *v, int64_t *ret) {
    char text[24];
    size_t n = 0;
    if (!v->at || v->len >= sizeof(text))
        return false;
    for (size_t i = 0; i < v->len; i++)
        if (v->at[i] != ',') /* 12,000 */
            text[n++] = v->at[i];
    text[n] = '\0';
    return str_to_i64(text, 0, INT64_MAX, ret);
}

static const struct pattern_value *first_of(const struct pattern_value *v) {
    for (size_t i = 0; i + 1 < PATTERN_VALUES_MAX; i++)
        if (v[i].at)
            return &v[i];
    return &v[PATTERN_VALUES_MAX - 1];
}

/* See section_observe: a step; a step and how many; an epoch, a step in it and how many. false: no
 * number. *ret -1: a step of something else. */
static bool step_of(struct writer *w, const struct pattern_value *v, int64_t *ret) {
    int64_t a, b, c;
    if (v[0].at && v[1].at && v[2].at) {
        if (!number_of(&v[0], &a) || !number_of(&v[1], &b) || !number_of(&v[2], &c) || !c ||
            a > INT32_MAX || c > INT32_MAX)
            return false;
        *ret = a * c + b;
        return true;
    }
    if (v[0].at && v[1].at) {
        if (!number_of(&v[0], &a) || !number_of(&v[1], &b))
            return false;
        w->total = w->total ? w->total : b;
        *ret = b == w->total ? a : -1;
        return true;
    }
    return number_of(first_of(v), ret);
}

/* ---- a line ---- */

static void note_closest(struct expression *x, const char *line) {
    size_t near = pattern_nearness(x->pattern, line);
    if (near <= x->nearness)
        return;
    x->nearness = near;
    snprintf(x->closest, sizeof(x->closest), "%s", line);
}

static bool is_spoken(const struct writer *w, const char *kind) {
    return w->speaks & UINT32_C(1) << rankquake_kind_of(kind);
}

static void take_loss(struct writer *w, struct expression *x, const struct pattern_value *v) {
    const struct pattern_value *value = first_of(v);
    char text[VALUE_MAX + 1], *end;
    snprintf(text, sizeof(text), "%.*s", value->at ? (int)value->len : 0,
             value->at ? value->at : "");
    strtod(text, &end);
    if (end == text)
        x->unread++;
    else
        str_copy(w->loss, sizeof(w->loss), text);
}

static void take_step(struct writer *w, struct expression *x, const struct pattern_value *v) {
    int64_t step = -1;
    if (!step_of(w, v, &step))
        x->unread++;
    if (step < 0 || step == w->step) /* a bar says the same again whenever it is drawn */
        return;
    uint64_t burst = lines_counted(w->file).portions;
    w->steps++;
    w->bursts += burst != w->burst;
    w->burst = burst;
    record_step(w, step);
}

static void take_other(struct writer *w, struct expression *x, const struct pattern_value *v) {
    const struct pattern_value *value = first_of(v);
    int64_t number = w->step < 0 ? 0 : w->step;
    char text[VALUE_MAX + 1] = "";
    if (value->at)
        snprintf(text, sizeof(text), "%.*s", (int)value->len, value->at);
    bool wants_number = str_eq(field_of(x->spec->kind), "step");
    if (value->at && wants_number && !number_of(value, &number))
        x->unread++;
    else
        record_event(w, x->spec->kind, text, number);
}

/* The loss first: it belongs to the step that the same line tells. */
static void take(struct writer *w, struct expression *x, const char *line) {
    struct pattern_value v[PATTERN_VALUES_MAX];
    if (!pattern_match(x->pattern, line, v)) {
        if (!x->matched && w->owner->near_lines < NEAR_LINES_MAX)
            note_closest(x, line);
        return;
    }
    x->matched++;
    if (is_spoken(w, x->spec->kind))
        return;
    if (str_eq(x->spec->kind, "loss"))
        take_loss(w, x, v);
    else if (str_eq(x->spec->kind, "step"))
        take_step(w, x, v);
    else
        take_other(w, x, v);
}

static void on_line(void *arg, void *who, const char *line) {
    struct output_reader *o = arg;
    struct writer *w = who;
    if (w->pid && w->ended) {
        o->late_lines++;
    } else if (w->pid) {
        for (size_t i = 0; i < o->n; i++)
            take(w, &o->v[i], line);
        o->near_lines++;
    }
    o->fn(o->arg, w->node, w->pid, line);
}

/* ---- the whole ---- */

static int order_of(const struct observed *x) {
    return str_eq(x->kind, "loss") ? 0 : str_eq(x->kind, "step") ? 2 : 1;
}

/* In the order in which one line is asked: what it says of a step comes before the step, as a job
 * says that it resumes before it makes one. */
static void compile(struct output_reader *o, const struct scenario *s) {
    o->v = arena_array(&o->arena, struct expression, s->observe.n + 1);
    for (int order = 0; order <= 2; order++)
        for (size_t i = 0; i < s->observe.n; i++) {
            struct err err;
            if (order_of(&s->observe.v[i]) != order)
                continue;
            struct pattern *p = pattern_new(s->observe.v[i].pattern, &err);
            if (p) /* the loader has refused all others */
                o->v[o->n++] = (struct expression){.spec = &s->observe.v[i], .pattern = p};
        }
}

struct output_reader *output_new(struct loop *l, struct recorder *rec, const struct scenario *s,
                                 output_fn *fn, void *arg, struct err *err) {
    struct output_reader *o = mem_new(struct output_reader);
    *o = (struct output_reader){.rec = rec, .fn = fn, .arg = arg};
    list_init(&o->writers);
    o->lines = lines_new(l, on_line, o, err);
    if (!o->lines)
        return output_free(o);
    compile(o, s);
    return o;
}

struct output_reader *output_free(struct output_reader *o) {
    if (!o)
        return NULL;
    lines_free(o->lines);
    for (size_t i = 0; i < o->n; i++)
        pattern_free(o->v[i].pattern);
    arena_fini(&o->arena);
    free(o);
    return NULL;
}

/* A node that comes back goes on writing into the file it had. */
static bool follows_program(const struct output_reader *o, const char *node) {
    list_each(it, &o->writers) {
        const struct writer *w = list_entry(it, struct writer, link);
        if (!w->pid && str_eq(w->node, node))
            return true;
    }
    return false;
}

int output_follow(struct output_reader *o, int fd, const char *node, pid_t pid, struct err *err) {
    if (!pid && follows_program(o, node)) {
        file_close(&fd);
        return 0;
    }
    struct writer *w = arena_new(&o->arena, struct writer);
    *w = (struct writer){.owner = o, .node = node, .pid = pid, .step = -1, .pending = -1};
    w->since_ns = clock_monotonic_ns();
    w->file = lines_follow(o->lines, fd, w, err);
    if (!w->file)
        return err->code;
    list_append(&o->writers, &w->link);
    return 0;
}

static struct writer *find(struct output_reader *o, pid_t pid) {
    for (struct list *it = o->writers.prev; it != &o->writers; it = it->prev) {
        struct writer *w = list_entry(it, struct writer, link);
        if (w->pid == pid && pid)
            return w;
    }
    return NULL;
}

/* What a worker leaves running may write on, but a job of many rounds has more workers than a
 * process has descriptors. */
static void close_oldest(struct output_reader *o) {
    enum { ENDED_MAX = 128 };
    struct writer *oldest = NULL;
    int open = 0;
    list_each(it, &o->writers) {
        struct writer *w = list_entry(it, struct writer, link);
        if (!w->ended || w->closed)
            continue;
        open++;
        oldest = oldest ? oldest : w;
    }
    if (open <= ENDED_MAX)
        return;
    lines_close(oldest->file);
    oldest->closed = true;
}

void output_last_words(struct output_reader *o, pid_t pid) {
    struct writer *w = find(o, pid);
    if (!w || w->ended)
        return;
    w->ending = true;
    lines_drain(w->file);
    if (w->pending >= 0)
        record_step(w, w->pending);
    else if (*w->loss && w->step >= 0)
        record_step(w, w->step); /* a bar tells the last step before the line with its loss */
    w->ended_ns = clock_monotonic_ns();
    w->ended = true;
    close_oldest(o);
}

static bool is_buffered(const struct writer *w) {
    int64_t lived_ns = (w->ended ? w->ended_ns : clock_monotonic_ns()) - w->since_ns;
    bool bursts = w->bursts == 1 ? w->steps >= ALL_AT_ONCE : w->steps >= BURST * w->bursts;
    return w->steps && bursts && lived_ns / w->steps >= FAST_STEP_NS;
}

void output_overruled(struct output_reader *o, const struct record *event) {
    struct writer *w = *record_text(event, "from") ? NULL : find(o, (pid_t)event->pid);
    if (w)
        w->speaks |= UINT32_C(1) << rankquake_kind_of(event->kind);
}

/* ---- what came of it ---- */

static void put_expression(struct json_writer *out, const struct expression *x) {
    json_object(out, NULL);
    json_put_string(out, "event", x->spec->kind);
    json_put_string(out, "pattern", x->spec->pattern);
    json_put_bool(out, "own", x->spec->own);
    json_put_i64(out, "matched", x->matched);
    if (x->unread)
        json_put_i64(out, "unread", x->unread);
    if (!x->matched && *x->closest)
        json_put_string(out, "closest", x->closest);
    json_end_object(out);
}

void output_end(struct output_reader *o) {
    struct lines_count sum = {0};
    int64_t buffered = 0;
    list_each(it, &o->writers) {
        struct writer *w = list_entry(it, struct writer, link);
        lines_drain(w->file);
        buffered += is_buffered(w);
        struct lines_count one = lines_counted(w->file);
        sum.lines += w->pid ? one.lines : 0;
        sum.skipped_bytes += one.skipped_bytes;
        sum.cut_lines += one.cut_lines;
    }
    struct json_writer *out =
        recorder_begin(o->rec, clock_monotonic_ns(), SOURCE_HARNESS, "observed");
    json_put_i64(out, "lines", (int64_t)sum.lines);
    json_put_i64(out, "late_lines", o->late_lines);
    json_put_i64(out, "cut_lines", (int64_t)sum.cut_lines);
    json_put_i64(out, "skipped_bytes", (int64_t)sum.skipped_bytes);
    json_put_i64(out, "thinned", o->thinned);
    json_put_i64(out, "buffered", buffered);
    json_array(out, "patterns");
    for (size_t i = 0; i < o->n; i++)
        put_expression(out, &o->v[i]);
    json_end_array(out);
    recorder_end(o->rec, NULL);
}
