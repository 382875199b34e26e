/* Runs the core in virtual time: many seeds, one seed, or every order. */
#include "harness/verbs.h"

#include "base/arena.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "harness/sim/found.h"
#include "harness/sim/schedule.h"
#include "harness/sim/script.h"
#include "harness/sim/seeds.h"
#include "harness/sim/shrink.h"
#include "harness/verbs/sim/exhaustive.h"
#include "harness/verbs/sim/marks.h"
#include "harness/verbs/sim/progress.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SEEDS_USUAL = 10000, RATE_USUAL = 6 };

static volatile sig_atomic_t interrupted;

/* The second one does not wait for a schedule that does not end. */
static void on_interrupt(int signo) {
    if (interrupted) {
        signal(signo, SIG_DFL);
        raise(signo);
    }
    interrupted = 1;
}

/* ---- options ---- */

static const struct verb_option options[] = {
    {"--seeds", "A:B", "the seeds from A to B (default: 1:10000)"},
    {"--seed", "N", "one seed, every event of it printed"},
    {"--agents", "N", "how many agents, 10000 at most (default: 5; 0: 1 to 5, as the seed has it)"},
    {"--time", "T",
     "how long faults strike, in virtual time (default: 60s; 0s: half a second to 4)"},
    {"--rate", "N", "faults planned in that time, on average (default: 6)"},
    {"--faults", "KIND=W,...", "only these kinds, with these weights; \"list\" prints them"},
    {"--swarm", NULL,
     "every seed leaves some kinds of faults out (the default, unless --faults names the kinds)"},
    {"--no-swarm", NULL, "every seed has all kinds of faults"},
    {"--calm", NULL, "no faults at all"},
    {"--frozen", NULL,
     "nothing but stopped nodes, and answers that take nearly as long as they may"},
    {"--scenario", "FILE", "a schedule that was written down, every event of it printed"},
    {"--out", "DIR",
     "where the run is recorded, for rankquake judge: of --seed, or of a seed that fails, which is "
     "also made small there (default: runs/sim-N)"},
    {"--no-shrink", NULL, "do not make a seed that fails small"},
    {"--jobs", "N", "processes (default: one for each processor)"},
    {"--exhaustive", NULL, "no chance: every order of a small job, --agents 2 or 3"},
    {"--together", "N", "exhaustive: how many faults in one path (default: 2)"},
    {"--rounds", "N", "exhaustive: rounds that are looked at (default: 2)"},
    {"--restarts", "N", "exhaustive: max_restarts of the job (default: 1)"},
    {"--least", "N", "exhaustive: nodes that a round needs (default: 1)"},
    {"--from-start", NULL, "exhaustive: not only from the first round's proposal on"},
    {"--free-watches", NULL, "exhaustive: watches and reads lag as they like, uncounted"},
    {"--memory", "MB", "exhaustive: give up beyond it (default: 2048)"},
    {"--path", "FILE", "exhaustive: take the choices written down there, and print each"},
    VERB_HEADWAY,
    {0},
};

/* Two that say something against each other. */
static const struct {
    const char *one, *other, *why;
} contradictions[] = {
    {"--seed", "--seeds", "one of the two"},
    {"--calm", "--faults", "without faults there are no kinds of them"},
    {"--calm", "--swarm", "without faults there are no kinds to leave out"},
    {"--swarm", "--no-swarm", "one of the two"},
    {"--calm", "--rate", "without faults there is no rate of them"},
    {"--calm", "--frozen", "one of the two: a stopped node is a fault"},
    {"--frozen", "--faults", "it has one kind of its own, the stopped node"},
    {"--frozen", "--swarm", "it has one kind of fault, and none to leave out"},
};

static const char *const of_exhaustive[] = {"--together", "--rounds",     "--restarts",
                                            "--least",    "--from-start", "--free-watches",
                                            "--memory",   "--path",       NULL};

static int check_options(const struct arguments *a) {
    for (size_t i = 0; i < sizeof(contradictions) / sizeof(*contradictions); i++)
        if (arguments_value(a, contradictions[i].one) &&
            arguments_value(a, contradictions[i].other))
            return verb_usage_error(a->verb, "%s and %s: %s", contradictions[i].one,
                                    contradictions[i].other, contradictions[i].why);
    for (int i = 0; of_exhaustive[i]; i++)
        if (arguments_value(a, of_exhaustive[i]))
            return verb_usage_error(a->verb, "%s: it is about --exhaustive, which is not given",
                                    of_exhaustive[i]);
    return a->files_n ? verb_usage_error(a->verb, "%s: it takes no files", a->files[0]) : 0;
}

