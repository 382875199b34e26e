#include "agent/options.h"

#include "agent/options_given.h"
#include "base/buf.h"
#include "base/str.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define AT(member) offsetof(struct options_given, member)

const struct options_row options_rows[] = {
    {"nnodes", 0, "N|MIN:MAX", AT(nnodes), ROW_JOB, "nodes; as a range the job is elastic [1]"},
    {"nproc-per-node", 0, "N|cpu|gpu|auto", AT(nproc_per_node), ROW_JOB,
     "workers on each node [1]"},
    {"standalone", 0, NULL, AT(standalone), ROW_JOB,
     "one node, its store in this process; of etcd and etcd-v3 an etcd beside it"},
    {"rdzv-backend", 0, "NAME", AT(rdzv_backend), ROW_RDZV,
     "embedded or c10d (rankrun store), etcd-v3, etcd (with torchrun's agents), static, slurm, "
     "kubernetes"},
    {"rdzv-endpoint", 0, "HOST[:PORT]", AT(rdzv_endpoint), ROW_RDZV,
     "where the store is [port 29400, etcd 2379]; of etcd-v3 several, with commas"},
    {"rdzv-id", 0, "ID", AT(rdzv_id), ROW_RDZV, "the job's name in the store [none; alone: drawn]"},
    {"rdzv-conf", 0, "K=V,...", AT(rdzv_conf), ROW_RDZV, "see below"},
    {"max-restarts", 0, "N", AT(max_restarts), ROW_JOB,
     "rounds that may fail before the job does [0]"},
    {"compat", 0, "torchelastic", AT(compat), ROW_JOB,
     "the defaults of torchelastic.distributed.launch: docs/torchrun.md"},
    {"standby", 0, NULL, AT(standby), ROW_JOB,
     "a spare: waits until a node is lost, or MIN is not reached without it"},
    {"on-node-loss", 0, "replace|gang", AT(on_node_loss), ROW_JOB,
     "gang: the job has failed when a node is lost [replace]"},
    {"restart-count", 0, "job|node", AT(restart_count), ROW_JOB,
     "what workers are told: one count of the job, or as torchrun each agent's own [job]"},
    {"role", 0, "NAME", AT(role), ROW_JOB, "ROLE_NAME of this node's workers [default]"},
    {"module", 'm', NULL, AT(module), ROW_JOB, "PROGRAM is a Python module: python3 -u -m"},
    {"no-python", 0, NULL, AT(no_python), ROW_JOB, "run PROGRAM as it stands"},
    {"run-path", 0, NULL, AT(run_path), ROW_JOB, "run PROGRAM by Python's runpy.run_path"},
    {"log-dir", 0, "DIR", AT(log_dir), ROW_JOB,
     "workers' stdout and stderr as files in DIR/<id>_*/attempt_<n>/<rank>/"},
    {"redirects", 'r', "0-3|R:V,...", AT(redirects), ROW_JOB,
     "what goes into files only: 1 stdout, 2 stderr, 3 both [3 with --log-dir]"},
    {"tee", 't', "0-3|R:V,...", AT(tee), ROW_JOB,
     "what goes into files and, with a header, to the console"},
    {"local-ranks-filter", 0, "R,...", AT(local_ranks_filter), ROW_JOB,
     "whose output reaches the console [all]"},
    {"log-line-prefix-template", 0, "TEXT", AT(log_line_prefix_template), ROW_JOB,
     "header of --tee: ${role_name} ${local_rank} ${rank} ${hostname}"},
    {"duplicate-stdout-filters", 0, "TEXT,...", AT(duplicate_stdout_filters), ROW_JOB,
     "lines of --tee that hold TEXT go to filtered_stdout.log too"},
    {"duplicate-stderr-filters", 0, "TEXT,...", AT(duplicate_stderr_filters), ROW_JOB,
     "the same for stderr"},
    {"log-format", 0, "text|json", AT(log_format), ROW_SAYS,
     "rankrun's own lines: for people, or a JSON object each [text]"},
    {"local-addr", 0, "ADDR", AT(local_addr), ROW_JOB,
     "address by which the others reach this node"},
    {"shutdown-timeout", 0, "SECONDS", AT(shutdown_timeout), ROW_JOB,
     "grace of the workers on a signal or a change of members [30]"},
    {"node-rank", 0, "N", AT(node_rank), ROW_JOB, "static: this node's group rank [0]"},
    {"master-addr", 0, "ADDR", AT(master_addr), ROW_JOB, "static: node 0 [127.0.0.1]"},
    {"master-port", 0, "PORT", AT(master_port), ROW_JOB,
     "static: MASTER_PORT; the agents meet at the next one [29500]"},
    {"signals-to-handle", 0, "NAME,...", AT(signals_to_handle), ROW_JOB,
     "signals to leave on [SIGTERM,SIGINT,SIGHUP,SIGQUIT]"},
    {"virtual-local-rank", 0, NULL, AT(virtual_local_rank), ROW_JOB,
     "LOCAL_RANK is 0, and only the worker's own GPU is visible"},
    {"sandbox", 0, NULL, AT(sandbox), ROW_JOB,
     "workers cannot trace, mount, load modules, reboot ...: docs/torchrun.md"},
    {"monitor-interval", 0, "SECONDS", AT(monitor_interval), ROW_JOB,
     "accepted; ends of workers are seen at once, without polling"},
    {"start-method", 0, "NAME", AT(start_method), ROW_JOB,
     "accepted; workers are programs of their own"},
    {"logs-specs", 0, "NAME", AT(logs_specs), ROW_JOB, "default; others are Python's"},
    {"event-log-handler", 0, "NAME", AT(event_log_handler), ROW_JOB,
     "console: torchelastic's events at the end, as JSON on stderr [null]"},
    {"numa-binding", 0, "NAME", AT(numa_binding), ROW_JOB, "accepted; workers are not bound"},
    {"use-env", 0, NULL, AT(use_env), ROW_JOB,
     "accepted, of torch.distributed.launch; LOCAL_RANK is in the environment"},
    {"hosts", 'H', "HOST[:N],...", AT(hosts), ROW_HERE,
     "start the job on these, by ssh, N workers on each"},
    {"hostfile", 0, "FILE", AT(hostfile), ROW_HERE, "the same, a host a line: HOST [slots=N]"},
    {"accelerators", 0, "N", AT(accelerators), ROW_HERE,
     "workers on each host without an N; without hosts on this one"},
    {"everywhere", 0, NULL, AT(everywhere), ROW_HERE,
     "run PROGRAM once on each host as it stands: no ranks, no rendezvous"},
    {"ssh", 0, "COMMAND", AT(ssh), ROW_HERE,
     "what stands before the host [ssh -o BatchMode=yes -T]"},
    {"host", 0, "ADDR", AT(host), ROW_STORE, "where to listen [0.0.0.0]"},
    {"port", 0, "PORT", AT(port), ROW_STORE, "where to listen, 0: a free one [29400]"},
    {"quarantine", 0, "auto|always|never", AT(quarantine), ROW_STORE,
     "whether the first round of a job waits for workers that a killed store forgot [auto]"},
    {"token-file", 0, "FILE", AT(token_file), ROW_STORE,
     "what agents must show to be answered (or the variable RANKRUN_STORE_TOKEN)"},
    {"cert", 0, "FILE", AT(cert), ROW_STORE, "serve TLS with this certificate, in PEM"},
    {"key", 0, "FILE", AT(key), ROW_STORE, "its key [in the same file]"},
    {"client-ca", 0, "FILE", AT(client_ca), ROW_STORE,
     "answer only agents with a certificate that one of these has signed"},
    {"memory", 0, "MB", AT(memory), ROW_STORE,
     "what clients can make it need: 5/16 are for keys of runs, 1/8 for others' [256]"},
    {"connections", 0, "N", AT(connections), ROW_STORE,
     "at once, 3/4 of them agents' [open files less 64, 16384 at most]"},
    {"allow-host", 0, "NAME,...", AT(allow_host), ROW_STORE,
     "names by which it is asked for without a token, besides its own and private ones"},
    {"format", 0, "text|json", AT(format), ROW_STATUS, "for people, or one JSON object [text]"},
    {"dir", 0, "DIR", AT(dir), ROW_OUTCOME,
     "where the hosts of the job can write, too [the current one]"},
    {"help", 'h', NULL, AT(help), ROW_ALL, "print this"},
    {"man", 0, NULL, AT(man), ROW_ALL, "print this as a manual page: rankrun --man | man -l -"},
    {"complete", 0, "bash|fish|zsh", AT(complete), ROW_ALL,
     "print what makes this shell complete command lines"},
    {"words", 0, NULL, AT(words), ROW_ALL, NULL},
    {"version", 0, NULL, AT(version), ROW_ALL, "print the version"},
    {0},
};
enum { ROWS = sizeof(options_rows) / sizeof(*options_rows) - 1 };

