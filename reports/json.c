/* The recorded run as JSON: verdict, rounds, faults and times. */
#include "reports/report.h"
#include "reports/story.h"

static void put_round(const struct recorded_run *run, const struct incidents *is,
                      struct json_writer *w, const struct round *r) {
    BUF_FINI struct buf why = {0};
    story_round_end(is, r, &why);
    json_object(w, NULL);
    json_put_i64(w, "round", r->number);
    json_put_i64(w, "world_size", r->world_size);
    json_put_i64(w, "started", r->started);
    json_put_bool(w, "complete", r->complete);
    json_put_i64(w, "restart_count", r->workers[0]->restart_count);
    json_put_double(w, "start_s", story_seconds(run, r->first_start_ns));
    json_put_i64(w, "resume_step", story_resume_step(r));
    json_put_string(w, "ended_by", buf_str(&why));
    json_array(w, "workers");
    for (size_t i = 0; i < r->n; i++) {
        const struct worker *k = r->workers[i];
        json_object(w, NULL);
        json_put_i64(w, "rank", k->rank);
        json_put_string(w, "node", k->node);
        json_put_i64(w, "pid", k->pid);
        json_put_i64(w, "last_step", k->last_step);
        if (k->exit_known)
            json_put_i64(w, k->exit_signal ? "signal" : "code",
                         k->exit_signal ? k->exit_signal : k->exit_code);
        json_end_object(w);
    }
    json_end_array(w);
    json_end_object(w);
}

/* Where its moments are of different hosts. */
static void put_bounds(struct json_writer *w, const struct incident *i) {
    bool any = i->recover_bound_ns;
    for (int p = 0; p < PHASE_N; p++)
        any |= i->phase_bound_ns[p];
    if (!any)
        return;
    story_put_ms(w, "recover_bound_ms", i->recover_bound_ns);
    json_object(w, "phases_bound_ms");
    for (int p = 0; p < PHASE_N; p++)
        story_put_ms(w, phase_name((enum phase)p), i->phase_bound_ns[p]);
    json_end_object(w);
}

static void put_fault(const struct recorded_run *run, struct json_writer *w,
                      const struct incident *i) {
    json_object(w, NULL);
    json_put_string(w, "id", i->id);
    json_put_i64(w, "n", i->n);
    json_put_string(w, "fault", i->fault);
    json_array(w, "targets");
    for (size_t k = 0; k < i->targets_n; k++)
        json_put_string(w, NULL, i->targets[k].name);
    json_end_array(w);
    json_put_bool(w, "in_force", i->in_force);
    if (i->in_force)
        json_put_double(w, "t0_s", story_seconds(run, i->t0_ns));
    story_put_ms(w, "lag_ms", i->late_ns);
    json_put_bool(w, "held", i->held);
    if (i->step >= 0)
        json_put_i64(w, "step", i->step);
    json_put_string(w, "evidence", i->evidence_seq ? i->evidence : NULL);
    json_put_i64(w, "round", i->round ? i->round->number : 0);
    json_put_bool(w, "ended_round", i->ended_round);
    json_put_i64(w, "next_round", i->next ? i->next->number : 0);
    story_put_ms(w, "recover_ms", i->recover_ns);
    json_object(w, "phases_ms");
    for (int p = 0; p < PHASE_N; p++)
        story_put_ms(w, phase_name((enum phase)p), i->phase_ns[p]);
    json_end_object(w);
    put_bounds(w, i);
    json_end_object(w);
}

static void put_clocks(const struct history *h, struct json_writer *w) {
    struct clocks c;
    clocks_load(&c, h);
    if (c.n)
        json_array(w, "clocks");
    for (size_t i = 0; i < c.n; i++) {
        const struct node_clock *k = &c.v[i];
        json_object(w, NULL);
        json_put_string(w, "node", k->node);
        json_put_string(w, "host", k->host);
        json_put_i64(w, "ahead_ns", k->ahead_ns);
        json_put_i64(w, "bound_ns", k->bound_ns);
        json_put_i64(w, "stamps_bound_ns", k->most_ns);
        json_put_i64(w, "samples", k->samples);
        json_put_i64(w, "steps", k->steps);
        json_end_object(w);
    }
    if (c.n)
        json_end_array(w);
    clocks_fini(&c);
}

static int render(const struct recorded_run *run, const struct report_style *style, struct buf *out,
                  struct err *err) {
    struct json_writer w = {.out = out};
    struct incidents is;
    BUF_FINI struct buf command = {0};
    incidents_load(&is, run->history, run->rounds);
    story_command(run, &command);
    json_object(&w, NULL);
    json_put_i64(&w, "v", 1);
    json_put_string(&w, "scenario", run->scenario->name);
    json_put_i64(&w, "seed", story_seed(run));
    json_put_string(&w, "version", story_run_text(run, "version"));
    json_put_string(&w, "launcher", story_run_text(run, "launcher"));
    if (*story_run_text(run, "isolation"))
        json_put_string(&w, "isolation", story_run_text(run, "isolation"));
    json_put_string(&w, "outcome", report_outcome(run->verdict->exit_code));
    json_put_string(&w, "reproduce", buf_str(&command));
    verdict_json(run->verdict, &w, "verdict");
    json_array(&w, "rounds");
    for (size_t i = 0; i < run->rounds->n; i++)
        put_round(run, &is, &w, run->rounds->v[i]);
    json_end_array(&w);
    json_array(&w, "faults");
    for (size_t i = 0; i < is.n; i++)
        put_fault(run, &w, is.v[i]);
    json_end_array(&w);
    put_clocks(run->history, &w);
    json_end_object(&w);
    buf_putc(out, '\n');
    incidents_fini(&is);
    return 0;
}

const struct report report_json = {
    .name = "json",
    .summary = "verdict, rounds, faults and times for programs",
    .file = "report.json",
    .render = render,
};
