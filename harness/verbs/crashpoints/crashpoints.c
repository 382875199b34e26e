/* Records what a command does to its directory, and starts it from every state that a death could
 * leave there. */
#include "harness/verbs/crashpoints/crashing.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "harness/crash/barriers.h"
#include "harness/play/announcement.h"
#include "harness/play/suite.h"
#include "harness/scenario/command.h"
#include "harness/scenario/scenario.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct verb_option options[] = {
    {"--dir", "DIR",
     "where the command keeps its checkpoints; {dir} in CMD stands for one of ours"},
    {"--copy", NULL,
     "begin with what is in DIR; else with an empty one. DIR itself is not touched"},
    {"--record", "HOW", "calls, fuse or auto: by what the record is made"},
    {"--save", "N", "try the points of this save alone, from 1 (default: the last two)"},
    {"--all", NULL, "try the points of all saves"},
    {"--deaths", "A,B", "of process, kernel and power (default: all three)"},
    {"--fs", "A,B", "what the disk promises: ext4, xfs, posix, nfs ... (default: ext4,xfs,posix)"},
    {"--result", "FILE",
     "what two runs are compared by; else what the job says that it has become "
     "(a line `model HEX`, the event done), else the files of its last save"},
    {"--loss-band", "PART", "another result is well while the last loss differs by no more: 0.02"},
    {"--observe", "KIND=REGEX", "what it prints: step, resume, loss or model='...', or a preset"},
    {"--jobs", "N", "trials side by side (default: as many as there are processors)"},
    {"--budget", "TIME", "begin no trial after this (default: 10m)"},
    {"--limit", "TIME",
     "a start that takes longer hangs (default: six times as long as undisturbed, "
     "20 s at least)"},
    {"--max-bytes", "N", "keep no more than so many bytes of writes (default: 1 GiB)"},
    {"--max-states", "N", "try no more than so many different states (default: 400)"},
    {"--seed", "N", "of what is drawn where there are more than can be tried (default: 1)"},
    {"--only", "POINT/STATE", "this trial alone, and what it prints"},
    {"--from", "RUN", "take the record of an earlier run, by its directory"},
    {"--set", "KEY=VALUE", "a value of the scenario, job.checkpoint.max_states=50"},
    {"--isolation", "KIND",
     "auto, namespaces or processes (a command needs {dir}, and --jobs 1 where "
     "ports are fixed)"},
    {"--share-network", NULL, "the host's network, and not one in which there is only the job"},
    {"--junit", "FILE", "one case per crash point, as in junit.xml of the run directory"},
    {"--out", "DIR", "where the directory of the run is made (default: runs)"},
    VERB_HEADWAY,
    {0},
};

/* ---- what is asked for ---- */

static const char *const default_patterns[][2] = {
    {"resume",
     "(?i)\\b(?:resum|restor|continu|load)[a-z]*\\b[^0-9]*\\b(?:step|epoch|iter|iteration|"
     "it)[a-z_]*[^0-9a-z]*([0-9]+)"},
    {"model", "\\bmodel[ :=]+([0-9a-f]{16,64})\\b"},
    {"loss", "\\b(?:train_|val_)?loss['\"]?[ :=]+([-+0-9.e]+)"},
};

static bool is_observed(const struct crashing *c, const char *kind) {
    for (size_t i = 0; i < c->observed_n; i++)
        if (str_eq(c->observed[i].kind, kind))
            return true;
    return false;
}

static int observe(struct crashing *c, const char *kind, const char *text) {
    static const char *const kinds[] = {"step", "resume", "loss", "model", NULL};
    struct err err;
    if (!str_in(kind, kinds))
        return verb_usage_error(c->arguments->verb,
                                "--observe %s: step, resume, loss and model are looked for", kind);
    if (c->observed_n == sizeof(c->observed) / sizeof(*c->observed))
        return verb_usage_error(c->arguments->verb, "--observe: at most %zu", c->observed_n);
    struct pattern *p = pattern_new(text, &err);
    if (!p || pattern_values(p) == 0)
        return verb_usage_error(c->arguments->verb, "--observe %s: %s", kind,
                                p ? "put the value into brackets, step ([0-9]+)" : err.msg);
    c->observed[c->observed_n++] = (struct observed_pattern){kind, p};
    return 0;
}

static int observe_preset(struct crashing *c, const char *name) {
    for (const struct preset *p = presets; p->name; p++)
        if (str_eq(p->name, name)) {
            int r = 0;
            for (size_t i = 0; i < p->n && r == 0; i++)
                if (str_eq(p->v[i].kind, "resume") || str_eq(p->v[i].kind, "loss"))
                    r = observe(c, p->v[i].kind, p->v[i].pattern);
            return r;
        }
    return verb_usage_error(c->arguments->verb,
                            "--observe %s: write KIND=REGEX, or a preset (list presets)", name);
}

