/* Loads job: the program, its workers and its checkpoints. */
#include "base/str.h"
#include "harness/crash/disk_model.h"
#include "harness/scenario/launcher.h"
#include "harness/scenario/reader.h"

#include <stddef.h>
#include <string.h>

/* "3" or "2:4". */
static void read_nnodes(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    struct job_spec *j = out;
    if (!reader_is_scalar(r, k, n))
        return;
    size_t parts;
    char **v = str_split(r->arena, n->text, ':', &parts);
    int64_t min, max;
    if (parts > 2 || !str_to_i64(v[0], 1, 1000000, &min) ||
        !str_to_i64(v[parts - 1], 1, 1000000, &max)) {
        diagnostics_add(r->d, n->place, "nnodes must be %s, not \"%s\"", k->type, n->text);
        return;
    }
    if (max < min) {
        diagnostics_add(r->d, n->place,
                        "nnodes \"%s\": the most (%lld) is less than the least "
                        "(%lld)",
                        n->text, (long long)max, (long long)min);
        return;
    }
    j->min_nodes = (int)min;
    j->max_nodes = (int)max;
}

static void read_backend(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    static const char *const choices[] = {"embedded", "etcd-v3", "c10d", "etcd-v2", "etcd", NULL};
    static const char *const later[] = {"static", NULL};
    struct job_spec *j = out;
    int i = reader_choice(r, k, n, choices, later);
    if (i >= 0)
        j->rdzv_backend = choices[i];
}

/* What the harness says to the launcher itself would only be contradicted. */
static void read_launcher_args(struct reader *r, const struct key *k, const struct yaml *n,
                               void *out) {
    struct job_spec *j = out;
    if (!reader_words(r, k, n, &j->launcher_args, &j->launcher_args_n))
        return;
    yaml_each(it, n) {
        const char *key = launcher_key_of(it->text);
        if (key)
            diagnostics_add(r->d, it->place, "launcher_args: %s is said by %s", it->text, key);
        else
            reader_check_placeholders(r, it->text, it->place);
    }
}

static void read_conf(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    struct job_spec *j = out;
    reader_pairs(r, k, n, &j->rdzv_conf, &j->rdzv_conf_n);
}

static void read_env(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    struct job_spec *j = out;
    reader_pairs(r, k, n, &j->env, &j->env_n);
    for (size_t i = 0; i < j->env_n; i++)
        if (strchr(j->env[i].key, '='))
            diagnostics_add(r->d, j->env[i].place, "env: \"%s\" is no name of a variable",
                            j->env[i].key);
}

/* A job that saves says where on its command line; what it says need not be said twice. */
static const char *find_checkpoint_dir(const struct job_spec *j) {
    static const char option[] = "--checkpoint-dir";
    for (size_t i = 0; i < j->run_n; i++) {
        const char *s = j->run[i];
        if (str_eq(s, option))
            return j->run[i + 1];
        if (str_starts(s, option) && s[sizeof(option) - 1] == '=' && s[sizeof(option)])
            return s + sizeof(option);
    }
    return NULL;
}

static void read_run(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    struct job_spec *j = out;
    if (!reader_words(r, k, n, &j->run, &j->run_n))
        return;
    if (!j->run_n || !*j->run[0]) {
        diagnostics_add(r->d, n->place, "run is empty; it must be %s", k->type);
        return;
    }
    yaml_each(it, n) reader_check_placeholders(r, it->text, it->place);
    j->checkpoint_dir = find_checkpoint_dir(j);
}

static void read_needs(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    struct job_spec *j = out;
    if (reader_words(r, k, n, &j->needs, &j->needs_n))
        reader_no_empty(r, k, n);
}

static void read_dir(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    reader_text(r, k, n, out);
    if (n->type == YAML_SCALAR)
        reader_check_placeholders(r, n->text, n->place);
}

static void check_fs(struct reader *r, const struct key *k, const struct yaml *n) {
    struct err err;
    unsigned models;
    if (disk_models_parse(n->text, &models, &err) != 0)
        diagnostics_add(r->d, n->place, "%s: %s", k->name, err.msg);
}

