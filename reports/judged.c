#include "reports/judged.h"

#include "base/str.h"
#include "reports/story.h"

#include <limits.h>
#include <math.h>
#include <string.h>

enum { OUTPUT_LINES = 40, OUTPUT_BYTES = 16 << 10 };

/* ---- what is taken ---- */

static void take_findings(struct judged *j, const struct verdict *v, struct arena *a) {
    j->v = arena_array(a, struct finding, v->n + 1);
    j->n = v->n;
    for (size_t i = 0; i < v->n; i++) {
        j->v[i] = v->v[i];
        j->v[i].check = arena_strdup(a, v->v[i].check);
    }
}

static void take_faults(struct judged *j, const struct recorded_run *run, struct arena *a) {
    struct incidents is;
    incidents_load(&is, run->history, run->rounds);
    j->faults = arena_array(a, struct judged_fault, is.n + 1);
    for (size_t i = 0; i < is.n; i++) {
        BUF_FINI struct buf targets = {0};
        story_targets(is.v[i], &targets);
        j->faults[j->faults_n++] =
            (struct judged_fault){.id = arena_strdup(a, is.v[i]->id),
                                  .fault = arena_strdup(a, is.v[i]->fault),
                                  .targets = arena_strdup(a, buf_str(&targets)),
                                  .detect_ns = is.v[i]->phase_ns[PHASE_DETECT],
                                  .recover_ns = is.v[i]->recover_ns};
    }
    incidents_fini(&is);
}

static void take_clocks(struct judged *j, const struct recorded_run *run, struct arena *a) {
    struct clocks c;
    clocks_load(&c, run->history);
    j->clocks = arena_array(a, const char *, 2 * c.n + 1);
    for (size_t i = 0; i < c.n; i++) {
        BUF_FINI struct buf text = {0};
        story_clock(&c.v[i], true, &text);
        j->clocks[2 * i] = arena_printf(a, "clock.%s", c.v[i].node);
        j->clocks[2 * i + 1] = arena_strdup(a, buf_str(&text));
    }
    clocks_fini(&c);
}

/* One that ended by itself says more than one that was killed. */
static const struct worker *last_failed(const struct rounds *rs) {
    const struct worker *found = NULL;
    for (size_t i = 0; i < rs->workers_n; i++) {
        const struct worker *w = rs->workers[i];
        if (worker_failed(w) &&
            (!found || (w->exit_signal == 0) > (found->exit_signal == 0) ||
             ((w->exit_signal == 0) == (found->exit_signal == 0) && w->exit_ns >= found->exit_ns)))
            found = w;
    }
    return found;
}

static const char *output_name(const struct recorded_run *run, const struct worker *w,
                               struct arena *a) {
    const char *own = "";
    history_each(r, run->history) if (r->seq == w->start_seq) own = record_text(r, "output");
    bool named = *own && !strchr(own, '/');
    return arena_printf(a, "logs/%s/%s", w->node, named ? own : "agent.log");
}

static void take_output(struct judged *j, const struct recorded_run *run, struct arena *a) {
    const struct worker *w = last_failed(run->rounds);
    BUF_FINI struct buf text = {0};
    if (!w || !run->folder)
        return;
    const char *name = output_name(run, w, a);
    if (folder_read_last(run->folder, name, OUTPUT_LINES, OUTPUT_BYTES, &text, NULL) != 0)
        return;
    j->output_of = name;
    j->output = arena_strdup(a, buf_str(&text));
}

static const char *text_of(const struct recorded_run *run, const char *key, struct arena *a) {
    return arena_strdup(a, story_run_text(run, key));
}

/* What overrides the file, as one text. */
static const char *sets_of(const struct recorded_run *run, struct arena *a) {
    BUF_FINI struct buf text = {0};
    json_each(set, run->history->n ? record_get(run->history->records[0], "set") : NULL)
        buf_printf(&text, "%s%s", text.len ? " " : "", json_string(set, ""));
    return arena_strdup(a, buf_str(&text));
}