/* What a scenario observes is read where it is started (verbs/start.c), which tells it so. */
static int take_told(struct crashing *c) {
    int r = observe(c, "resume", "^rankquake start: resume ([0-9]+)$");
    r = r ? r : observe(c, "model", "^rankquake start: model (.+)$");
    return r ? r : observe(c, "loss", "^rankquake start: loss (.+)$");
}

static int take_observed(struct crashing *c) {
    if (c->scenario)
        return take_told(c);
    const char **all = arguments_all(c->arguments, "--observe");
    int r = 0;
    for (const char **o = all; *o && r == 0; o++) {
        const char *equals = strchr(*o, '=');
        r = equals ? observe(c, arena_strndup(&c->arena, *o, (size_t)(equals - *o)), equals + 1)
                   : observe_preset(c, *o);
    }
    free(all);
    for (size_t i = 0; i < sizeof(default_patterns) / sizeof(*default_patterns) && r == 0; i++)
        if (!is_observed(c, default_patterns[i][0]))
            r = observe(c, default_patterns[i][0], default_patterns[i][1]);
    return r;
}

static int take_deaths(struct crashing *c) {
    const char *text = arguments_value(c->arguments, "--deaths");
    char **words = text ? str_split(&c->arena, text, ',', NULL) : NULL;
    c->deaths = text ? 0 : c->deaths;
    for (; words && *words; words++) {
        unsigned bit = 0;
        for (int d = 0; d < CRASH_DEATHS_N; d++)
            if (str_eq(*words, crash_death_names[d]))
                bit = 1U << d;
        if (!bit)
            return verb_usage_error(c->arguments->verb,
                                    "--deaths %s: there are process, kernel and power", *words);
        c->deaths |= bit;
    }
    return 0;
}

static int take_band(struct crashing *c) {
    const char *text = arguments_value(c->arguments, "--loss-band");
    char *end = NULL;
    if (!text)
        return 0;
    c->band = strtod(text, &end);
    if (end == text || *end || !(c->band >= 0 && c->band <= 10))
        return verb_usage_error(c->arguments->verb,
                                "--loss-band %s: write a part of the loss, as in 0.02", text);
    return 0;
}

static int take_numbers(struct crashing *c) {
    const struct arguments *a = c->arguments;
    int64_t bytes = 0;
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    c->jobs = processors > 1 ? processors : 1;
    c->seed = 1;
    if (!c->budget_ns)
        c->budget_ns = 600 * INT64_C(1000000000);
    int r = arguments_number(a, "--jobs", 1, 1000, &c->jobs);
    r = r ? r : arguments_number(a, "--save", 1, 1000000, &c->saves_asked);
    r = r ? r : arguments_number(a, "--seed", 0, INT64_MAX, &c->seed);
    r = r ? r : arguments_number(a, "--max-states", 1, 10000000, &c->states_max);
    r = r ? r : arguments_number(a, "--max-bytes", 4096, INT64_MAX, &bytes);
    r = r ? r : arguments_duration(a, "--budget", &c->budget_ns);
    r = r ? r : arguments_duration(a, "--limit", &c->limit_asked_ns);
    c->max_bytes = (uint64_t)bytes;
    return r;
}

static int take_models(struct crashing *c) {
    struct err err;
    const char *fs = arguments_value(c->arguments, "--fs");
    if (fs && disk_models_parse(fs, &c->models, &err) != 0)
        return verb_usage_error(c->arguments->verb, "--fs %s", err.msg);
    return 0;
}

/* ---- where it runs ---- */

static int take_isolation(struct crashing *c) {
    static const char *const kinds[] = {"auto", "namespaces", "processes", NULL};
    const char *kind = arguments_value(c->arguments, "--isolation");
    struct err err = {0};
    kind = kind ? kind : "auto";
    if (!str_in(kind, kinds))
        return verb_usage_error(c->arguments->verb,
                                "--isolation %s: there are auto, namespaces and processes", kind);
    c->network = !arguments_value(c->arguments, "--share-network");
    c->namespaces = !str_eq(kind, "processes") && stage_check(&err) == 0;
    if (!c->namespaces && (str_eq(kind, "namespaces") || !c->placed)) {
        fprintf(stderr,
                "rankquake crashpoints: no directory can be put in the place of %s here%s%s. Write "
                "{dir} in the command where it takes that directory, as in --out={dir}\n",
                c->dir ? c->dir : "DIR", err.code ? ": " : "", err.code ? err.msg : "");
        return EXIT_SKIPPED;
    }
    return 0;
}

