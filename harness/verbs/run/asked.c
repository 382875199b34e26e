#include "harness/verbs/run/asked.h"

#include "base/str.h"
#include "base/sys/clock.h"
#include "harness/play/untrusted.h"
#include "harness/verbs/typed.h"
#include "harness/verbs/wanted_hosts.h"
#include "reports/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool take_seeds(struct run_request *q, const char *value) {
    char **range = str_split(&q->arena, value, ':', NULL);
    int64_t a, b;
    bool two = range[1] && !range[2];
    if (!str_to_i64(range[0], 0, INT64_MAX, &a) || (range[1] && !two))
        return false;
    if (!str_to_i64(two ? range[1] : range[0], a, INT64_MAX, &b))
        return false;
    q->selection.seed_first = (uint64_t)a;
    q->selection.seed_last = (uint64_t)b;
    q->selection.has_seed = true;
    return true;
}

const struct verb_option asked_options[] = {
    {"--seed", "N", "the seed of all draws (default: the file's, else 1)"},
    {"--seeds", "A:B", "once for each seed from A to B"},
    {"--repeat", "N",
     "N times with the same seed; prints how many failed, and the interval of the rate"},
    {"--stress", NULL, "repeat until a run fails, at most --repeat times"},
    {"--jobs", "N", "N runs side by side; scenarios with bounds on times run alone"},
    {"--budget", "TIME",
     "run as many as fit into TIME (5m), the fastest most telling first, and name what is left "
     "out"},
    {"--shard", "K/N", "only the K-th of N parts, which take about as long by measured times"},
    {"--times", "FILE", "the times that --shard goes by, the same for all shards: cache times"},
    {"--changed", "FILE",
     "only what FILE, which has changed, may concern; may be repeated, and is - for standard "
     "input: git diff "
     "--name-only"},
    {"--max-concurrent-faults", "N",
     "at most N faults in force at once (limits.faults); one more does not fire"},
    {"--set", "KEY=VALUE", "overrides a value of the file, job.max_restarts=2; may be repeated"},
    {"--tag", "TAG",
     "only scenarios with this tag, or with !TAG those without it; may be repeated"},
    {"--launcher", "LAUNCHER",
     "rankrun, torchrun, a command that takes torchrun's options, or a template with {worker}"},
    {"--observe", "KIND=REGEX",
     "reads events from what workers print, step='step ([0-9]+)'; or a preset: lightning"},
    {"--rootfs", "DIR", "the root file system of the nodes; the same as --set cluster.rootfs=DIR"},
    {"--isolation", "KIND",
     "how nodes are kept apart: auto, namespaces or processes; as --set cluster.isolation=KIND"},
    WANTED_HOSTS_OPTIONS,
    {"--out", "DIR", "where to make run directories (default: runs)"},
    {"--ci", NULL,
     "as a step of a CI server: reports of all runs in --out, its summary and annotations, no "
     "secrets"},
    {"--format", "REPORT", "what to print at the end (default: terminal); see list reports"},
    {"--keep", NULL,
     "keep scratch directories; at a terminal, keep the cluster up too until you press Enter"},
    {"--pcap", NULL,
     "write the frames of each node's wire to pcap/NODE.pcapng of the run, 64 MiB each at most"},
    {"--interactive", NULL,
     "take faults by hand while it runs: from standard input, and from watch"},
    {"--paused", NULL, "the same, and stand still with all nodes up until somebody says go"},
    {"--fresh", NULL, "make the control run again, whatever the cache holds"},
    {"--strict", NULL, "inconclusive and skipped count as failed"},
    {"--bisect", NULL,
     "as the command of git bisect run: 125 (skip) for what stayed open or was skipped, above 127 "
     "for what must stop it"},
    {"--untrusted", NULL,
     "for files that somebody else wrote: start nothing of them outside of nodes; needs --rootfs"},
    VERB_HEADWAY,
    {"--beside", NULL, NULL},  /* jobs.h: somebody else speaks for all runs */
    {"--control", NULL, NULL}, /* beside.h: its control run alone */
    {"--alone", NULL, NULL},   /* suite.h: its history is all that is wanted */
    {0},
};

static int take_numbers(struct run_request *q, const struct arguments *a) {
    const char *seed = arguments_value(a, "--seed"), *seeds = arguments_value(a, "--seeds");
    const char *repeat = arguments_value(a, "--repeat");
    if (seed && (strchr(seed, ':') || !take_seeds(q, seed)))
        return verb_usage_error(a->verb, "--seed %s: write a whole number, 0 or more", seed);
    if (seeds && (!strchr(seeds, ':') || !take_seeds(q, seeds)))
        return verb_usage_error(a->verb, "--seeds %s: write FIRST:LAST, as in 1:20", seeds);
    int r = arguments_number(a, "--repeat", 1, 1000000, &q->repeat);
    if (r == 0)
        r = arguments_number(a, "--jobs", 1, 1000, &q->jobs);
    if (r)
        return r;
    q->stress = arguments_value(a, "--stress");
    if (q->stress && q->jobs > 1)
        return verb_usage_error(a->verb, "--stress runs one after the other; leave --jobs %s out",
                                arguments_value(a, "--jobs"));
    if (q->stress && !repeat)
        q->repeat = INT64_MAX;
    q->selection.counted = repeat || q->stress || seeds;
    return 0;
}