static void read_fs(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    struct job_spec *j = out;
    if (reader_words(r, k, n, &j->crash.fs, &j->crash.fs_n))
        yaml_each(it, n) check_fs(r, k, it);
}

static void read_shared_fs(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    struct job_spec *j = out;
    if (!reader_is_scalar(r, k, n))
        return;
    if (strchr(n->text, ','))
        diagnostics_add(r->d, n->place, "shared_fs: {shared} lies on one file system: nfs");
    else
        check_fs(r, k, n);
    j->crash.shared_fs = n->text;
}

static void read_deaths(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    static const char *const deaths[] = {"process", "kernel", "power", NULL};
    struct job_spec *j = out;
    if (!reader_words(r, k, n, &j->crash.deaths, &j->crash.deaths_n))
        return;
    yaml_each(it, n) if (!str_in(it->text, deaths)) diagnostics_add(
        r->d, it->place, "deaths: there are process, kernel and power, not \"%s\"", it->text);
}

/* A disk is one of several nodes'. */
static void read_result(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    reader_text(r, k, n, out);
    if (n->type != YAML_SCALAR)
        return;
    const char *rest = str_starts(n->text, "{shared}") ? n->text + strlen("{shared}") : n->text;
    if (strchr(rest, '{'))
        diagnostics_add(r->d, n->place,
                        "result: of what stands in braces it begins with {shared}, or has none: "
                        "\"%s\"",
                        n->text);
}

static const char *const writes[] = {"kept", "undone", NULL};

/* ---- what is built ---- */

static void check_no_braces(struct reader *r, const struct key *k, const struct yaml *n) {
    if (strchr(n->text, '{'))
        diagnostics_add(r->d, n->place,
                        "%s: nothing is filled in here, for it is built before there is a run: "
                        "\"%s\"",
                        k->name, n->text);
}

static void read_build_words(struct reader *r, const struct key *k, const struct yaml *n,
                             const char *const **ret, size_t *ret_n) {
    if (!reader_words(r, k, n, ret, ret_n))
        return;
    if (!*ret_n)
        diagnostics_add(r->d, n->place, "%s is empty; it must be %s", k->name, k->type);
    reader_no_empty(r, k, n);
    yaml_each(it, n) check_no_braces(r, k, it);
}

static void read_build_run(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    struct build_spec *b = &((struct job_spec *)out)->build;
    read_build_words(r, k, n, &b->run, &b->run_n);
    b->place = n->place;
}

static void read_inputs(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    struct build_spec *b = &((struct job_spec *)out)->build;
    read_build_words(r, k, n, &b->inputs, &b->inputs_n);
}

static bool leads_out(const char *path) {
    return *path == '/' || str_eq(path, "..") || str_starts(path, "../") || strstr(path, "/../") ||
           str_ends(path, "/..");
}

static void read_outputs(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    struct build_spec *b = &((struct job_spec *)out)->build;
    read_build_words(r, k, n, &b->outputs, &b->outputs_n);
    yaml_each(it, n) if (it->type == YAML_SCALAR && leads_out(it->text)) diagnostics_add(
        r->d, it->place,
        "outputs: %s does not lie below the directory where rankquake is started; what is built "
        "elsewhere is not kept",
        it->text);
}

#define AT(member)    .offset = offsetof(struct job_spec, member)
#define PLACE(member) .place = offsetof(struct job_spec, member)