static const char *with_dir(struct arena *a, const char *word, const char *dir, bool *ret_found) {
    static const char place[] = "{dir}";
    const char *at;
    while ((at = strstr(word, place))) {
        *ret_found = true;
        word = arena_printf(a, "%.*s%s%s", (int)(at - word), word, dir, at + strlen(place));
    }
    return word;
}

static void put_command(struct crashing *c, const char *dir) {
    size_t n = 0;
    while (c->words[n])
        n++;
    const char **v = arena_array(&c->arena, const char *, n + 1);
    for (size_t i = 0; i < n; i++)
        v[i] = with_dir(&c->arena, c->words[i], dir, &c->placed);
    c->argv = v;
    if (c->result_asked)
        c->result = with_dir(&c->arena, c->result_asked, dir, &(bool){false});
}

void crashing_place(struct crashing *c, const char *dir) {
    c->dir = dir;
    put_command(c, dir);
}

static int take_cwd(struct crashing *c) {
    char cwd[PATH_MAX];
    struct err err;
    if (!getcwd(cwd, sizeof(cwd)))
        return err_set(&err, -errno, "find the current directory"),
               verb_broken(c->arguments->verb, &err);
    c->cwd = arena_strdup(&c->arena, cwd);
    return 0;
}

static bool is_something_else(const char *dir) {
    struct stat st;
    return dir && stat(dir, &st) == 0 && !S_ISDIR(st.st_mode);
}

static int take_command(struct crashing *c) {
    const struct arguments *a = c->arguments;
    const char *dir = arguments_value(a, "--dir");
    char cwd[PATH_MAX];
    if (!a->rest || !*a->rest)
        return verb_usage_error(
            a->verb, "there is no command and no scenario: put a command behind --, or name a "
                     "file");
    c->words = (const char *const *)a->rest;
    put_command(c, "");
    if (c->placed == (dir != NULL))
        return verb_usage_error(a->verb, dir ? "--dir and {dir} in the command: one of them"
                                             : "name the directory of the checkpoints with --dir "
                                               "DIR, or write {dir} in the command in its place");
    c->copied = arguments_value(a, "--copy");
    if (c->copied && (!dir || !file_exists(dir)))
        return verb_usage_error(a->verb, "--copy: there is no directory %s", dir ? dir : "(--dir)");
    if (dir && !*dir)
        return verb_usage_error(a->verb, "--dir is empty");
    if (is_something_else(dir))
        return verb_usage_error(
            a->verb, "--dir %s is no directory: name the one that the job saves in", dir);
    if (dir)
        c->dir = arena_printf(&c->arena, "%s%s%s", *dir == '/' ? "" : c->cwd,
                              *dir == '/' ? "" : "/", dir);
    if (dir && file_exists(dir) && realpath(dir, cwd))
        c->dir = arena_strdup(&c->arena, cwd);
    return 0;
}

static int take_record(struct crashing *c) {
    static const char *const ways[] = {"auto", "calls", "fuse", NULL};
    const char *how = arguments_value(c->arguments, "--record");
    c->record_by = how ? how : "auto";
    if (str_in(c->record_by, ways))
        return 0;
    return verb_usage_error(c->arguments->verb, "--record %s: there are auto, calls and fuse",
                            c->record_by);
}

static int take_options(struct crashing *c) {
    const struct arguments *a = c->arguments;
    const char *result = arguments_value(a, "--result");
    c->only = arguments_value(a, "--only");
    c->earlier = arguments_value(a, "--from");
    c->junit = arguments_value(a, "--junit");
    c->all = arguments_value(a, "--all");
    if (c->only && !c->earlier)
        return verb_usage_error(a->verb, "--only takes --from RUN: the directory of the run that "
                                         "named it");
    if (a->files_n && a->rest)
        return verb_usage_error(a->verb, "%s and a command behind --: one of them", a->files[0]);
    int r = take_cwd(c);
    r = r ? r : arguments_headway(a, &c->wish);
    r = r ? r : a->files_n ? crashing_take_scenario(c) : take_command(c);
    r = r ? r : take_numbers(c);
    r = r ? r : take_deaths(c);
    r = r ? r : take_band(c);
    r = r ? r : take_models(c);
    r = r ? r : take_observed(c);
    c->result = c->result_asked = result ? result : c->result_asked;
    r = r ? r : take_isolation(c);
    return r ? r : take_record(c);
}

static const char *name_of(const struct crashing *c) {
    return c->scenario ? c->scenario->name : str_base(c->words[0]);
}

