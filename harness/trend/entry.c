#include "harness/trend/entry.h"

#include "base/mem.h"
#include "base/sha256.h"
#include "base/str.h"
#include "base/sys/file.h"

#include <errno.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

struct measures {
    struct arena *arena;
    struct trend_measure *v;
    size_t n;
};

/* ---- out of a run ---- */

static void add(struct measures *m, const char *name, double value) {
    if (m->n < TREND_MEASURES_MAX && isfinite(value) && value >= 0)
        m->v[m->n++] = (struct trend_measure){name, value};
}

static void add_time(struct measures *m, const char *name, int64_t ns) {
    add(m, name, ns < 0 ? NAN : (double)ns / 1e6);
}

static void add_incident(struct measures *m, const struct incident *i) {
    const char *id = i->n > 1 ? arena_printf(m->arena, "%s.%d", i->id, i->n) : i->id;
    for (int p = 0; p < PHASE_N; p++)
        add_time(m, arena_printf(m->arena, "%s/%s", id, phase_name((enum phase)p)), i->phase_ns[p]);
    add_time(m, arena_printf(m->arena, "%s/recover", id), i->recover_ns);
}

static int64_t job_ns(const struct recorded_run *run) {
    const struct record *end = history_newest(run->history, SOURCE_HARNESS, "job-end");
    return end && run->rounds->n ? end->t_ns - run->rounds->v[0]->first_start_ns : -1;
}

static void take_measures(struct trend_entry *e, struct arena *a, const struct recorded_run *run) {
    struct measures m = {.arena = a, .v = arena_array(a, struct trend_measure, TREND_MEASURES_MAX)};
    const struct goodput *g = &run->verdict->goodput;
    struct incidents is;
    add_time(&m, "job", job_ns(run));
    if (goodput_is_known(g)) {
        add(&m, "step", g->span_s * 1e3 / (double)g->steps);
        add(&m, "goodput", g->percent);
    }
    incidents_load(&is, run->history, run->rounds);
    for (size_t i = 0; i < is.n; i++)
        if (is.v[i]->in_force)
            add_incident(&m, is.v[i]);
    for (size_t i = 0; i < m.n; i++)
        m.v[i].name = arena_strdup(a, m.v[i].name);
    incidents_fini(&is);
    e->v = m.v;
    e->n = m.n;
}

static void take_calibration(struct trend_entry *e, const struct history *h) {
    double sum = 0, squares = 0, n = 0;
    history_each(r, h) {
        if (r->source != SOURCE_HARNESS || !record_is(r, "calibration"))
            continue;
        json_each(t, record_get(r, "wall_ns")) {
            double ms = json_number(t, 0) / 1e6;
            sum += ms;
            squares += ms * ms;
            n++;
        }
    }
    if (n < 2 || sum <= 0)
        return;
    double mean = sum / n, variance = (squares - n * mean * mean) / (n - 1);
    e->calibration_ms = mean;
    e->calibration_spread = sqrt(fmax(variance, 0)) / mean;
}

/* The hash of the history, and when it was written. */
static int take_identity(struct trend_entry *e, struct arena *a, const struct recorded_run *run,
                         struct err *err) {
    FILE_CLOSE int fd = folder_open_file(run->folder, "history.jsonl", err);
    struct sha256 sum;
    struct stat st;
    char hex[65], part[1 << 16];
    ssize_t n;
    if (fd < 0)
        return fd;
    if (fstat(fd, &st) < 0)
        return err_set(err, -errno, "%s/history.jsonl", run->dir);
    sha256_init(&sum);
    while ((n = read(fd, part, sizeof(part))) > 0)
        sha256_update(&sum, part, (size_t)n);
    if (n < 0)
        return err_set(err, -errno, "read %s/history.jsonl", run->dir);
    sha256_hex(&sum, hex);
    e->id = arena_strdup(a, hex);
    e->time_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    return 0;
}

int trend_entry_take(struct trend_entry *ret, struct arena *a, const struct recorded_run *run,
                     const struct trend_origin *origin, struct err *err) {
    const struct record *first = run->history->n ? run->history->records[0] : NULL;
    const struct finding *f = verdict_first(run->verdict);
    *ret = (struct trend_entry){
        .origin = *origin,
        .scenario = arena_strdup(a, run->scenario->name),
        .launcher = arena_strdup(a, first ? record_text(first, "launcher") : ""),
        .version = arena_strdup(a, first ? record_text(first, "version") : ""),
        .seed = first ? record_i64(first, "seed", 0) : 0,
        .exit_code = run->verdict->exit_code,
        .check = arena_strdup(a, f ? f->check : ""),
    };
    int r = take_identity(ret, a, run, err);
    if (r < 0)
        return r;
    take_calibration(ret, run->history);
    take_measures(ret, a, run);
    return 0;
}

