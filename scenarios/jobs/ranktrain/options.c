#include "scenarios/jobs/ranktrain/options.h"
#include "scenarios/jobs/ranktrain/data/dataset.h"
#include "scenarios/jobs/ranktrain/mode/mode.h"
#include "scenarios/jobs/ranktrain/model/networks.h"
#include "scenarios/jobs/ranktrain/optimizer.h"
#include "scenarios/jobs/ranktrain/shards.h"

#include "base/str.h"

#include "base/mem.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind { WHOLE, REAL, SPAN_MS, SPAN_S, PACE, TEXT, SWITCH };

struct options_option {
    const char *name, *value, *about;
    enum kind kind;
    size_t offset;
    double min, max;
};

#define AT(member) offsetof(struct ranktrain_options, member)
#define NO_BOUNDS  0, 0 /* no number */

static const struct options_option table[] = {
    {"steps", "N", "updates to make in all; 0: as many as the epochs have", WHOLE, AT(steps), 0,
     99999999},
    {"epochs", "N", "times the training data is gone through", WHOLE, AT(epochs), 1, 100000},
    {"samples", "N", "train on the first N images alone; 0: all", WHOLE, AT(samples), 0, 99999999},
    {"checkpoint-dir", "DIR", "save there and resume from there", TEXT, AT(checkpoint_dir),
     NO_BOUNDS},
    {"checkpoint-every", "K|Kep", "steps between two checkpoints, or epochs: 1ep", PACE,
     AT(checkpoint_every), 1, 99999999},
    {"checkpoint-async", NULL, "save beside the training; the next save waits for the one before",
     SWITCH, AT(checkpoint_async), NO_BOUNDS},
    {"checkpoint-sharded", NULL, "every rank saves its part of weights and moments", SWITCH,
     AT(checkpoint_sharded), NO_BOUNDS},
    {"fresh", NULL, "begin anew where there are checkpoints and none of them can be used", SWITCH,
     AT(fresh), NO_BOUNDS},
    {"grace", "SECONDS", "asked to end, ranks that share the state save within it, or not", SPAN_S,
     AT(grace_ns), 0.001, 86400},
    {"recover", "restart|in-process",
     "when a peer is lost: end, to be started again, or meet again without ending", TEXT,
     AT(recover), NO_BOUNDS},
    {"scale-lr", "WORLD", "lr is for so many workers, and grows with their number; 0: for any",
     WHOLE, AT(scale_lr), 0, 100000},
    {"eval-batch-size", "N", "evaluate: images at once", WHOLE, AT(eval_batch_size), 1, 1000000},
    {"interval", "SECONDS", "evaluate: look at the directory so often, where nothing is told of it",
     SPAN_S, AT(interval_ns), 0.001, 86400},
    {"checkpoint-keep", "N", "checkpoints to keep, the newest", WHOLE, AT(checkpoint_keep), 1,
     1000000},
    {"dataset", "NAME",
     "fashion-mnist unless said; cifar10, folder, mnist, or generated: made-up images", TEXT,
     AT(dataset), NO_BOUNDS},
    {"data-dir", "DIR", "where its files are, as they come or as prepare leaves them", TEXT,
     AT(data_dir), NO_BOUNDS},
    {"image-size", "N", "folder: images are made N pixels wide and high; 32 unless said", WHOLE,
     AT(image_size), 8, 1024},
    {"loaders", "N", "processes that read images ahead; 0: the rank reads them itself", WHOLE,
     AT(loaders), 0, 64},
    {"drop-last", NULL, "leave out what is left of an epoch, less than a batch", SWITCH,
     AT(drop_last), NO_BOUNDS},
    {"seed", "N", "decides the first weights and the order of samples", WHOLE, AT(seed), 0, 1e15},
    {"mode", "NAME", "how the ranks share the work: ddp unless said, dp, fsdp, manual, ps, zero",
     TEXT, AT(mode), NO_BOUNDS},
    {"devices", "N", "of --mode=dp: split each batch over N devices", WHOLE, AT(devices), 1,
     SHARDS_MAX},
    {"overlap", NULL, "of --mode=ddp: sum the gradients of layers while others are computed",
     SWITCH, AT(overlap), NO_BOUNDS},
    {"ps-async", NULL, "of --mode=ps: the server waits for no worker that is late", SWITCH,
     AT(ps_async), NO_BOUNDS},
    {"backup-workers", "N", "of --ps-async: go on without the last N gradients of a step", WHOLE,
     AT(backup_workers), 0, SHARDS_MAX},
    {"num-aggregate", "N",
     "of --mode=ps: gradients of a step that are waited for, the others are backups; 0: all", WHOLE,
     AT(num_aggregate), 0, SHARDS_MAX},
    {"device-memory", "BYTES", "a device has no more than that; 0: as much as there is", WHOLE,
     AT(device_memory), 0, 1e15},
    {"spawn", "N", "start N ranks on this machine, which meet at localhost:29500", WHOLE, AT(spawn),
     1, SHARDS_MAX + 1},
    {"network", "NAME",
     "lenet unless said; resnet18, resnet32, resnet50, resnet110, resnet152, vgg11, vgg16", TEXT,
     AT(network), NO_BOUNDS},
    {"batch-size", "N", "samples of a step, of all ranks together; 96 unless said", WHOLE,
     AT(batch_size), 1, SHARDS_MAX *LAYER_BATCH_MAX},
    {"shards", "N", "parts of a batch, at most one rank for each; 12 unless said", WHOLE,
     AT(shards), 1, SHARDS_MAX},
    {"width", "N", "channels of its first stage, fewer make it smaller; 0: as published", WHOLE,
     AT(width), 0, MODEL_WIDTH},
    {"optimizer", "sgd|adam", "what updates the weights, sgd unless said", TEXT, AT(optimizer),
     NO_BOUNDS},
    {"lr", "X", "learning rate; 0.05 for sgd and 0.001 for adam unless said", REAL, AT(lr), 0,
     1000},
    {"momentum", "X", "of sgd, below 1", REAL, AT(momentum), 0, 0.999999},
    {"compute-ms", "MS", "a step computes for at least so long, like a larger model", SPAN_MS,
     AT(compute_ns), 0, 3600e3},
    {"collective-timeout", "SECONDS", "a collective that takes longer has failed", SPAN_S,
     AT(collective_ns), 0.001, 86400},
    {"log-every", "N", "steps between two lines of progress; 0: none", WHOLE, AT(log_every), 0,
     99999999},
    {"device", "auto|cpu|cuda", "what computes, cpu unless said; auto: a GPU if there is one", TEXT,
     AT(device), NO_BOUNDS},
    {"device-timeout", "SECONDS", "a GPU that takes longer for one computation has failed", SPAN_S,
     AT(device_ns), 0.001, 86400},
    {"dist-backend", "tcp|nccl", "what the ranks sum over; ddl, gloo: other names of tcp", TEXT,
     AT(dist_backend), NO_BOUNDS},
    {"dist-url", "env://", "where the ranks meet: MASTER_ADDR and MASTER_PORT", TEXT, AT(dist_url),
     NO_BOUNDS},
    {"help", NULL, "print this", SWITCH, AT(help), NO_BOUNDS},
    {"man", NULL, "print this as a manual page: ranktrain --man | man -l -", SWITCH, AT(man),
     NO_BOUNDS},
    {"complete", "bash|fish|zsh", "print what makes this shell complete command lines", TEXT,
     AT(complete), NO_BOUNDS},
    {"version", NULL, "print the version", SWITCH, AT(version), NO_BOUNDS},
};
enum { OPTIONS = sizeof(table) / sizeof(*table) };