static int make_out(struct crashing *c) {
    struct err err = {0};
    const char *out = arguments_value(c->arguments, "--out");
    const char *title = arena_printf(&c->arena, "crashpoints-%s", name_of(c));
    if (suite_make_dir(out ? out : "runs", title, (uint64_t)c->seed, &c->out, &err) != 0)
        return verb_broken(c->arguments->verb, &err);
    /* `clean` finds what is left where we are killed. */
    presence_own(&c->own, false);
    if (presence_write(&c->out, &c->own, &err) != 0)
        return verb_broken(c->arguments->verb, &err);
    if (!c->placed)
        return 0;
    int code = c->scenario ? crashing_write_scenario(c) : 0;
    if (code)
        return code;
    crashing_place(c, arena_printf(&c->arena, "%s/scratch/dir", c->out.path));
    return folder_make(&c->out, "scratch/dir", 0755, &err) == 0
               ? 0
               : verb_broken(c->arguments->verb, &err);
}

/* ---- the trials ---- */

/* Those in order that were not tried as anchors. */
static bool try_all(struct crashing *c) {
    size_t n = 0;
    struct trial_ask *asks = mem_array(struct trial_ask, c->states.n + 1);
    for (size_t i = 0; i < c->states.n; i++)
        if (c->trials[c->states.order[i]].how == ATTEMPT_NONE)
            asks[n++] = (struct trial_ask){c->states.order[i], "", NULL};
    struct resumption *got = mem_array(struct resumption, n + 1);
    bool through = crashing_try(c, asks, got, n);
    for (size_t i = 0; i < n; i++) {
        c->trials[asks[i].state] = got[i];
        c->not_tried += got[i].how == ATTEMPT_NONE;
        c->tells_steps |= got[i].resumed > 0;
    }
    c->tried = c->states.n - c->not_tried;
    free(got);
    free(asks);
    return through;
}

static void say_facts(struct crashing *c, int64_t took_ns) {
    const char **v = arena_array(&c->arena, const char *, 13);
    size_t n = 0;
    v[n++] = arena_printf(&c->arena,
                          "recorded by %s: %zu operations, %.1f MB written, %zu save%s, %.1f s",
                          c->recorded_by, c->record.n, (double)c->record.bytes / 1e6, c->saves_n,
                          c->saves_n == 1 ? "" : "s", (double)c->baseline.ran_ns / 1e9);
    if (c->not_memory)
        v[n++] = arena_printf(&c->arena,
                              "while it was recorded {dir} lay on the disk, not in memory: %s",
                              c->not_memory);
    v[n++] = arena_printf(&c->arena, "tried: the points %zu to %zu%s", c->from, c->to,
                          c->all || c->saves_asked || c->first == 0
                              ? ""
                              : ", those of the last two saves (--all takes all)");
    double left = c->states.left_out;
    const char *more = isinf(left) ? "countless" : arena_printf(&c->arena, "%.3g", left);
    v[n++] = arena_printf(&c->arena,
                          "%zu different states by %" PRIu64 " ways, %s more ways left out "
                          "(--max-states, --seed); %zu tried in %.1f s",
                          c->states.n, c->states.ways, more, c->tried, (double)took_ns / 1e9);
    if (barriers_missing(&c->record))
        v[n++] = "that one rank dies alone was not tried: the job tells no steps "
                 "(rankquake_step), by which it is known where the others wait for it";
    if (c->not_tried)
        v[n++] = arena_printf(&c->arena,
                              "%zu states were not tried: the budget was spent "
                              "(--budget)",
                              c->not_tried);
    if (c->record_full)
        v[n++] = arena_printf(&c->arena,
                              "the record is full (%" PRIu64 " bytes, --max-bytes): what came "
                              "after its %zu operations is not in it",
                              c->max_bytes ? c->max_bytes : (uint64_t)1 << 30, c->record.n);
    if (c->unseen && !c->record_full)
        v[n++] = "the record does not tell all that was done to the directory: a mapping without "
                 "msync, or somebody who was not watched";
    if (!c->comparable)
        v[n++] = "results are not compared: the job becomes another one each time it goes on from "
                 "the same checkpoint";
    if (!c->tells_steps)
        v[n++] = "the job does not say from which step it goes on, so lost work is not seen: "
                 "--observe resume='...([0-9]+)'";
    if (c->states.ignored)
        v[n++] = c->states.ignored_first;
    c->report.facts = v;
}

static size_t find_only(struct crashing *c) {
    for (size_t i = 0; i < c->states.n; i++)
        for (size_t k = 0; k < c->states.v[i].ways_n; k++)
            if (str_eq(crashing_name(c, i, c->states.v[i].ways[k].point), c->only))
                return i;
    return SIZE_MAX;
}