static const char **slot(struct options_given *g, const struct options_row *r) {
    return (const char **)(void *)((char *)g + r->offset);
}

void options_notice(struct options_given *g, const char *fmt, ...) {
    BUF_FINI struct buf b = {0};
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(&b, fmt, ap);
    va_end(ap);
    if (g->notices_n < NOTICES_MAX)
        g->notices[g->notices_n++] = arena_strdup(g->arena, buf_str(&b));
}

/* nproc_per_node and nproc-per-node are one name. */
static bool names_equal(const char *a, const char *b, size_t n) {
    for (size_t i = 0; i < n; i++)
        if ((a[i] == '_' ? '-' : a[i]) != b[i])
            return false;
    return true;
}

static int unknown(const char *typed, int verb, struct err *err) {
    const char *names[ROWS + 1] = {NULL};
    char name[64];
    size_t n = 0;
    for (const struct options_row *r = options_rows; r->name; r++)
        if (r->verb & verb && r->help)
            names[n++] = r->name;
    str_copy(name, sizeof(name), typed + strspn(typed, "-"));
    name[strcspn(name, "=")] = '\0';
    for (char *p = name; *p; p++)
        *p = *p == '_' ? '-' : *p;
    const char *near = str_nearest(name, names);
    if (near)
        return err_say(err, -EINVAL, "unknown option %s; did you mean --%s?", typed, near);
    return err_say(err, -EINVAL, "unknown option %s; rankrun --help lists them", typed);
}

