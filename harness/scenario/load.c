#include "harness/scenario/load.h"

#include "base/mem.h"
#include "harness/scenario/launcher.h"
#include "harness/scenario/expand/include.h"
#include "harness/scenario/expand/sweep.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* A run directory carries the name, so it must be one that any shell and file system takes. */
static void read_name(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    reader_text(r, k, n, out);
    size_t len = n->type == YAML_SCALAR ? strlen(n->text) : 0;
    if (len && (len > 80 || strspn(n->text, allowed) != len || strchr("-.", *n->text)))
        diagnostics_add(r->d, n->place,
                        "scenario: \"%s\" must be letters, digits, - _ or ., 80 at most; sentences "
                        "go under about",
                        n->text);
}

static void read_tags(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    struct scenario *s = out;
    if (reader_words(r, k, n, &s->tags, &s->tags_n))
        reader_no_empty(r, k, n);
}

static void read_features(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    struct scenario *s = out;
    reader_words(r, k, n, &s->features, &s->features_n);
}

static void read_launcher(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    struct job_spec *j = &((struct scenario *)out)->job;
    const char *const *words = NULL;
    size_t words_n = 0;
    if (n->type == YAML_LIST) {
        if (!reader_words(r, k, n, &words, &words_n))
            return;
        words_n = words_n && *words[0] ? words_n : 0;
    } else if (reader_is_scalar(r, k, n)) {
        words = launcher_words(r->arena, n->text, &words_n);
    } else {
        return;
    }
    const char *wrong = !words     ? "launcher: a quotation does not end"
                        : !words_n ? "launcher is empty; write rankrun or torchrun"
                                   : launcher_take(r->arena, words, j);
    if (wrong)
        diagnostics_add(r->d, n->place, "%s", wrong);
}

/* A number is that many runs. */
static void read_repeat(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    struct repeat_spec *q = &((struct scenario *)out)->repeat;
    int64_t runs = 0;
    reader_section(r, &section_repeat, n->type == YAML_MAP ? n : NULL, q);
    if (n->type != YAML_MAP && reader_number(r, k, n, &runs))
        q->runs = (int)runs;
    q->place = n->place;
    if (q->failures && q->failures >= q->runs)
        diagnostics_add(r->d, n->place, "repeat: %d of %d runs may fail, so it would always pass",
                        q->failures, q->runs);
    if (q->failures && q->until_failure)
        diagnostics_add(r->d, n->place,
                        "repeat: until: failure ends at the first failure, so failures: %d can "
                        "never be",
                        q->failures);
}

static const char *const semantics[] = {"strict", "torchrun", NULL};

#define AT(member)    .offset = offsetof(struct scenario, member)
#define PLACE(member) .place = offsetof(struct scenario, member)
#define SAID(member)  .said = offsetof(struct scenario, member)