/* One trial again: a state that was kept, or one that is found again. */
static int try_only(struct crashing *c) {
    const char *slash = strchr(c->only, '/');
    struct trial_ask ask = {.state = find_only(c), .removed = ""};
    struct resumption o = {0};
    int64_t lost, point = 0;
    const char *kept = arena_printf(&c->arena, "%s/states%s", c->earlier, slash ? slash : "/");
    ask.copy = slash && slash[1] && file_exists(kept) ? kept : NULL;
    if (!slash ||
        !str_to_i64(arena_strndup(&c->arena, c->only, (size_t)(slash - c->only)), 0,
                    (int64_t)c->record.n, &point) ||
        (ask.state == SIZE_MAX && !ask.copy))
        return verb_usage_error(c->arguments->verb,
                                "--only %s: that run has no such trial, with this --seed, --fs and "
                                "--max-states",
                                c->only);
    if (!crashing_try(c, &ask, &o, 1))
        return EXIT_INTERRUPTED;
    struct crash_way way = {.point = (size_t)point};
    for (size_t i = 0; ask.state != SIZE_MAX && i < c->states.v[ask.state].ways_n; i++)
        if (c->states.v[ask.state].ways[i].point == way.point)
            way = c->states.v[ask.state].ways[i];
    enum crash_point_verdict v = crashing_judge(c, &o, &way, &lost);
    printf("%s: %s\n%s\n", c->only, crash_point_words[v], o.why);
    return crash_point_status(v) == FINDING_FAIL ? EXIT_FAIL
           : v == CRASH_POINT_UNTRIED            ? EXIT_INCONCLUSIVE
                                                 : EXIT_PASS;
}

/* ---- all ---- */

static volatile int interrupted;
static void on_signal(int signo) {
    (void)signo;
    interrupted = 1;
}

static int crash(struct crashing *c) {
    struct err err = {0};
    int code = take_options(c);
    code = code ? code : make_out(c);
    code = code ? code : crashing_record(c);
    code = code ? code : crashing_find_saves(c);
    if (code)
        return code;
    int64_t since_ns = clock_monotonic_ns();
    c->until_ns = since_ns + c->budget_ns;
    crashing_say(c, "%zu operations in %zu saves; %zu states are tried", c->record.n, c->saves_n,
                 c->states.n);
    code = crashing_try_anchors(c);
    if (code || c->only)
        return code ? code : try_only(c);
    try_all(c);
    say_facts(c, clock_monotonic_ns() - since_ns);
    crashing_conclude(c);
    BUF_FINI struct buf command = {0};
    plan_put_words(c->scenario ? c->arguments->files : c->words, &command);
    c->report.command = arena_strdup(&c->arena, buf_str(&command));
    c->report.title = arena_printf(&c->arena, "crashpoints %s", name_of(c));
    return crashing_tell(c, &err) == 0 ? c->report.exit_code
                                       : verb_broken(c->arguments->verb, &err);
}

/* Behind what the user has, ours are found, too. */
static void find_own_programs(struct crashing *c) {
    const char *path = getenv("PATH");
    setenv("PATH",
           arena_printf(&c->arena, "%s:%s", path ? path : "/usr/bin:/bin", suite_bin(&c->arena)),
           1);
}

static int main_crashpoints(const struct arguments *a) {
    struct crashing *c = mem_new(struct crashing);
    c->arguments = a;
    c->out = FOLDER_NONE;
    c->interrupted = &interrupted;
    c->band = -1;
    find_own_programs(c);
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    int code = crash(c);
    if (c->out.fd >= 0) {
        folder_remove(&c->out, "scratch", NULL);
        presence_remove(&c->out);
    }
    for (size_t i = 0; i < c->observed_n; i++)
        pattern_free(c->observed[i].pattern);
    crash_states_fini(&c->states);
    plan_free(c->plan);
    scenario_free(c->scenario);
    folder_close(&c->out);
    free(c->trials);
    arena_fini(&c->arena);
    free(c);
    return code;
}

const struct verb verb_crashpoints = {
    .name = "crashpoints",
    .usage = "crashpoints [options] SCENARIO.yaml | -- CMD...",
    .summary = "start a job from every state that a crash or a power loss could leave its "
               "checkpoints in",
    .example =
        "crashpoints --max-states 20 -- ranktrain --steps=20 --checkpoint-every=10 --samples=256 "
        "--checkpoint-dir={dir}",
    .operands = "SCENARIO|FILE",
    .options = options,
    .run = main_crashpoints,
};
