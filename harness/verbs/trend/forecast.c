/* What a job will make of its time on many nodes, from recoveries that were measured on few and from
 * failures that somebody has counted. */
#include "harness/verbs.h"

#include "base/mem.h"
#include "base/str.h"
#include "faults/hazards.h"
#include "harness/trend/outage.h"
#include "harness/trend/rates.h"
#include "harness/trend/recoveries.h"

#include <math.h>
#include <stdlib.h>

enum { SIMULATED_FAILURES = 200000, NODES_MAX = 1000000 };

struct forecast_request {
    struct recoveries measured;
    const struct rate *rate;
    const struct hazards *mix;
    int64_t nodes, mtbf_ns, save_ns, restart_ns, interval_ns; /* 0: not given */
    struct outage_job job;
    double known; /* so much of the mix was measured */
};

/* ---- options ---- */

static const struct hazards *find_mix(const char *name) {
    for (const struct hazards *h = hazards; h->name; h++)
        if (str_eq(h->name, name))
            return h;
    return NULL;
}

static int unknown_rate(const struct arguments *a, const char *name) {
    const char *names[32];
    size_t n = 0;
    BUF_FINI struct buf all = {0};
    for (const struct rate *r = rates; r->name && n < 31; r++) {
        names[n++] = r->name;
        buf_printf(&all, "%s%s", n > 1 ? ", " : "", r->name);
    }
    names[n] = NULL;
    const char *near = str_nearest(name, names);
    if (near)
        return verb_usage_error(a->verb, "--rates %s: did you mean %s?", name, near);
    return verb_usage_error(a->verb, "--rates %s: there are %s", name, buf_str(&all));
}

/* Weibull's shape, in hundredths. */
static int take_shape(const struct arguments *a, double *ret) {
    const char *value = arguments_value(a, "--shape");
    char *end;
    double shape = value ? strtod(value, &end) : 1;
    if (value && (*end || end == value || !(shape >= 0.2 && shape <= 5)))
        return verb_usage_error(a->verb, "--shape %s: write a number from 0.2 to 5, as in 0.7",
                                value);
    *ret = shape;
    return 0;
}

static int take_options(struct forecast_request *q, const struct arguments *a) {
    const char *rate = arguments_value(a, "--rates"), *mix;
    int bad = arguments_number(a, "--nodes", 1, NODES_MAX, &q->nodes);
    bad = bad ? bad : arguments_duration(a, "--mtbf", &q->mtbf_ns);
    bad = bad ? bad : arguments_duration(a, "--save", &q->save_ns);
    bad = bad ? bad : arguments_duration(a, "--restart", &q->restart_ns);
    bad = bad ? bad : arguments_duration(a, "--interval", &q->interval_ns);
    bad = bad ? bad : take_shape(a, &q->job.shape);
    if (bad)
        return bad;
    q->rate = rate_find(rate ? rate : "llama3");
    if (!q->rate)
        return unknown_rate(a, rate);
    mix = q->rate->mix;
    q->mix = find_mix(mix);
    if (!q->nodes)
        return verb_usage_error(a->verb, "on how many nodes? --nodes 1024");
    if (!a->files_n && !(q->save_ns && q->restart_ns))
        return verb_usage_error(a->verb, "of which runs? Or give --save and --restart");
    return 0;
}

/* ---- what was measured ---- */

static int read_runs(struct forecast_request *q, const struct arguments *a) {
    for (size_t i = 0; i < a->files_n; i++) {
        struct recording *r = mem_new(struct recording);
        BUF_FINI struct buf complaint = {0};
        struct recording_source from = {.dir = a->files[i]};
        bool read = recording_read(r, &from, &complaint) == 0;
        if (read) {
            recoveries_add(&q->measured, &r->run);
            recording_fini(r);
        } else {
            fprintf(stderr, "rankquake forecast: %s", buf_str(&complaint));
        }
        free(r);
        if (!read)
            return EXIT_USAGE_ERROR;
    }
    return 0;
}

static int settle(struct forecast_request *q, const struct arguments *a) {
    struct outage_job *j = &q->job;
    j->mtbf = q->mtbf_ns ? (double)q->mtbf_ns / 1e9 : rate_mtbf_s(q->rate, (double)q->nodes);
    j->save = q->save_ns ? (double)q->save_ns / 1e9 : recoveries_save(&q->measured);
    j->restart = q->restart_ns ? (double)q->restart_ns / 1e9
                               : recoveries_restart(&q->measured, q->mix, &q->known);
    if (isnan(j->restart))
        return verb_usage_error(a->verb, "no fault of these runs was recovered from: name runs in "
                                         "which one was, or give --restart");
    if (isnan(j->save))
        return verb_usage_error(a->verb, "the job of these runs tells of no save (checkpoint-begin "
                                         "and checkpoint-commit): give --save");
    return 0;
}

/* ---- telling it ---- */

static void print_time(double s) {
    if (s < 1)
        printf("%.0f ms", s * 1e3);
    else if (s < 120)
        printf("%.1f s", s);
    else if (s < 7200)
        printf("%.1f min", s / 60);
    else
        printf("%.1f h", s / 3600);
}

static void print_labelled(const char *label, double s, const char *why) {
    printf("  %-22s ", label);
    print_time(s);
    printf("  (%s)\n", why);
}