/* The row of a word that begins with "--": its name, or the only one that begins like it, as
 * argparse allows. */
static int find_long(const char *word, int verb, const struct options_row **ret, struct err *err) {
    const char *name = word + 2;
    size_t n = strcspn(name, "=");
    const struct options_row *found = NULL;
    for (const struct options_row *r = options_rows; r->name && n; r++) {
        if (!(r->verb & verb) || strlen(r->name) < n || !names_equal(name, r->name, n))
            continue;
        if (r->name[n] == '\0') {
            *ret = r;
            return 0;
        }
        if (found)
            return err_say(err, -EINVAL, "option %s may be --%s or --%s; write it out", word,
                           found->name, r->name);
        found = r;
    }
    if (!found)
        return unknown(word, verb, err);
    *ret = found;
    return 0;
}

static int find_row(const char *word, int verb, const struct options_row **ret, struct err *err) {
    if (word[1] == '-')
        return find_long(word, verb, ret, err);
    for (const struct options_row *r = options_rows; r->name; r++)
        if ((r->verb & verb) && r->letter && word[1] == r->letter && !word[2]) {
            *ret = r;
            return 0;
        }
    return unknown(word, verb, err);
}

/* Takes options from argv[at] on; returns the index of the first word that is none, or -EINVAL. */
static int take_options(struct options_given *g, int verb, char **argv, int at, struct err *err) {
    while (argv[at] && argv[at][0] == '-' && argv[at][1] != '\0') {
        const struct options_row *r = NULL;
        const char *word = argv[at++], *equals = strchr(word, '=');
        int first = at - 1;
        if (str_eq(word, "--"))
            return at;
        int code = find_row(word, verb, &r, err);
        if (code)
            return code;
        if (!r->value && equals)
            return err_say(err, -EINVAL, "option --%s takes no value", r->name);
        if (!r->value)
            *slot(g, r) = "1";
        else if (equals)
            *slot(g, r) = equals + 1;
        else if (argv[at])
            *slot(g, r) = argv[at++];
        else
            return err_say(err, -EINVAL, "option --%s needs a value: %s", r->name, r->value);
        for (; r->verb != ROW_HERE && first < at; first++)
            g->passed[g->passed_n++] = argv[first];
    }
    return at;
}