/* What other programs call the same. With a value of its own it is a switch: --NAME, --NAME= and
 * --NAME=true set it, --NAME=false does not. */
static const struct {
    const char *name, *means;
} aliases[] = {
    {"arch", "network"},           {"enable-gpu", "device=cuda"}, {"eval-freq", "checkpoint-every"},
    {"log-interval", "log-every"}, {"max-steps", "steps"},        {"model-dir", "checkpoint-dir"},
    {"no-cuda", "device=cpu"},     {"num-workers", "loaders"},    {"train-dir", "checkpoint-dir"},
    {"use-zero", "mode=zero"},     {"workers", "loaders"},
};
enum { ALIASES = sizeof(aliases) / sizeof(*aliases) };

static size_t put_aliases(char *ret, size_t size) {
    size_t n =
        (size_t)snprintf(ret, size,
                         "\nNames that other programs have for them are taken too, with _ as "
                         "well as -:\n");
    for (size_t i = 0; i < ALIASES && n < size; i++)
        n += (size_t)snprintf(ret + n, size - n, "  --%-28s --%s\n", aliases[i].name,
                              aliases[i].means);
    return n;
}

void options_manual(char *ret, size_t size) {
    size_t n = 0;
    for (size_t i = 0; i < OPTIONS && n < size; i++) {
        char left[64];
        snprintf(left, sizeof(left), "--%s%s%s", table[i].name, table[i].value ? "=" : "",
                 table[i].value ? table[i].value : "");
        n += (size_t)snprintf(ret + n, size - n, "  %-30s %s\n", left, table[i].about);
    }
    if (n < size)
        put_aliases(ret + n, size - n);
}