/* ---- as a line ---- */

void trend_entry_put(const struct trend_entry *e, struct buf *out) {
    struct json_writer w = {.out = out};
    json_object(&w, NULL);
    json_put_i64(&w, "v", TREND_VERSION);
    json_put_string(&w, "id", e->id);
    json_put_i64(&w, "time_ns", e->time_ns);
    json_put_string(&w, "commit", e->origin.commit);
    json_put_string(&w, "branch", e->origin.branch);
    json_put_string(&w, "machine", e->origin.machine);
    json_put_string(&w, "scenario", e->scenario);
    json_put_string(&w, "launcher", e->launcher);
    json_put_string(&w, "version", e->version);
    json_put_i64(&w, "seed", e->seed);
    json_put_i64(&w, "exit_code", e->exit_code);
    json_put_string(&w, "check", e->check);
    json_put_double(&w, "calibration_ms", e->calibration_ms);
    json_put_double(&w, "calibration_spread", e->calibration_spread);
    json_object(&w, "measures");
    for (size_t i = 0; i < e->n; i++)
        json_put_double(&w, e->v[i].name, e->v[i].value);
    json_end_object(&w);
    json_end_object(&w);
}

static int parse_texts(struct trend_entry *e, const struct json *j, struct err *err) {
    const struct {
        const char *key, **to;
    } texts[] = {
        {"id", &e->id},
        {"commit", &e->origin.commit},
        {"branch", &e->origin.branch},
        {"machine", &e->origin.machine},
        {"scenario", &e->scenario},
        {"launcher", &e->launcher},
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        *texts[i].to = json_get_string(j, texts[i].key, NULL);
        if (!*texts[i].to)
            return err_say(err, -EBADMSG, "has no text \"%s\"", texts[i].key);
    }
    e->version = json_get_string(j, "version", "");
    e->check = json_get_string(j, "check", "");
    return 0;
}

static int parse_measures(struct trend_entry *e, struct arena *a, const struct json *j,
                          struct err *err) {
    const struct json *measures = json_get(j, "measures");
    if (!measures || measures->type != JSON_OBJECT || measures->length > TREND_MEASURES_MAX)
        return err_say(err, -EBADMSG, "has no map \"measures\" of at most %d", TREND_MEASURES_MAX);
    struct trend_measure *v = arena_array(a, struct trend_measure, measures->length + 1);
    json_each(m, measures) {
        double value = json_number(m, NAN);
        if (isfinite(value) && value >= 0)
            v[e->n++] = (struct trend_measure){m->key, value};
    }
    e->v = v;
    return 0;
}

int trend_entry_parse(struct trend_entry *ret, struct arena *a, const char *text, size_t len,
                      struct err *err) {
    struct err why = {0};
    const struct json *j = json_parse(a, text, len, &why);
    struct trend_entry e = {0};
    if (!j || j->type != JSON_OBJECT)
        return err_say(err, -EBADMSG, "is no whole entry (%s)", j ? "no object" : why.msg);
    int64_t version = json_get_i64(j, "v", 0);
    if (version != TREND_VERSION)
        return err_say(err, -EBADMSG, "is of version %lld, and this program knows %d",
                       (long long)version, TREND_VERSION);
    int r = parse_texts(&e, j, err);
    if (r == 0)
        r = parse_measures(&e, a, j, err);
    if (r < 0)
        return r;
    e.time_ns = json_get_i64(j, "time_ns", 0);
    e.seed = json_get_i64(j, "seed", 0);
    e.exit_code = (int)json_get_i64(j, "exit_code", 3);
    e.calibration_ms = json_number(json_get(j, "calibration_ms"), 0);
    e.calibration_spread = json_number(json_get(j, "calibration_spread"), 0);
    *ret = e;
    return 0;
}

double trend_entry_measure(const struct trend_entry *e, const char *name) {
    for (size_t i = 0; i < e->n; i++)
        if (str_eq(e->v[i].name, name))
            return e->v[i].value;
    return NAN;
}

bool trend_entry_passed(const struct trend_entry *e) {
    return e->exit_code == 0;
}