static int take_seeds(const struct arguments *a, struct seeds_spec *s) {
    const char *range = arguments_value(a, "--seeds"), *one = arguments_value(a, "--seed");
    const char *colon = range ? strchr(range, ':') : NULL;
    char first[32] = "";
    int64_t from = 1, to = SEEDS_USUAL;
    if (one) {
        int r = arguments_number(a, "--seed", 0, INT64_MAX - 1, &from);
        to = from;
        if (r)
            return r;
    }
    if (colon && (size_t)(colon - range) < sizeof(first))
        memcpy(first, range, (size_t)(colon - range));
    if (range && (!str_to_i64(first, 0, INT64_MAX - 1, &from) ||
                  !str_to_i64(colon + 1, from, INT64_MAX - 1, &to)))
        return verb_usage_error(a->verb, "--seeds %s: write FIRST:LAST, as in 1:20000", range);
    s->first = (uint64_t)from;
    s->last = (uint64_t)to;
    s->config.trace = one != NULL;
    return 0;
}

/* given: which kinds have been named already. */
static int take_weight(const struct arguments *a, struct sim_config *c, bool *given,
                       const char *word) {
    const char *equals = strchr(word, '=');
    char name[32] = "";
    int64_t weight = 1;
    size_t n = equals ? (size_t)(equals - word) : strlen(word);
    if (n < sizeof(name))
        memcpy(name, word, n);
    int at = sim_fault_find(name);
    if (at < 0)
        return verb_usage_error(
            a->verb, "--faults: there is no kind \"%s\"; --faults list prints them", word);
    if (equals && !str_to_i64(equals + 1, 0, 1000, &weight))
        return verb_usage_error(a->verb, "--faults %s: a weight is a whole number from 0 to 1000",
                                word);
    if (given[at])
        return verb_usage_error(a->verb, "--faults %s: %s is there twice",
                                arguments_value(a, "--faults"), name);
    given[at] = true;
    c->weights[at] = (int)weight;
    return 0;
}

static int take_faults(const struct arguments *a, struct sim_config *c) {
    const char *list = arguments_value(a, "--faults");
    ARENA_FINI struct arena arena = {0};
    bool given[SIM_FAULTS_N] = {false};
    int r = 0, sum = 0;
    if (!list)
        return 0;
    memset(c->weights, 0, sizeof(c->weights));
    for (char **w = str_split(&arena, list, ',', NULL); *w && r == 0; w++)
        r = take_weight(a, c, given, *w);
    for (int i = 0; i < SIM_FAULTS_N; i++)
        sum += c->weights[i];
    if (r == 0 && !sum)
        r = verb_usage_error(a->verb, "--faults %s: all weights are 0; --calm has no faults", list);
    return r;
}

static int take_time(const struct arguments *a, struct sim_config *c) {
    const char *value = arguments_value(a, "--time");
    const int64_t day_ns = 24 * 3600 * INT64_C(1000000000);
    c->trouble_ns = SEEDS_MINUTE_S * INT64_C(1000000000);
    if (!value || (str_to_duration_ns(value, &c->trouble_ns, NULL) == 0 && c->trouble_ns <= day_ns))
        return 0;
    return verb_usage_error(a->verb, "--time %s: write a duration, as in 60s, a day (24h) at most",
                            value);
}

/* Who names the kinds wants them in every seed. */
static bool is_swarm(const struct arguments *a) {
    static const char *const without[] = {"--no-swarm", "--faults", "--calm", "--frozen"};
    bool swarm = true;
    for (size_t i = 0; i < sizeof(without) / sizeof(*without); i++)
        swarm &= !arguments_value(a, without[i]);
    return swarm || arguments_value(a, "--swarm");
}

static int take_options(const struct arguments *a, struct seeds_spec *s) {
    int64_t agents = SIM_AGENTS_USUAL, rate = RATE_USUAL, jobs = sysconf(_SC_NPROCESSORS_ONLN);
    int r = check_options(a);
    if (r == 0)
        r = take_seeds(a, s);
    if (r == 0)
        r = arguments_number(a, "--agents", 0, SIM_AGENTS_MAX, &agents);
    if (r == 0)
        r = arguments_number(a, "--rate", 1, 1000, &rate);
    if (r == 0)
        r = arguments_number(a, "--jobs", 1, 64, &jobs);
    if (r == 0)
        r = take_time(a, &s->config);
    if (r == 0)
        r = take_faults(a, &s->config);
    s->config.agents = (int)agents;
    s->config.faults_mean = (int)rate;
    s->config.swarm = is_swarm(a);
    s->config.varies = !arguments_value(a, "--agents") && !arguments_value(a, "--time") &&
                       !arguments_value(a, "--calm") && !arguments_value(a, "--frozen");
    s->config.calm = arguments_value(a, "--calm");
    s->config.frozen = arguments_value(a, "--frozen");
    s->jobs = s->config.trace ? 1 : (int)jobs;
    return r;
}