size_t options_list(struct manual_option *ret, char (*ret_names)[OPTIONS_NAME], size_t max) {
    size_t n = 0;
    for (; n < OPTIONS && n < max; n++) {
        snprintf(ret_names[n], OPTIONS_NAME, "--%s", table[n].name);
        ret[n] = (struct manual_option){
            .name = ret_names[n], .value = table[n].value, .text = table[n].about};
    }
    return n;
}

static int set_number(const struct options_option *o, void *at, const char *value,
                      struct err *err) {
    char *end;
    errno = 0;
    double x = strtod(value, &end);
    double unit = o->kind == SPAN_MS ? 1e6 : 1e9;
    if (o->kind == SPAN_S && strcmp(end, "ms") == 0) {
        x /= 1000;
        end += 2;
    } else if (o->kind == SPAN_S && strcmp(end, "s") == 0)
        end++;
    bool epochs = o->kind == PACE && strcmp(end, "ep") == 0,
         whole = o->kind == WHOLE || o->kind == PACE;
    if (epochs)
        end += 2;
    if (end == value || *end || errno || !(x >= o->min && x <= o->max) || (whole && x != floor(x)))
        return err_say(err, -EINVAL, "--%s=%s: expected a %snumber from %.10g to %.10g%s", o->name,
                       value, whole ? "whole " : "", o->min, o->max,
                       o->kind == PACE ? ", of steps, or of epochs with ep behind it" : "");
    if (o->kind == REAL)
        *(double *)at = x;
    else
        *(int64_t *)at = whole ? (int64_t)(epochs ? -x : x) : (int64_t)(x * unit);
    return 0;
}

static int set(const struct options_option *o, struct ranktrain_options *opt, const char *value,
               struct err *err) {
    void *at = (char *)opt + o->offset;
    if (o->kind == SWITCH) {
        *(bool *)at = true;
        return 0;
    }
    if (!*value)
        return err_say(err, -EINVAL, "--%s is empty: expected %s", o->name, o->value);
    if (o->kind != TEXT)
        return set_number(o, at, value, err);
    *(const char **)at = value;
    return 0;
}

static const struct options_option *find(const char *name, size_t length) {
    for (size_t i = 0; i < OPTIONS; i++)
        if (strlen(table[i].name) == length && strncmp(table[i].name, name, length) == 0)
            return &table[i];
    return NULL;
}

enum { NAME = 64 };

/* The name of an argument that begins with two hyphens, with hyphens inside. Returns its length. */
static size_t name_of(const char *arg, char ret[NAME]) {
    size_t length = strcspn(arg + 2, "=");
    snprintf(ret, NAME, "%.*s", (int)(length < NAME ? length : NAME - 1), arg + 2);
    for (char *p = ret; *p; p++)
        *p = *p == '_' ? '-' : *p;
    return length;
}

static int say_unknown(const char *arg, const char *name, struct err *err) {
    const char *names[OPTIONS + ALIASES + 1] = {0}, *near;
    for (size_t i = 0; i < OPTIONS; i++)
        names[i] = table[i].name;
    for (size_t i = 0; i < ALIASES; i++)
        names[OPTIONS + i] = aliases[i].name;
    near = str_nearest(name, names);
    return err_say(err, -EINVAL,
                   near ? "unknown option '%s': did you mean --%s?"
                        : "unknown option '%s': see ranktrain --help",
                   arg, near);
}

static bool is_no(const char *value) {
    return strcmp(value, "false") == 0 || strcmp(value, "no") == 0 || strcmp(value, "0") == 0 ||
           strcmp(value, "False") == 0;
}

/* What an alias means. When it has a value of its own that is set, unless value says no; *ret is
 * NULL then, also for what is no alias. */
