#include "reports/story.h"

#include "base/str.h"

#include <string.h>
#include <unistd.h>

double story_seconds(const struct recorded_run *run, int64_t t_ns) {
    int64_t begin_ns = run->history->n ? run->history->records[0]->t_ns : 0;
    return (double)(t_ns - begin_ns) / 1e9;
}

double story_duration_s(const struct recorded_run *run) {
    const struct history *h = run->history;
    return h->n ? story_seconds(run, h->records[h->n - 1]->t_ns) : 0;
}

int64_t story_seed(const struct recorded_run *run) {
    return run->history->n ? record_i64(run->history->records[0], "seed", 1) : 1;
}

size_t story_count(const struct verdict *v, enum finding_status status) {
    size_t n = 0;
    for (size_t i = 0; i < v->n; i++)
        n += v->v[i].status == status;
    return n;
}

const char *story_run_text(const struct recorded_run *run, const char *key) {
    return run->history->n ? record_text(run->history->records[0], key) : "";
}

const char *story_file(const struct recorded_run *run) {
    const char *said = story_run_text(run, "file"), *file = *said ? said : run->scenario->file;
    char here[4096];
    size_t n = getcwd(here, sizeof(here)) ? strlen(here) : 0;
    bool below = n > 1 && strncmp(file, here, n) == 0 && file[n] == '/';
    return below ? file + n + 1 : file;
}

bool story_of_processes(const struct recorded_run *run) {
    return str_eq(story_run_text(run, "isolation"), "processes");
}

int64_t story_resume_step(const struct round *r) {
    for (size_t i = 0; i < r->n; i++)
        if (r->workers[i]->resume_ns)
            return r->workers[i]->resume_step;
    return -1;
}

int64_t story_last_step(const struct round *r) {
    int64_t last = -1;
    for (size_t k = 0; k < r->n; k++)
        last = r->workers[k]->last_step > last ? r->workers[k]->last_step : last;
    return last;
}

int64_t story_steps_again(const struct round *before, const struct round *after) {
    int64_t made = before ? story_last_step(before) : -1;
    int64_t from = after ? story_resume_step(after) : -1;
    return made < 0 || from < 0 ? -1 : made > from ? made - from : 0;
}

void story_put_ms(struct json_writer *w, const char *key, int64_t ns) {
    if (ns < 0)
        json_put_null(w, key);
    else
        json_put_double(w, key, (double)ns / 1e6);
}

void story_in_force(const struct recorded_run *run, const struct incident *i, struct buf *out) {
    buf_printf(out, ", in force at %.3f s", story_seconds(run, i->t0_ns));
    if (i->late_ns >= 0)
        buf_printf(out, ", %.1f ms after its moment", (double)i->late_ns / 1e6);
}

void story_targets(const struct incident *i, struct buf *out) {
    for (size_t k = 0; k < i->targets_n; k++)
        buf_printf(out, "%s%s", k ? ", " : "", i->targets[k].name);
}

static const struct worker *first_end(const struct round *r, bool *ret_all_well, bool *ret_alive) {
    const struct worker *first = NULL;
    *ret_all_well = true;
    *ret_alive = false;
    for (size_t i = 0; i < r->n; i++) {
        const struct worker *w = r->workers[i];
        *ret_alive |= !w->exit_ns;
        *ret_all_well &= w->exit_ns && w->exit_known && !w->exit_code && !w->exit_signal;
        if (w->exit_ns && (!first || w->exit_ns < first->exit_ns))
            first = w;
    }
    return first;
}

void story_round_end(const struct incidents *is, const struct round *r, struct buf *out) {
    bool all_well, alive, named = false;
    const struct worker *first = first_end(r, &all_well, &alive);
    for (const struct incident *i = incidents_ended(is, r); i; i = i->beside) {
        buf_printf(out, "%s%s (%s", named ? ", " : "", i->id, i->fault);
        if (i->targets_n)
            buf_puts(out, " on ");
        story_targets(i, out);
        buf_putc(out, ')');
        named = true;
    }
    if (named)
        return;
    if (all_well)
        buf_puts(out, "all workers ended well");
    else if (!first)
        buf_puts(out, "still running when the history ends");
    else if (!first->exit_known)
        buf_printf(out, "rank %d on %s ended", first->rank, first->node);
    else if (first->exit_signal)
        buf_printf(out, "rank %d on %s died on signal %d", first->rank, first->node,
                   first->exit_signal);
    else
        buf_printf(out, "rank %d on %s ended %d", first->rank, first->node, first->exit_code);
}

/* Without the quotes that a shell would not need. */
static void put_word(struct buf *out, const char *word) {
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=@%+,";
    if (*word && strspn(word, plain) == strlen(word)) {
        buf_puts(out, word);
        return;
    }
    buf_putc(out, '\'');
    for (; *word; word++)
        buf_puts(out, *word == '\'' ? "'\\''" : (char[]){*word, 0});
    buf_putc(out, '\'');
}

void story_lost(const struct verdict *v, struct buf *out) {
    size_t n = 0;
    for (size_t i = 0; i < v->n; i++)
        n += v->v[i].lost;
    if (!n)
        return;
    buf_printf(out, "%zu check%s answered in %s %s not now: ", n,
               n == 1 ? " that was" : "s that were", v->lost_since, n == 1 ? "is" : "are");
    for (size_t i = 0, k = 0; i < v->n; i++)
        if (v->v[i].lost)
            buf_printf(out, "%s%s (%s)", k++ ? ", " : "", v->v[i].check,
                       finding_status_name(v->v[i].status));
}

void story_loud(const struct verdict *v, struct buf *out) {
    for (size_t i = 0; i < v->n; i++) {
        const struct finding *f = &v->v[i];
        if (f->loud && (f->status == FINDING_PASS || f->status == FINDING_SKIP))
            buf_printf(out, "%s%s: %s", out->len ? "; " : "", f->check, f->seen);
    }
}

void story_goodput(const struct goodput *g, struct buf *out) {
    if (!goodput_is_known(g))
        return;
    buf_printf(out, "%.0f %%: %lld step%s that count%s in %.1f s, %.1f s in the control run (%s)",
               g->percent, (long long)g->steps, g->steps == 1 ? "" : "s", g->steps == 1 ? "s" : "",
               g->span_s, g->control_s,
               g->printed ? "read from the job's output" : "events of the job, stamped on receipt");
}

void story_command(const struct recorded_run *run, struct buf *out) {
    const char *file = story_run_text(run, "file");
    const char *program = story_run_text(run, "program"); /* as it was typed */
    put_word(out, *program ? program : "rankquake");
    buf_puts(out, " run ");
    put_word(out, *file ? file : run->scenario->file);
    buf_printf(out, " --seed %lld", (long long)story_seed(run));
    if (run->history->n && json_get_bool(run->history->records[0]->fields, "untrusted", false))
        buf_puts(out, " --untrusted");
    json_each(set, run->history->n ? record_get(run->history->records[0], "set") : NULL) {
        buf_puts(out, " --set ");
        put_word(out, json_string(set, ""));
    }
}