/* ---- telling ---- */

static bool on_seen(void *arg, const struct seeds_tally *t) {
    progress_seen(arg, t);
    return !interrupted;
}

static void print_failed(const struct seeds_spec *s, const struct seeds_tally *t) {
    for (int i = 0; i < t->failed_n; i++)
        printf("seed %" PRIu64 " at %.3f s: %s\n", t->failed[i].seed,
               (double)t->failed[i].at_ns / 1e9, t->failed[i].text);
    if (t->violated > (uint64_t)t->failed_n)
        printf("... and %" PRIu64 " seeds more\n", t->violated - (uint64_t)t->failed_n);
    if (t->failed_n && !s->config.trace)
        printf("again      rankquake sim --seed %" PRIu64 ", with the same options otherwise\n",
               t->failed[0].seed);
}

static void print_totals(const struct seeds_tally *t, double seconds) {
    double n = t->seeds ? (double)t->seeds : 1;
    printf("seeds      %" PRIu64 " in %.1f s, %.0f an hour; %.0f x real time\n", t->seeds, seconds,
           n / seconds * 3600, (double)t->virtual_ns / 1e9 / seconds);
    printf("a seed     %.1f s of virtual time, %.1f rounds, %.1f faults, %.0f transactions, "
           "%.0f steps of the core\n",
           (double)t->virtual_ns / 1e9 / n, (double)t->rounds / n, (double)t->faults / n,
           (double)t->transactions / n, (double)t->steps / n);
    bool holds = t->counting == t->seeds && (double)t->faults / n >= SEEDS_FAULTS;
    printf("at least   %.1f s, %" PRId64 " rounds, %" PRId64 " faults; %" PRIu64
           " seeds have %d s and %d rounds%s\n",
           (double)t->least_ns / 1e9, t->least_rounds, t->least_faults, t->counting, SEEDS_MINUTE_S,
           SEEDS_ROUNDS, holds ? ": all" : "");
    printf("outcomes   %" PRIu64 " jobs succeeded, %" PRIu64 " failed, %" PRIu64
           " seeds violate an invariant\n",
           t->succeeded, t->failed_jobs, t->violated);
}

static int tell(const struct seeds_spec *s, const struct seeds_tally *t, double seconds) {
    BUF_FINI struct buf marks = {0};
    int missed = 0;
    print_totals(t, seconds);
    if (!s->config.trace && !s->config.calm)
        missed = marks_tell(&s->config, t, &marks);
    if (!s->config.trace) {
        risks_tell(t, &marks);
        decisions_tell(t, &marks);
    }
    fputs(buf_str(&marks), stdout);
    print_failed(s, t);
    return t->violated || missed ? EXIT_FAIL : EXIT_PASS;
}

/* The first that fails, made small. */
static int tell_found(const struct seeds_spec *s, const struct seeds_tally *t, const char *dir) {
    struct sim_config config = s->config;
    struct err err = {0};
    BUF_FINI struct buf said = {0};
    config.seed = t->failed[0].seed;
    config.trace = false;
    fflush(stdout);
    int r = found_write(&config, dir, &interrupted, &said, &err);
    fputs(buf_str(&said), stdout);
    return r ? verb_broken(&verb_sim, &err) : 0;
}

/* Played once more, for nobody records thousands of seeds. */
static int record(const struct sim_schedule *s, const char *dir) {
    struct sim_result result;
    struct err err = {0};
    int r = sim_record_into(s, dir, &result, &err);
    if (r < 0)
        fprintf(stderr, "rankquake sim: %s\n", err.msg);
    else
        printf("recorded   %s; rankquake judge %s judges it as a live run\n", dir, dir);
    return r;
}

static int record_seed(const struct seeds_spec *s, const char *dir) {
    struct sim_config config = s->config;
    struct sim_schedule schedule;
    config.seed = s->first;
    sim_draw(&config, &schedule);
    int r = record(&schedule, dir);
    sim_schedule_fini(&schedule);
    return r;
}

/* The directory is made before anything is simulated: hours of seeds are not to end there. */
static int make_out(const char *dir, bool *ret_made) {
    struct err err = {0};
    bool there = dir && file_exists(dir);
    int r = dir ? file_make_dirs(dir, 0777, &err) : 0;
    if (r == 0 && dir && access(dir, W_OK | X_OK) < 0)
        r = err_set(&err, -errno, "write into %s", dir);
    if (r)
        return verb_usage_error(&verb_sim, "--out %s: %s; name a directory that can be written to",
                                dir, err.msg);
    *ret_made = dir && !there;
    return 0;
}

static void handle_stops(void (*handler)(int)) {
    struct sigaction entry = {.sa_handler = handler};
    sigaction(SIGINT, &entry, NULL);
    sigaction(SIGTERM, &entry, NULL);
}