static int take_alias(const char *name, const char *value, struct ranktrain_options *opt,
                      const struct options_option **ret, struct err *err) {
    *ret = NULL;
    for (size_t i = 0; i < ALIASES; i++) {
        const char *means = aliases[i].means, *preset = strchr(means, '=');
        if (strcmp(aliases[i].name, name) != 0)
            continue;
        *ret = find(means, strcspn(means, "="));
        if (!preset)
            return 0;
        int r = value && is_no(value) ? 0 : set(*ret, opt, preset + 1, err);
        *ret = NULL;
        return r < 0 ? r : 1;
    }
    return 0;
}

/* A directory without an option's name in front of it, as the programs of torchvision's users take
 * it: the data. */
static int take_directory(const char *arg, struct ranktrain_options *opt, struct err *err) {
    if (*arg == '-' || opt->data_dir)
        return err_say(err, -EINVAL, "unexpected argument '%s': see ranktrain --help", arg);
    opt->data_dir = arg;
    return 0;
}

/* Takes argv[*i], and argv[*i + 1] when that is its value. */
static int take(int argc, char **argv, int *i, struct ranktrain_options *opt, struct err *err) {
    const char *arg = argv[*i], *value;
    char name[NAME];
    if (strncmp(arg, "--", 2) != 0)
        return take_directory(arg, opt, err);
    size_t length = name_of(arg, name);
    value = arg[2 + length] ? arg + 2 + length + 1 : NULL;
    const struct options_option *o = find(name, strlen(name));
    int r = o ? 0 : take_alias(name, value, opt, &o, err);
    if (r != 0)
        return r < 0 ? r : 0;
    if (!o)
        return say_unknown(arg, name, err);
    if (o->kind == SWITCH && value)
        return err_say(err, -EINVAL, "--%s takes no value", o->name);
    if (o->kind != SWITCH && !value && *i + 1 < argc)
        value = argv[++*i];
    if (o->kind != SWITCH && !value)
        return err_say(err, -EINVAL, "--%s needs a value: %s", o->name, o->value);
    return set(o, opt, value, err);
}

/* *at keeps its value when the variable is not set. */
static int variable(const char *name, int64_t min, int64_t max, int64_t *at, struct err *err) {
    const char *s = getenv(name);
    char *end;
    if (!s || !*s)
        return 0;
    errno = 0;
    long long v = strtoll(s, &end, 10);
    if (*end || errno || v < min || v > max)
        return err_say(err, -EINVAL, "%s=%s: expected a whole number from %lld to %lld", name, s,
                       (long long)min, (long long)max);
    *at = v;
    return 0;
}

static int read_environment(struct ranktrain_options *o, struct err *err) {
    int64_t rank = -1, world = -1, local_rank = 0, local_world = 0, port = 0;
    const char *run_id = getenv("TORCHELASTIC_RUN_ID");
    if (variable("RANK", 0, INT32_MAX, &rank, err) < 0 ||
        variable("WORLD_SIZE", 1, INT32_MAX, &world, err) < 0 ||
        variable("LOCAL_RANK", 0, INT32_MAX, &local_rank, err) < 0 ||
        variable("LOCAL_WORLD_SIZE", 1, INT32_MAX, &local_world, err) < 0 ||
        variable("MASTER_PORT", 1, 65535, &port, err) < 0 ||
        variable("RANKRUN_ROUND", 0, INT64_MAX, &o->round, err) < 0 ||
        variable("TORCHELASTIC_RESTART_COUNT", 0, INT64_MAX, &o->restart_count, err) < 0)
        return -EINVAL;
    if ((rank < 0) != (world < 0))
        return err_say(err, -EINVAL, "%s is set, %s is not: a launcher sets both",
                       rank < 0 ? "WORLD_SIZE" : "RANK", rank < 0 ? "RANK" : "WORLD_SIZE");
    if (rank >= 0 && o->spawn)
        return err_say(err, -EINVAL,
                       "--spawn=%lld starts ranks of its own, and RANK=%lld says that this is one: "
                       "leave it to the launcher",
                       (long long)o->spawn, (long long)rank);
    o->rank = rank < 0 ? 0 : (int)rank;
    o->world = o->spawn ? (int)o->spawn : world < 0 ? 1 : (int)world;
    o->local_rank = (int)local_rank;
    if (o->rank >= o->world)
        return err_say(err, -EINVAL, "RANK=%d is not below WORLD_SIZE=%d", o->rank, o->world);
    if (local_world && (local_rank >= local_world || local_world > o->world))
        return err_say(err, -EINVAL,
                       "LOCAL_RANK=%lld, LOCAL_WORLD_SIZE=%lld and WORLD_SIZE=%d contradict each "
                       "other: start ranktrain by a launcher",
                       (long long)local_rank, (long long)local_world, o->world);
    if (o->world - mode_find(o->mode, err)->serves > o->shards)
        return err_say(
            err, -EINVAL,
            "WORLD_SIZE=%d: at most %lld workers, for the batch has %lld shards; --shards "
            "makes more of it",
            o->world, (long long)o->shards, (long long)o->shards);
    o->master_addr = getenv("MASTER_ADDR");
    o->master_port = (int)port;
    if (o->world > 1 && !o->spawn && (!o->master_addr || !*o->master_addr || !port))
        return err_say(err, -EINVAL,
                       "WORLD_SIZE=%d needs MASTER_ADDR and MASTER_PORT: start ranktrain by a "
                       "launcher",
                       o->world);
    snprintf(o->run_id, sizeof(o->run_id), "%s", run_id ? run_id : "");
    return 0;
}