/* A section whose default is the empty one has all of its own defaults filled in. */
const struct section section_top = {
    "scenario",
    "What a file says: a cluster, a job, which faults happen when, and what is expected.",
    (const struct key[]){
        {"scenario", "a name", "(the file's name)", "The name, also of the run directory.",
         "scenario: node-lost", read_name, AT(name), .form = "<name>"},
        {"about", "a text", NULL, "What happens here, in a sentence or two.",
         "about: A worker dies, the job goes on from its newest checkpoint.", reader_text,
         AT(about)},
        {"source", "a text", NULL, "Where it was seen: an issue, a post-mortem.",
         "source: https://github.com/pytorch/pytorch/issues/111646", reader_text, AT(source)},
        {"include", "a file or a list of files", NULL,
         "Files that this one builds on, by paths from its own folder. Maps are merged key by key. "
         "For everything else the later file wins, and this file wins over all of them. scenario, "
         "about, source and tags are not inherited. The value ~ removes a key. When a folder is "
         "run, files whose name begins with _ are left out.",
         "include: _base.yaml", include_ignore, .form = "<text> | [<text>]"},
        {"tags", "a list of words", NULL, "For choosing scenarios.", "tags: [smoke]", read_tags,
         .form = "[<scalar>]"},
        {"feature", "a list of what the host must have", NULL,
         "What the host must have. Where it lacks one of these, the scenario is skipped (exit code "
         "4) and says which: arm64, command COMMAND, cpus N, etcd, gpu, namespaces, program NAME, "
         "ptrace, root, torchrun, x86-64; `rankquake list features`.",
         "feature: [namespaces, cpus 2, command test -d /proc]", read_features,
         PLACE(features_place), .form = "[<feature>]"},
        {"seed", "a whole number", "1", "Decides every random draw. --seed overrides it.",
         "seed: 7", reader_i64, AT(seed), SAID(has_seed), .min = 0, .max = INT64_MAX,
         .form = "<int>"},
        {"semantics", "strict or torchrun",
         "(torchrun under torchrun or over its legacy etcd protocol, else strict)",
         "Whose promises the job is judged by: rankrun's (strict), or torchrun's, which are fewer.",
         "semantics: strict", reader_flag, AT(torchrun_semantics), SAID(has_semantics),
         .choices = semantics, .form = "strict | torchrun"},
        {"cluster", "a map", "", "The machines.", "cluster: {nodes: 3}", reader_under, AT(cluster),
         PLACE(cluster.place), .under = &section_cluster, .form = "<@cluster>"},
        {"launcher", "rankrun, torchrun, a command that takes torchrun's options, or a template",
         "rankrun",
         "What starts the job's workers. A template is any command that names {worker}, which is "
         "the worker's command, and as needed {nodes}, their number, {node}, this node's number, "
         "{address}, what others reach it by, and {endpoint}, a host and port where they can meet.",
         "launcher: python3 -m torch.distributed.run", read_launcher, PLACE(job.launcher_place),
         .form = "rankrun | torchrun | <text> | [<scalar>]"},
        {"job", "a map", NULL, "What is under test.", "job: {run: [python3, train.py]}",
         reader_under, AT(job), PLACE(job.place), .under = &section_job, .required = true,
         .form = "<@job>"},
        {"observe", "a map", NULL,
         "What to read from the output of a job that sends no events; `rankquake explain observe`.",
         "observe: {step: 'step ([0-9]+)'}", reader_under, AT(observe), .under = &section_observe,
         .form = "<@observe>"},
        {"timeline", "a list of faults", NULL, "The faults, and when they happen.",
         "timeline: [{when: {time: 20s}, fault: worker-kill, on: random of workers}]",
         load_timeline, .form = "[<@timeline>]"},
        {"random", "a map", NULL, "Faults drawn by the seed, added after those of the timeline.",
         "random: {faults: 12, weights: llama3, every: 4s}", random_read, .form = "<@random>"},
        {"replay", "a map", NULL,
         "Faults from a recorded trace, added after those of the timeline.",
         "replay: {trace: faults.csv, speed: 750, causes: {gpu: worker-kill}}", replay_read,
         .form = "<@replay>"},
        {"expect", "a map", "", "What is expected of the run.", "expect: {outcome: succeeded}",
         reader_under, AT(expect), PLACE(expect.place), .under = &section_expect,
         .form = "<@expect>"},
        {"checks", "a list of checks", NULL,
         "Programs of your own that judge the run; `rankquake explain checks`.",
         "checks: [{name: no-nan, program: [python3, no_nan.py]}]", load_checks,
         .form = "[<@checks>]"},
        {"limits", "a map", "", "How long things may take.", "limits: {total: 2m}", reader_under,
         AT(limits), .under = &section_limits, .form = "<@limits>"},
        {"repeat", "a whole number, or a map", "1",
         "How often the scenario is run; --repeat, --seeds and --stress override it.",
         "repeat: {runs: 20, seeds: each}", read_repeat, .min = 1, .max = 1000000,
         .form = "<int> | <@repeat>"},
        {"probe", "a map of names and probes", NULL,
         "Questions that are asked while the job runs; `rankquake explain probe`.",
         "probe: {served: {http: 'http://n0:8080/health', every: 500ms}}", load_probes,
         .form = "{<@probe>}"},
        {"vars", "a map of names and values", NULL,
         "Values with a name. \"{name}\" stands for one, as a whole value or within a text, and "
         "--set vars.name=VALUE chooses another.",
         "vars: {at: 37}", vars_read, .form = "{<any>}"},
        {"sweep", "a map of keys and lists of values, or a list of maps", NULL,
         "Values to run the scenario with: a map runs every combination, a list runs each of its "
         "items. Keys are those of --set; a key that --set gives keeps that one value.",
         "sweep: {job.max_restarts: [1, 3], timeline.0.when.step: [10, 37]}", sweep_read,
         .form = "{[<any>]} | [{<any>}]"},
        {0},
    },
    .any_of = "job include",
};

/* "scenarios/restart/worker-killed.yaml" is worker-killed. */
static const char *name_of_file(struct arena *a, const char *file) {
    const char *base = strrchr(file, '/');
    base = base ? base + 1 : file;
    char *name = arena_strndup(a, base, strcspn(base, "."));
    for (char *p = name; *p; p++)
        if (!strchr("-_", *p) && !((*p | 32) >= 'a' && (*p | 32) <= 'z') &&
            !(*p >= '0' && *p <= '9'))
            *p = '-';
    return *name && *name != '-' ? name : "scenario";
}

static void load_tree(struct reader *r, struct yaml *root) {
    if (yaml_is_null(root)) {
        diagnostics_add(r->d, (struct place){0},
                        "is empty; the smallest scenario is job: {run: [python3, train.py]}");
        return;
    }
    if (root->type != YAML_MAP) {
        diagnostics_add(r->d, root->place,
                        "a scenario is a map of keys, such as job: {...}, not %s",
                        yaml_type_name(root));
        return;
    }
    const struct yaml *suite = yaml_get(root, "suite");
    if (suite) {
        diagnostics_add(r->d, suite->key_place,
                        "this is a suite, which names scenarios; run, plan and lint take it");
        return;
    }
    for (int i = 0; r->d->set && r->d->set[i]; i++)
        override_apply(r->arena, root, r->d->set[i], i + 1, r->d);
    include_check(root, r->d);
    const char *point = sweep_settle(r->arena, root, r->d);
    vars_apply(r->arena, root, r->d);
    reader_section(r, &section_top, root, r->s);
    if (*point)
        r->s->name =
            arena_printf(r->arena, "%.80s", arena_printf(r->arena, "%s%s", r->s->name, point));
    validate(r);
}

struct scenario *scenario_load_flawed(const char *file, const char *const *set,
                                      struct diagnostics *d) {
    d->file = file;
    d->set = set;
    struct scenario *s = mem_new(struct scenario);
    s->file = arena_strdup(&s->arena, file);
    s->name = name_of_file(&s->arena, file);
    struct reader r = {.arena = &s->arena, .d = d, .s = s};
    struct yaml *root = include_read(&s->arena, file, d);
    if (root)
        load_tree(&r, root);
    s->sound = d->errors == r.line_errors;
    return s;
}

struct scenario *scenario_load(const char *file, const char *const *set, struct diagnostics *d) {
    struct scenario *s = scenario_load_flawed(file, set, d);
    return d->errors ? scenario_free(s) : s;
}

struct scenario *scenario_free(struct scenario *s) {
    if (s) {
        struct arena a = s->arena;
        arena_fini(&a);
        free(s);
    }
    return NULL;
}