const struct section section_job = {
    "job",
    "What is under test, and how it is launched.",
    (const struct key[]){
        {"nnodes", "a number of nodes or \"MIN:MAX\"", "(1:<nodes>)",
         "How many nodes the job needs and how many it takes; running agents beyond that are "
         "spares.",
         "nnodes: \"2:3\"", read_nnodes, PLACE(nnodes_place), .form = "<nnodes>"},
        {"workers_per_node", "a whole number", "1", "Workers on each node.", "workers_per_node: 2",
         reader_int, AT(workers_per_node), PLACE(workers_place), .min = 1, .max = 256,
         .form = "<int>"},
        {"spawns", "a whole number", "1",
         "How many ranks each worker starts by itself, without the launcher; 1: it is one.",
         "spawns: 2", reader_int, AT(spawns), .min = 1, .max = 256, .form = "<int>"},
        {"max_restarts", "a whole number", "3",
         "How often the whole job may be restarted because a worker failed; losing a node costs "
         "nothing.",
         "max_restarts: 1", reader_int, AT(max_restarts), .min = 0, .max = 1000000},
        {"launcher_args", "a list of options", NULL,
         "Further options of the launcher, put before the worker's command as they stand.",
         "launcher_args: [--role, trainer]", read_launcher_args, .form = "[<scalar>]"},
        {"rdzv_backend", "embedded, etcd-v3, c10d, etcd-v2 or etcd", "(as the store wants it)",
         "The store protocol the launcher is told to use: under rankrun embedded or, with an etcd "
         "store, etcd-v3; under torchrun c10d or etcd-v2; under both etcd, torchrun's legacy "
         "protocol. With store: none rankrun starts an etcd of its own for etcd-v3 and etcd.",
         "rdzv_backend: embedded", read_backend, PLACE(backend_place),
         .form = "embedded | etcd-v3 | c10d | etcd-v2 | etcd"},
        {"rdzv_conf", "a map of settings", NULL, "Settings of the rendezvous, as --rdzv-conf.",
         "rdzv_conf: {profile: fast}", read_conf, .form = "{<scalar>}"},
        {"run", "a list: the program and its arguments", NULL,
         "The command of every worker, executed as it stands, in the caller's environment and "
         "directory. {shared} is a directory all nodes share, {disk} the node's own, {tmp} its "
         "/tmp, {out} the run directory, {seed} the seed, {node} the node's name.",
         "run: [python3, train.py, --lr=0.1]", read_run, PLACE(run_place), .required = true,
         .form = "[<scalar>]"},
        {"build", "a map of run, inputs and outputs", NULL,
         "What is built on this host before the job can be run. It is kept under a key: as long as "
         "the inputs are the same nothing is built again, here or where the cache is taken to.",
         "build: {run: [make, train], inputs: [train.c, Makefile], outputs: [train]}", reader_under,
         .under = &section_build, .form = "<@build>"},
        {"needs", "a list of modules", NULL,
         "Python modules that the job cannot do without. Where its interpreter lacks one the "
         "scenario is skipped, and says which.",
         "needs: [torch]", read_needs, PLACE(needs_place), .form = "[<scalar>]"},
        {"env", "a map of names and values", NULL, "Added to the environment of every node.",
         "env: {OMP_NUM_THREADS: 1}", read_env, .form = "{<scalar>}"},
        {"writes", "kept or undone", "kept",
         "What becomes of files that the job writes into the directory where rankquake was "
         "started. undone: nodes see it through a layer that they share and that is gone after "
         "the run, so that each run finds it as the first one did. Where nodes are processes it is "
         "copied instead, up to 512 MB.",
         "writes: undone", reader_flag, AT(writes_undone), .choices = writes,
         .form = "kept | undone"},
        {"checkpoint", "a map", NULL,
         "Where the job saves, so that the harness can see for itself what is complete. Not needed "
         "for a job that has --checkpoint-dir on its command line and writes ranktrain's format.",
         "checkpoint: {dir: \"{shared}/ckpt\"}", reader_under, .under = &section_checkpoint,
         .form = "<@checkpoint>"},
        {0},
    },
};