/* How many gradients are enough, as other parameter servers put it: who waits for fewer than there
 * are workers is asynchronous, with the rest of them as backups. */
static int take_aggregate(struct ranktrain_options *o, struct err *err) {
    int workers = o->world - 1;
    if (!o->num_aggregate || o->backup_workers)
        return !o->num_aggregate ? 0
                                 : err_say(err, -EINVAL,
                                           "--num-aggregate and --backup-workers say the same: "
                                           "leave one out");
    if (o->num_aggregate > workers)
        return err_say(err, -EINVAL, "--num-aggregate=%lld: there are %d workers",
                       (long long)o->num_aggregate, workers);
    o->backup_workers = workers - o->num_aggregate;
    o->ps_async = o->ps_async || o->backup_workers > 0;
    return 0;
}

/* What the mode says of the world and of other options. */
static int check_mode(struct ranktrain_options *o, struct err *err) {
    const struct mode *m = mode_find(o->mode, err);
    if (m->alone && o->world > 1)
        return err_say(err, -EINVAL,
                       "WORLD_SIZE=%d: --mode=%s is one process with several --devices; start it "
                       "alone",
                       o->world, m->name);
    if (o->devices > 1 && !m->alone)
        return err_say(err, -EINVAL, "--devices=%lld: only with --mode=dp", (long long)o->devices);
    if (m->serves && o->checkpoint_sharded)
        return err_say(err, -EINVAL,
                       "--mode=%s: rank 0 alone has the state: leave out --checkpoint-sharded",
                       m->name);
    if (m->alone && strcmp(o->recover, "in-process") == 0)
        return err_say(err, -EINVAL,
                       "--mode=%s is one process and loses no peer: leave out --recover=in-process",
                       m->name);
    if ((o->ps_async || o->num_aggregate || o->backup_workers) && !m->serves)
        return err_say(err, -EINVAL, "--%s: only with --mode=ps",
                       o->ps_async        ? "ps-async"
                       : o->num_aggregate ? "num-aggregate"
                                          : "backup-workers");
    int r = take_aggregate(o, err);
    return r == 0 && m->check ? m->check(o, err) : r;
}

static bool is_one_of(const char *value, const char *const *names) {
    while (*names && strcmp(*names, value) != 0)
        names++;
    return *names != NULL;
}

/* Without a word on shards: twelve, or as many as divide the batch. */
static int cut_batch(struct ranktrain_options *o, struct err *err) {
    bool said = o->shards > 0;
    o->batch_size = o->batch_size ? o->batch_size : said ? o->shards * LAYER_BATCH : SHARDS_BATCH;
    for (int64_t n = SHARDS; n > 0 && !o->shards; n--)
        o->shards = o->batch_size % n == 0 ? n : 0;
    if (o->batch_size % o->shards == 0 && o->batch_size / o->shards <= LAYER_BATCH_MAX)
        return 0;
    return err_say(
        err, -EINVAL,
        "--batch-size=%lld cannot be cut into %lld shards: each takes as many samples as "
        "the others, at most %d; choose another --shards",
        (long long)o->batch_size, (long long)o->shards, LAYER_BATCH_MAX);
}

