/* The recorded run in Prometheus' text format 0.0.4, for a pushgateway or the node exporter's textfile
 * collector. What was not measured is left out. */
#include "reports/report.h"
#include "reports/story.h"

#include "base/printable.h"

/* A label's value: '\' and '"' are escaped, and it has one line. */
static void put_label(struct buf *out, const char *name, const char *value, const char *end) {
    BUF_FINI struct buf clean = {0};
    printable_puts(&clean, value);
    buf_printf(out, "%s=\"", name);
    for (const char *c = buf_str(&clean); *c; c++) {
        if (*c == '"' || *c == '\\')
            buf_putc(out, '\\');
        buf_putc(out, *c);
    }
    buf_printf(out, "\"%s", end);
}

static void put_metric(struct buf *out, const char *name, const char *help) {
    buf_printf(out, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name);
}

static void put_name(struct buf *out, const char *metric, const struct recorded_run *run,
                     const char *end) {
    buf_printf(out, "%s{", metric);
    put_label(out, "scenario", run->scenario->name, ",");
    put_label(out, "launcher", story_run_text(run, "launcher"), end);
}

static void put_checks(const struct recorded_run *run, struct buf *out) {
    put_metric(out, "rankquake_check", "What a check found: 1 for its status.");
    for (size_t i = 0; i < run->verdict->n; i++) {
        const struct finding *f = &run->verdict->v[i];
        put_name(out, "rankquake_check", run, ",");
        put_label(out, "check", f->check, ",");
        put_label(out, "status", finding_status_name(f->status), "} 1\n");
    }
}

static void put_time(struct buf *out, const struct recorded_run *run, const struct incident *i,
                     const char *phase, int64_t ns) {
    BUF_FINI struct buf n = {0};
    if (ns < 0)
        return;
    buf_printf(&n, "%d", i->n);
    put_name(out, "rankquake_fault_seconds", run, ",");
    put_label(out, "id", i->id, ",");
    put_label(out, "n", buf_str(&n), ",");
    put_label(out, "fault", i->fault, ",");
    put_label(out, "phase", phase, "} ");
    buf_printf(out, "%.6f\n", (double)ns / 1e9);
}

static void put_faults(const struct recorded_run *run, struct buf *out) {
    struct incidents is;
    incidents_load(&is, run->history, run->rounds);
    put_metric(out, "rankquake_fault_seconds",
               "Time from a fault to training again (recover), and each phase of it.");
    for (size_t i = 0; i < is.n; i++) {
        for (int p = 0; p < PHASE_N; p++)
            put_time(out, run, is.v[i], phase_name((enum phase)p), is.v[i]->phase_ns[p]);
        put_time(out, run, is.v[i], "recover", is.v[i]->recover_ns);
    }
    incidents_fini(&is);
}

static void put_number(const struct recorded_run *run, struct buf *out, const char *metric,
                       const char *help, double v) {
    put_metric(out, metric, help);
    put_name(out, metric, run, "} ");
    buf_printf(out, "%.15g\n", v);
}

static int render(const struct recorded_run *run, const struct report_style *style, struct buf *out,
                  struct err *err) {
    const struct verdict *v = run->verdict;
    put_number(run, out, "rankquake_exit_code",
               "Of the run: 0 passed, 1 failed, 2 inconclusive, 3 broken.", v->exit_code);
    put_number(run, out, "rankquake_run_seconds", "How long the run took.", story_duration_s(run));
    put_number(run, out, "rankquake_rounds", "How many rounds there were.", (double)run->rounds->n);
    if (goodput_is_known(&v->goodput))
        put_number(run, out, "rankquake_goodput_percent",
                   "Pace of the steps that count, of the control run's.", v->goodput.percent);
    put_checks(run, out);
    put_faults(run, out);
    return 0;
}

const struct report report_prometheus = {
    .name = "prometheus",
    .summary = "metrics in Prometheus' text format",
    .render = render,
};