/* What a seed that was not asked for alone leaves in a directory. */
static int keep(const struct seeds_spec *s, const struct seeds_tally *t, bool shrinks,
                const char *dir) {
    if (t->failed_n && shrinks)
        return tell_found(s, t, dir);
    handle_stops(SIG_DFL); /* there is nothing to sum up any more */
    return dir && s->first == s->last ? record_seed(s, dir) : 0;
}

static int simulate(const struct seeds_spec *given, bool shrinks, const char *dir,
                    const struct headway_wish *wish) {
    struct seeds_spec s = *given;
    struct err err = {0};
    static struct seeds_tally t;
    struct progress progress;
    bool made = false;
    if (make_out(dir, &made))
        return EXIT_USAGE_ERROR;
    handle_stops(on_interrupt);
    printf("sim, seeds %" PRIu64 ":%" PRIu64 ", rankquake %s, %s\n", s.first, s.last,
           RANKQUAKE_VERSION, RANKQUAKE_CORE);
    fflush(stdout);
    progress_begin(&progress, s.last - s.first + 1, s.config.trace, wish);
    s.seen = on_seen;
    s.arg = &progress;
    int r = seeds_run(&s, &t, &err);
    progress_end(&progress);
    if (r < 0 && r != -ECANCELED)
        return verb_broken(&verb_sim, &err);
    int code = tell(&s, &t, (double)(clock_monotonic_ns() - progress.begun_ns) / 1e9);
    if (r == 0 && keep(&s, &t, shrinks, dir))
        code = EXIT_BROKEN;
    if (made)
        rmdir(dir); /* unless there is something in it */
    return interrupted ? EXIT_INTERRUPTED : code;
}

static int print_faults(void) {
    for (int i = 0; i < SIM_FAULTS_N; i++)
        printf("%-14s =%d  %s\n", sim_faults()[i].name, sim_faults()[i].weight,
               sim_faults()[i].text);
    return EXIT_PASS;
}

/* ---- a file ---- */

static int tell_played(const struct script *s, const struct sim_result *r) {
    char invariant[32];
    bool same = s->breaks && r->violated && str_eq(shrink_invariant(r->text, invariant), s->breaks);
    if (r->violated)
        printf("%s at %.3f s: %s\n", s->name, (double)r->ended_ns / 1e9, r->text);
    else
        printf("%s: the job %s at %.3f s, no invariant is broken\n", s->name,
               r->outcome == SIM_SUCCEEDED ? "has succeeded" : "has failed",
               (double)r->ended_ns / 1e9);
    if (s->breaks)
        printf("%s\n", same ? "as the file says" : "the file says that it breaks another, or did");
    return r->violated ? EXIT_FAIL : EXIT_PASS;
}

static int play_file(const char *file, const char *dir) {
    struct diagnostics d = {0};
    struct sim_result result;
    bool made;
    struct script *s = script_read(file, &d);
    fputs(buf_str(&d.out), stderr);
    diagnostics_fini(&d);
    if (!s || make_out(dir, &made)) {
        script_free(s);
        return EXIT_USAGE_ERROR;
    }
    printf("sim, %s, rankquake %s\n", file, RANKQUAKE_VERSION);
    sim_play(&s->schedule, true, &result);
    int code = tell_played(s, &result);
    if (dir && record(&s->schedule, dir) < 0)
        code = EXIT_BROKEN;
    script_free(s);
    return code;
}

/* A file has in it all that the other options would say. */
static int take_scenario(const struct arguments *a) {
    const char *file = arguments_value(a, "--scenario"), *dir = arguments_value(a, "--out");
    if (a->options_n > (dir ? 2 : 1) || a->files_n)
        return verb_usage_error(
            a->verb, "--scenario %s: the file says it all; no other option but --out", file);
    return play_file(file, dir);
}

static int main_sim(const struct arguments *a) {
    struct seeds_spec s = {0};
    if (arguments_value(a, "--exhaustive"))
        return exhaustive_main(a, RANKQUAKE_CORE);
    const char *kinds = arguments_value(a, "--faults");
    if (kinds && str_eq(kinds, "list"))
        return print_faults();
    if (arguments_value(a, "--scenario"))
        return take_scenario(a);
    sim_config_default(&s.config);
    struct headway_wish wish;
    int r = take_options(a, &s);
    r = r ? r : arguments_headway(a, &wish);
    return r ? r
             : simulate(&s, !arguments_value(a, "--no-shrink"), arguments_value(a, "--out"), &wish);
}

const struct verb verb_sim = {
    .name = "sim",
    .usage = "sim [options]",
    .summary = "drive the agents' real core in virtual time through seeded faults",
    .example = "sim --seeds 1:2000 --agents 5",
    .options = options,
    .run = main_sim,
};