void judged_take(struct judged *ret, const struct recorded_run *run, const char *dir,
                 struct arena *a) {
    BUF_FINI struct buf command = {0}, lost = {0}, loud = {0};
    story_command(run, &command);
    story_lost(run->verdict, &lost);
    story_loud(run->verdict, &loud);
    *ret = (struct judged){.name = arena_strdup(a, run->scenario->name),
                           .file = arena_strdup(a, story_file(run)),
                           .sets = sets_of(run, a),
                           .dir = arena_strdup(a, dir),
                           .seed = (uint64_t)story_seed(run),
                           .exit_code = run->verdict->exit_code,
                           .why = "",
                           .duration_s = story_duration_s(run),
                           .command = arena_strdup(a, buf_str(&command)),
                           .version = text_of(run, "version", a),
                           .launcher = text_of(run, "launcher", a),
                           .isolation = text_of(run, "isolation", a),
                           .lost = arena_strdup(a, buf_str(&lost)),
                           .loud = arena_strdup(a, buf_str(&loud)),
                           .output = "",
                           .output_of = ""};
    take_findings(ret, run->verdict, a);
    take_faults(ret, run, a);
    take_clocks(ret, run, a);
    if (ret->exit_code)
        take_output(ret, run, a);
}

void judged_missing(struct judged *ret, const char *name, const char *file, int exit_code,
                    const char *why) {
    *ret = (struct judged){.name = name,
                           .file = file,
                           .sets = "",
                           .dir = "",
                           .exit_code = exit_code,
                           .why = why,
                           .command = "",
                           .version = "",
                           .launcher = "",
                           .isolation = "",
                           .lost = "",
                           .loud = "",
                           .output = "",
                           .output_of = ""};
}

size_t judged_count(const struct judged *j, enum finding_status status) {
    size_t n = 0;
    for (size_t i = 0; i < j->n; i++)
        n += j->v[i].status == status;
    return n;
}

/* ---- several that are alike ---- */

const struct finding *judged_finding(const struct judged *j, const char *check) {
    for (size_t i = 0; i < j->n; i++)
        if (str_eq(j->v[i].check, check))
            return &j->v[i];
    return NULL;
}

static bool is_bad(const struct finding *f) {
    return f->status == FINDING_FAIL || f->status == FINDING_UNKNOWN;
}

/* The checks of the first run that has a verdict, which are those of all. */
static const char *check_name(const struct judged *const *v, size_t n, size_t k) {
    for (size_t i = 0; i < n; i++)
        if (v[i]->n)
            return k < v[i]->n ? v[i]->v[k].check : NULL;
    return NULL;
}

bool judged_check(const struct judged *const *v, size_t n, size_t k, struct judged_check *ret) {
    const char *name = check_name(v, n, k);
    *ret = (struct judged_check){.name = name, .forgiven = true};
    for (size_t i = 0; name && i < n; i++) {
        const struct finding *f = judged_finding(v[i], name);
        if (!f)
            continue;
        ret->runs++;
        ret->passed += f->status == FINDING_PASS;
        ret->failed += is_bad(f);
        ret->forgiven &= !is_bad(f) || v[i]->forgiven;
        if (!ret->shown || (is_bad(f) && !is_bad(ret->shown)))
            ret->shown = f;
    }
    ret->forgiven &= ret->failed > 0;
    return name;
}

bool judged_is_flaky(const struct judged_check *c) {
    return c->failed && c->passed;
}

struct judged_rate judged_rate(size_t failed, size_t n) {
    static const double z = 1.959964;
    double all = (double)n, p = (double)failed / all, scale = 1 + z * z / all;
    double middle = (p + z * z / (2 * all)) / scale;
    double half = z * sqrt(p * (1 - p) / all + z * z / (4 * all * all)) / scale;
    return (struct judged_rate){
        .rate = p, .low = failed ? middle - half : 0, .high = failed < n ? middle + half : 1};
}

void judged_put_rate(const struct judged_check *c, struct buf *out) {
    struct judged_rate r = judged_rate(c->failed, c->failed + c->passed);
    buf_printf(out,
               "did not pass in %zu of %zu runs: %.0f %%, between %.0f %% and %.0f %% (95 %% "
               "confidence)",
               c->failed, c->failed + c->passed, 100 * r.rate, 100 * r.low, 100 * r.high);
}

void judged_put_check(const struct judged_check *c, struct buf *out) {
    const struct finding *f = c->shown;
    if (judged_is_flaky(c)) {
        judged_put_rate(c, out);
        buf_puts(out, "; the first: ");
    }
    buf_printf(out, "%s%s%s", f->broken, *f->broken ? " " : "", f->seen);
    if (*f->expected)
        buf_printf(out, "; expected %s", f->expected);
}