static void note_variable(struct options_given *g, const char *option, const char *variable) {
    if (g->from_environment_n < SOURCES_MAX)
        g->from_environment[g->from_environment_n++] = (struct options_source){
            arena_printf(g->arena, "--%s", option), arena_strdup(g->arena, variable)};
}

/* What is said of an option is said of what was typed: who set a variable, maybe in another shell
 * or a job script, must not look for it on this command line. */
static void blame_variable(const struct options_given *g, struct err *err) {
    for (int i = 0; i < g->from_environment_n; i++) {
        const struct options_source *s = &g->from_environment[i];
        size_t n = strlen(s->option);
        if (strncmp(err->msg, s->option, n) == 0 && (err->msg[n] == ' ' || err->msg[n] == ':')) {
            err_wrap(err, "%s in the environment, as ", s->variable);
            return;
        }
    }
}

/* PET_NPROC_PER_NODE and so on, where the command line says nothing. A flag is 0 or 1. */
static int take_environment(struct options_given *g, int verb, struct err *err) {
    for (const struct options_row *r = options_rows; r->name; r++) {
        char name[64] = "PET_";
        for (size_t k = 0; r->name[k]; k++)
            name[4 + k] = r->name[k] == '-' ? '_' : (char)toupper((unsigned char)r->name[k]);
        const char *value = getenv(name);
        if (!value || *slot(g, r) || !(r->verb & ROW_JOB) || !(r->verb & verb) ||
            r->verb == ROW_ALL)
            continue;
        if (!r->value && !str_eq(value, "0") && !str_eq(value, "1"))
            return err_say(err, -EINVAL, "%s=%s in the environment: must be 0 or 1", name, value);
        *slot(g, r) = r->value || str_eq(value, "1") ? value : NULL;
        note_variable(g, r->name, name);
    }
    return 0;
}

static int settle_store_limits(struct options *ret, struct options_given *g, struct err *err) {
    int64_t memory_mb = 256, connections = 0;
    if (g->memory && !str_to_i64(g->memory, 16, 1 << 20, &memory_mb))
        return err_say(err, -EINVAL, "--memory %s: must be a number of megabytes from 16 to %d",
                       g->memory, 1 << 20);
    if (g->connections && !str_to_i64(g->connections, 16, 1 << 20, &connections))
        return err_say(err, -EINVAL, "--connections %s: must be a number from 16 to %d",
                       g->connections, 1 << 20);
    ret->store_memory_mb = (int)memory_mb;
    ret->store_connections = (int)connections;
    return 0;
}

static int settle_store(struct options *ret, struct options_given *g, struct err *err) {
    int64_t port = 29400;
    int code = options_settle_format(ret, g, err);
    if (code)
        return code;
    if (g->port && !str_to_i64(g->port, 0, 65535, &port))
        return err_say(err, -EINVAL, "--port %s: must be a number from 0 to 65535", g->port);
    ret->store_host = g->host ? g->host : "0.0.0.0";
    ret->store_port = (int)port;
    ret->store_quarantine = g->quarantine ? g->quarantine : "auto";
    ret->store_names = g->allow_host;
    code = settle_store_limits(ret, g, err);
    if (code)
        return code;
    code = options_settle_token(&ret->rdzv.access, g, err);
    if (!code)
        code = options_settle_store_tls(&ret->rdzv.tls, g, err);
    return code ? code : options_check_quarantine("--quarantine ", ret->store_quarantine, err);
}