/* A name of another system's for the default is taken, and said to be that. */
static void rename_backend(struct ranktrain_options *o) {
    static const char *const others[] = {"ddl", "gloo", NULL};
    if (!is_one_of(o->dist_backend, others))
        return;
    o->renamed_backend = o->dist_backend;
    o->dist_backend = "tcp";
}

static int check(const struct ranktrain_options *o, struct err *err) {
    static const char *const devices[] = {"auto", "cpu", "cuda", NULL};
    static const char *const backends[] = {"tcp", "nccl", NULL};
    static const char *const recoveries[] = {"restart", "in-process", NULL};
    if (!is_one_of(o->device, devices))
        return err_say(err, -EINVAL, "--device=%s: expected auto, cpu or cuda", o->device);
    if (!is_one_of(o->recover, recoveries))
        return err_say(err, -EINVAL, "--recover=%s: expected restart or in-process", o->recover);
    if (!is_one_of(o->dist_backend, backends))
        return err_say(err, -EINVAL, "--dist-backend=%s: expected tcp or nccl", o->dist_backend);
    if (!mode_find(o->mode, err) || !dataset_find(o->dataset, err) ||
        !network_find(o->network, err) || !optimizer_find(o->optimizer, err))
        return -EINVAL;
    if (o->samples && o->samples < o->batch_size)
        return err_say(err, -EINVAL, "--samples=%lld: a step takes %lld", (long long)o->samples,
                       (long long)o->batch_size);
    if (strcmp(o->dist_url, "env://") != 0)
        return err_say(err, -EINVAL,
                       "--dist-url=%s: expected env://; the launcher puts the address into "
                       "MASTER_ADDR and MASTER_PORT",
                       o->dist_url);
    if (strcmp(o->dist_backend, "nccl") == 0 && strcmp(o->device, "cpu") == 0)
        return err_say(err, -EINVAL,
                       "--dist-backend=nccl sums on GPUs: add --device=cuda, or use "
                       "--dist-backend=tcp");
    return 0;
}

/* What OPTIONS_VARIABLE says comes before the command line, which wins. Options point into its words,
 * which are kept until it is read again. */
static int take_variable(struct ranktrain_options *o, struct err *err) {
    enum { WORDS = 32 };
    static char *text;
    char *words[WORDS], *rest = NULL;
    const char *said = getenv(OPTIONS_VARIABLE);
    int n = 0;
    if (!said || !*said)
        return 0;
    free(text);
    text = mem_strdup(said);
    for (char *w = strtok_r(text, " ", &rest); w; w = strtok_r(NULL, " ", &rest)) {
        if (n == WORDS)
            return err_say(err, -E2BIG, OPTIONS_VARIABLE " has more than %d words", WORDS);
        words[n++] = w;
    }
    for (int i = 0; i < n; i++) {
        int r = take(n, words, &i, o, err);
        if (r < 0)
            return err_wrap(err, OPTIONS_VARIABLE ": ");
    }
    return 0;
}

int options_parse(int argc, char **argv, struct ranktrain_options *ret, struct err *err) {
    struct ranktrain_options o = {
        .epochs = 3,
        .checkpoint_every = 100,
        .checkpoint_keep = 3,
        .recover = "restart",
        .grace_ns = INT64_C(10000000000),
        .eval_batch_size = LAYER_BATCH,
        .log_every = 25,
        .seed = 1,
        .dataset = getenv("RANKTRAIN_DATASET"),
        .device = "cpu",
        .dist_backend = "tcp",
        .dist_url = "env://",
        .mode = "ddp",
        .devices = 1,
        .network = "lenet",
        .optimizer = "sgd",
        .lr = -1,
        .momentum = 0.9,
        .collective_ns = INT64_C(10000000000),
        .device_ns = INT64_C(60000000000),
    };
    int r = take_variable(&o, err);
    for (int i = 1; r == 0 && i < argc; i++)
        r = take(argc, argv, &i, &o, err);
    if (r < 0)
        return r;
    if (!o.dataset || !*o.dataset)
        o.dataset = dataset_guess(o.data_dir);
    rename_backend(&o);
    r = o.help || o.version ? 0 : cut_batch(&o, err);
    if (r == 0 && !o.help && !o.version)
        r = check(&o, err);
    if (r == 0 && !o.help && !o.version)
        r = read_environment(&o, err);
    if (r == 0 && !o.help && !o.version)
        r = check_mode(&o, err);
    if (r == 0)
        *ret = o;
    return r;
}