static void print_measured(const struct forecast_request *q) {
    puts("measured");
    for (size_t i = 0; i < q->measured.n; i++) {
        printf("  %-22s ", q->measured.v[i].fault);
        print_time(recovery_median(&q->measured.v[i]));
        printf("  until it trained again (median of %zu)\n", q->measured.v[i].n);
    }
    if (q->measured.saves_n) {
        printf("  %-22s ", "save");
        print_time(recoveries_save(&q->measured));
        printf("  (median of %zu; the job is taken to stand still meanwhile)\n",
               q->measured.saves_n);
    }
    if (q->measured.nodes && q->measured.nodes < q->nodes)
        printf(
            "  on %d node%s: on %lld starting and loading take longer; --restart and --save say by "
            "how much\n",
            q->measured.nodes, q->measured.nodes == 1 ? "" : "s", (long long)q->nodes);
}

static void print_assumed(const struct forecast_request *q) {
    char why[300];
    printf("supposed, on %lld nodes\n", (long long)q->nodes);
    if (q->mtbf_ns)
        snprintf(why, sizeof(why), "as given");
    else
        snprintf(why, sizeof(why), "%s: %.2f failures of 1,000 nodes in a day; %s, %s",
                 q->rate->name, rate_per_1000(q->rate), q->rate->text, q->rate->source);
    print_labelled("time between failures", q->job.mtbf, why);
    if (q->restart_ns)
        snprintf(why, sizeof(why), "as given");
    else if (q->known > 0)
        snprintf(why, sizeof(why), "mean in the proportions of %s, of which %.0f %% were measured",
                 q->mix->name, 100 * q->known);
    else
        snprintf(why, sizeof(why), "mean of what was measured");
    print_labelled("a start costs", q->job.restart, why);
    print_labelled("a save costs", q->job.save, q->save_ns ? "as given" : "as measured");
}

static void print_cost(const char *name, const struct outage_cost *c) {
    printf("    %-10s goodput %.2f %%", name, 100 * c->work);
    if (c->error > 0)
        printf(" +- %.2g", 100 * c->error);
    printf(": saving %.2f %%, lost work %.2f %%, starting %.2f %%\n", 100 * c->saving,
           100 * c->lost, 100 * c->restarting);
}

/* By formula, and by living through so many failures. */
static void print_interval(const struct forecast_request *q, const char *label, double interval) {
    double step = recoveries_step(&q->measured);
    struct outage_cost told = outage_expect(&q->job, interval);
    struct outage_cost lived = outage_simulate(&q->job, interval, SIMULATED_FAILURES, 1);
    printf("  %-22s ", label);
    print_time(interval);
    if (step > 0)
        printf(" (%.0f steps as they are now)", interval / step);
    printf("; a failure costs ");
    print_time(outage_lost_each(&q->job, interval));
    puts(" of work on average");
    if (fabs(q->job.shape - 1) < 1e-9)
        print_cost("formula", &told);
    print_cost("simulated", &lived);
}

static void tell(const struct forecast_request *q) {
    double now = q->interval_ns ? (double)q->interval_ns / 1e9 : recoveries_interval(&q->measured);
    double best = outage_best_interval(&q->job);
    if (q->measured.n || q->measured.saves_n)
        print_measured(q);
    print_assumed(q);
    puts("forecast");
    print_interval(q, "best interval", best);
    if (now > 0)
        print_interval(q, q->interval_ns ? "interval as given" : "interval as it is", now);
    printf("  %.1f failures in a day; Young's formula has ", 86400 / q->job.mtbf);
    print_time(outage_young_interval(&q->job));
    puts(" for the interval");
    if (fabs(q->job.shape - 1) < 1e-9)
        puts("  failures are supposed to come at random; those of real clusters cluster: --shape "
             "0.7");
    else
        puts("  the best interval is that for failures that come at random");
}

static int forecast(const struct arguments *a) {
    struct forecast_request q = {0};
    int code = take_options(&q, a);
    code = code ? code : read_runs(&q, a);
    code = code ? code : settle(&q, a);
    if (code == 0)
        tell(&q);
    recoveries_fini(&q.measured);
    return code;
}

const struct verb verb_forecast = {
    .name = "forecast",
    .usage = "forecast RUN... --nodes N [--mtbf TIME | --rates NAME] [options]",
    .summary =
        "goodput, lost work and the best checkpoint interval on many nodes, from recorded runs",
    .example = "forecast runs/tour-1-20260105-093000 --nodes 1024 --mtbf 8h",
    .operands = "DIR",
    .options =
        (const struct verb_option[]){
            {"--nodes", "N", "how many nodes the job is to have"},
            {"--mtbf", "TIME", "time between two failures of all of it (8h)"},
            {"--rates", "NAME",
             "else as it was counted: llama3 (default), hsdp, infinitehbd, rsc1, rsc2"},
            {"--restart", "TIME", "from a failure to training again, if not as measured"},
            {"--save", "TIME", "what a checkpoint costs, if not as measured"},
            {"--interval", "TIME", "between checkpoints, if not as measured"},
            {"--shape", "K",
             "of the gaps between failures (Weibull): 1 at random (default), below in clusters"},
            {0}},
    .run = forecast,
};