const struct section section_build = {
    "build",
    "What is built on this host before the job can be run.",
    (const struct key[]){
        {"run", "a list: the program and its arguments", NULL,
         "The command, executed as it stands in the caller's environment and directory, where no "
         "build of the same inputs is kept.",
         "run: [make, train]", read_build_run, .required = true, .form = "[<scalar>]"},
        {"inputs", "a list of files, patterns or folders", NULL,
         "What it is built of; a folder is all that lies in it. The key is made of their names and "
         "contents, the command, the names of the outputs, CC, CXX, CFLAGS, CXXFLAGS, CPPFLAGS and "
         "LDFLAGS, and the machine: its architecture, C library and system. What is not named here "
         "is not seen; name the compiler too where it may change.",
         "inputs: [src, Makefile, /usr/bin/cc]", read_inputs, .required = true,
         .form = "[<scalar>]"},
        {"outputs", "a list of files", NULL,
         "What it makes, below the directory where rankquake is started. They are kept, and put "
         "into place again where they are missing or others.",
         "outputs: [train]", read_outputs, .required = true, .form = "[<scalar>]"},
        {"within", "a duration", "1h", "A command that has not ended by then is killed.",
         "within: 10m", reader_duration, AT(build.within_ns), .min = 1},
        {0},
    },
};

const struct section section_checkpoint = {
    "checkpoint",
    "Where the job saves, and how to tell what is complete.",
    (const struct key[]){
        {"dir", "a directory", NULL, "The directory of the checkpoints.", "dir: \"{shared}/ckpt\"",
         read_dir, AT(checkpoint_dir), .form = "<text>"},
        {"complete", "a command", NULL,
         "Prints the steps of the complete checkpoints in the directory it runs in, one a line; 0 "
         "is from the beginning. It is run by sh when the last worker of a round has ended, and "
         "the workers of the next wait for it; it has a minute. {shared} and the like stand in it "
         "as "
         "in run. Without it only ranktrain's format is known: where no look finds any of it, "
         "whether a round resumed from the newest is left open.",
         "complete: ./list-complete", reader_text, AT(checkpoint_complete), PLACE(complete_place),
         .form = "<text>"},
        {"result", "a file", NULL,
         "By what `rankquake crashpoints` compares two runs; {shared} may stand before it. Without "
         "it "
         "by what the job says that it has become (the event done, or observe), else by the files "
         "of its last save.",
         "result: \"{shared}/model.pt\"", read_result, AT(crash.result), .form = "<text>"},
        {"fs", "a list of ext4, xfs, posix and nfs", NULL,
         "What each node's {disk} promises to have after a loss of power, for `rankquake "
         "crashpoints`; without it ext4, xfs and posix are asked about.",
         "fs: [ext4, xfs]", read_fs, .form = "[ext4 | xfs | posix | nfs]"},
        {"shared_fs", "ext4, xfs, posix or nfs", "(nfs)",
         "The same of {shared}. nfs: a node loses what it has written itself, and has not synced "
         "or closed.",
         "shared_fs: nfs", read_shared_fs, .form = "ext4 | xfs | posix | nfs"},
        {"deaths", "a list of process, kernel and power", NULL,
         "What dies in `rankquake crashpoints`; without it all three.", "deaths: [process, power]",
         read_deaths, .form = "[process | kernel | power]"},
        {"loss_band", "a percentage such as 2%", NULL,
         "Another result counts as resumed there while the last loss differs by no more.",
         "loss_band: 2%", reader_percent, AT(crash.loss_band), .min = 1, .max = 1000,
         .form = "<percent>"},
        {"max_states", "a whole number", "(400)",
         "At most so many different states are tried there.", "max_states: 100", reader_int,
         AT(crash.max_states), .min = 1, .max = 10000000, .form = "<int>"},
        {"budget", "a duration", "(10m)", "No trial is begun there after this.", "budget: 5m",
         reader_duration, AT(crash.budget_ns), .min = 1, .form = "<duration>"},
        {0},
    },
};

/* Dashes and underscores are one, as the launcher has it. */
static bool is_option(const char *arg, const char *name) {
    size_t n = strlen(name);
    for (size_t i = 0; i < n; i++)
        if (arg[i] != name[i] && !(arg[i] == '_' && name[i] == '-' && i > 1))
            return false;
    return !arg[n] || arg[n] == '=' || !str_starts(name, "--");
}

bool scenario_gives_launcher(const struct scenario *s, const char *option) {
    for (size_t i = 0; i < s->job.launcher_args_n; i++)
        if (is_option(s->job.launcher_args[i], option))
            return true;
    return false;
}