static int take_budget(struct run_request *q, const struct arguments *a) {
    q->began_ns = clock_monotonic_ns();
    const char *shard = arguments_value(a, "--shard");
    if (shard && !shard_read(shard, &q->shard))
        return verb_usage_error(a->verb, "--shard %s: write PART/PARTS, as in 2/5", shard);
    const char *times = arguments_value(a, "--times");
    struct err err = {0};
    if (times && !shard)
        return verb_usage_error(a->verb, "--times is what --shard goes by; say which shard");
    if (times && shard_read_times(&q->shard, times, &err) < 0)
        return verb_usage_error(a->verb, "--times: %s", err.msg);
    return arguments_duration(a, "--budget", &q->budget_ns);
}

static int take_changed(struct run_request *q, const struct arguments *a) {
    const char **names = arguments_all(a, "--changed");
    struct err err = {0};
    bool piped = false;
    int r = 0;
    for (size_t i = 0; names[i] && r == 0; i++) {
        bool is_input = str_eq(names[i], "-");
        if (is_input && (piped || q->suite.interactive))
            r = err_say(&err, -EINVAL,
                        piped ? "standard input is read once; write - once"
                              : "faults by hand come from standard input; name the "
                                "files instead of -");
        else
            r = is_input ? changed_read(&q->changed, STDIN_FILENO, &err)
                         : changed_add(&q->changed, names[i], &err);
        piped |= is_input;
    }
    free(names);
    if (r == 0 && q->changed.asked && arguments_value(a, "--bisect"))
        r = err_say(
            &err, -EINVAL,
            "with --bisect a commit whose scenarios are left out would count as good; leave "
            "one of the two out");
    return r ? verb_usage_error(a->verb, "--changed: %s", err.msg) : 0;
}

/* Each host is one run's at a time. */
static int take_hosts(struct run_request *q, const struct arguments *a) {
    if (!wanted_hosts_asked(a))
        return 0;
    if (arguments_value(a, "--jobs"))
        return verb_usage_error(a->verb,
                                "--provider: hosts are one run's at a time; leave --jobs out");
    return wanted_hosts_add(a, &q->arena, &q->sets);
}

/* Those side by side are processes of their own, which would have to be told the same. */
static int take_trust(struct run_request *q, const struct arguments *a) {
    q->selection.untrusted = arguments_value(a, "--untrusted");
    q->files.trusted = !q->selection.untrusted;
    if (q->selection.untrusted && arguments_value(a, "--jobs"))
        return verb_usage_error(a->verb, "--untrusted runs one after the other; leave --jobs out");
    if (q->selection.untrusted)
        q->sets = untrusted_sets(&q->arena, a->verb, q->sets);
    q->suite.sets = (const char *const *)q->sets;
    return q->sets ? 0 : EXIT_USAGE_ERROR;
}

static int take_options(struct run_request *q, const struct arguments *a) {
    const char *out = arguments_value(a, "--out"), *format = arguments_value(a, "--format");
    q->suite.out = out ? out : "runs";
    q->suite.format = format ? format : "terminal";
    q->suite.keep = arguments_value(a, "--keep");
    q->suite.pcap = arguments_value(a, "--pcap");
    q->suite.strict = arguments_value(a, "--strict");
    q->suite.paused = arguments_value(a, "--paused");
    q->suite.interactive = q->suite.paused || arguments_value(a, "--interactive");
    if (q->suite.interactive && arguments_value(a, "--jobs"))
        return verb_usage_error(a->verb,
                                "--interactive is for one run at a time; leave --jobs out");
    q->suite.beside = arguments_value(a, "--beside");
    q->suite.alone = arguments_value(a, "--alone");
    q->suite.control = arguments_value(a, "--control");
    q->suite.fresh = arguments_value(a, "--fresh");
    q->ci = arguments_value(a, "--ci");
    q->sets = arguments_sets(a, &q->arena);
    q->tags = arguments_all(a, "--tag");
    q->selection.tags = (const char *const *)q->tags;
    int r = take_hosts(q, a);
    r = r ? r : take_trust(q, a);
    if (r)
        return r;
    for (const char **s = q->sets; *s; s++)
        if (!strchr(*s, '='))
            return verb_usage_error(a->verb, "--set %s: write KEY=VALUE, as in job.max_restarts=2",
                                    *s);
    if (!report_find(q->suite.format))
        return verb_usage_error(a->verb,
                                "--format %s: there is no such report; see rankquake list reports",
                                q->suite.format);
    r = arguments_headway(a, &q->suite.wish);
    r = r ? r : take_budget(q, a);
    r = r ? r : take_changed(q, a);
    return r ? r : take_numbers(q, a);
}

int asked_read(struct run_request *q, const struct arguments *a) {
    int r = take_options(q, a);
    for (size_t i = 0; i < a->files_n && r == 0; i++)
        r = files_add(&q->files, a->verb, a->files[i]);
    if (r == 0 && !q->files.n)
        r = verb_usage_error(a->verb, "name a scenario file or a folder of them%s",
                             a->rest ? " before --; for your command alone there is try" : "");
    if (r == 0 && a->rest) {
        r = typed_replace(&q->arena, a, q->sets, &q->replaced);
        q->suite.sets = (const char *const *)q->replaced;
    }
    return r;
}