static int settle_job(struct options *ret, struct options_given *g, struct err *err) {
    int code = 0;
    if (!g->rest[0] || !g->rest[0][0])
        return err_say(err, -EINVAL,
                       "no program to run; rankrun [options] PROGRAM [arguments], see --help");
    ret->command = (const char *const *)(void *)g->rest;
    ret->outcome_file = options_take_outcome_file(g);
    code = options_settle_compat(g, err);
    if (!code && (g->hosts || g->hostfile))
        code = options_settle_hosts(ret, g, err);
    else if (!code && (g->ssh || g->everywhere))
        code = err_say(err, -EINVAL, "--%s goes with --hosts or --hostfile",
                       g->ssh ? "ssh" : "everywhere");
    else if (!code)
        code = options_settle_here(g, err);
    if (!code && ret->verb == OPTIONS_RUN)
        code = options_settle_allocation(g, err);
    return code || ret->everywhere ? code : options_settle_job(ret, g, err);
}

/* The words that a shell asks about stand where a program would. */
static int settle_manual(struct options *ret, struct options_given *g, struct err *err) {
    ret->verb = g->man ? OPTIONS_MANUAL : g->complete ? OPTIONS_SCRIPT : OPTIONS_WORDS;
    ret->shell = g->complete;
    ret->command = (const char *const *)(void *)g->rest;
    if (ret->verb != OPTIONS_SCRIPT || str_eq(g->complete, "bash") || str_eq(g->complete, "fish") ||
        str_eq(g->complete, "zsh"))
        return 0;
    return err_say(err, -EINVAL, "--complete %s: must be bash, fish or zsh", g->complete);
}

/* By the first word; the last is what has none. */
static const struct command {
    const char *word;
    enum options_verb verb;
    int rows; /* ROW_... */
    int (*settle)(struct options *ret, struct options_given *g, struct err *err);
} commands[] = {
    {"store", OPTIONS_STORE, ROW_STORE, settle_store},
    {"status", OPTIONS_STATUS, ROW_STATUS, options_settle_status},
    {"outcome", OPTIONS_OUTCOME, ROW_OUTCOME, options_settle_outcome},
    {NULL, OPTIONS_RUN, ROW_JOB, settle_job},
};

static int parse(const struct command *c, struct options *ret, struct options_given *g, char **argv,
                 struct err *err) {
    int at = take_options(g, c->rows, argv, c->word ? 2 : 1, err);
    if (at < 0)
        return at;
    g->rest = argv + at;
    ret->verb = g->help ? OPTIONS_HELP : g->version ? OPTIONS_VERSION : c->verb;
    if (g->man || g->complete || g->words)
        return settle_manual(ret, g, err);
    if (ret->verb != c->verb)
        return 0;
    if (c->word && c->verb != OPTIONS_OUTCOME && g->rest[0])
        return err_say(err, -EINVAL, "rankrun %s takes no arguments, but was given %s", c->word,
                       g->rest[0]);
    int code = take_environment(g, c->rows, err);
    if (!code)
        code = c->settle(ret, g, err);
    if (code)
        blame_variable(g, err);
    return code;
}

int options_read(struct options *ret, int argc, char **argv, struct arena *a, struct err *err) {
    struct options o = {0};
    struct options_given *g = arena_new(a, struct options_given);
    const struct command *c = commands;
    g->arena = a;
    g->place = -1;
    g->passed = arena_array(a, const char *, (size_t)argc + 1);
    while (c->word && !str_eq(argv[0] ? argv[1] : NULL, c->word))
        c++;
    int code = parse(c, &o, g, argv, err);
    if (code)
        return code;
    o.notices = g->notices;
    *ret = o;
    return 0;
}
