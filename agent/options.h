/* options: rankrun's command line, torchrun's with a few more, as one plain struct.
 *
 * One table (options.c) gives the parser, the help and the PET_* variables. Both spellings
 * (--nproc-per-node, --nproc_per_node) and both forms (--opt v, --opt=v) are taken; the first word
 * that is no option is the program, everything behind it is the program's. The command line wins
 * over PET_<NAME>. Nothing is printed here but by options_print_help. */
#pragma once

#include "agent/hosts/hosts.h"
#include "agent/store/access.h"
#include "agent/tls/tls.h"
#include "agent/workers/spec.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { OPTIONS_USAGE = 64 }; /* exit code for a command line that is not understood */

enum options_verb {
    OPTIONS_RUN,
    OPTIONS_HOSTS,
    OPTIONS_STORE,
    OPTIONS_STATUS,
    OPTIONS_OUTCOME,
    OPTIONS_HELP,
    OPTIONS_VERSION,
    OPTIONS_MANUAL, /* options_put_manual */
    OPTIONS_SCRIPT, /* options_put_script, for shell */
    OPTIONS_WORDS,  /* options_put_words, command is what is typed */
};

enum options_backend {
    BACKEND_IN_PROCESS, /* the store lives in this agent: --standalone, or one node */
    BACKEND_EMBEDDED,   /* rankrun store, or the agent that owns the endpoint */
    BACKEND_ETCD_V3,
    BACKEND_ETCD_LEGACY, /* torchelastic's own protocol, over etcd's v2 API */
};

/* --rdzv-conf. Milliseconds; -1: not given, then the profile or the default of the core holds. */
struct options_rdzv {
    const char *profile; /* "fast" or "default"; never NULL */
    int64_t hb_ms, fence_ms, hard_ms, suspect_ms;
    int64_t join_timeout_ms, last_call_timeout_ms, admit_ms, stop_timeout_ms, give_up_ms;
    int max_free_rounds;     /* an hour; 0: any number, and no pause between them */
    const char *attempt;     /* NULL: none; of Slurm where it says which one this is */
    const char *etcd_prefix; /* of BACKEND_ETCD_LEGACY; NULL: not given */
    bool no_lifeline;
    const char *quarantine;     /* of a store that this agent hosts: "always", "auto", "never" */
    struct store_access access; /* of an etcd */
    struct tls_files tls;       /* of a store that is served here */
};

struct options {
    enum options_verb verb;

    enum options_backend backend;
    bool standalone;
    const char *shell; /* of OPTIONS_SCRIPT */
    int nodes_min, nodes_max;
    int workers_per_node;
    bool own_etcd;             /* --standalone, and the backend is an etcd: it has no port yet */
    const char *run_id;        /* a random one for --standalone */
    const char *endpoint_host; /* NULL with BACKEND_IN_PROCESS */
    int endpoint_port;
    const char *endpoints; /* "host:port", of several members of one etcd with commas between */
    struct options_rdzv rdzv;
    int max_restarts;
    /* --rdzv-backend static: this node's group rank; -1: the rendezvous gives it. */
    int node_rank;
    const char *master_addr; /* what the workers are told when this node has rank 0; NULL: found */
    int master_port;         /* likewise; 0: a free one */
    bool standby, gang;
    bool restarts_by_node; /* --restart-count node: RESTART_COUNT is each agent's own */
    const char *role;
    const char *local_addr;      /* NULL: found out */
    int64_t shutdown_timeout_ms; /* grace on a signal and on a membership change */

    struct worker_output output;
    /* The program and its arguments, NULL-ended, as typed. */
    const char *const *command;
    bool module, no_python, run_path, virtual_local_rank, sandbox;
    uint64_t signals; /* bit n: this agent leaves on signal n */

    /* OPTIONS_HOSTS: the agent's command line on each; argv by host, NULL-ended. */
    struct hosts hosts;
    const char *const *const *host_argv;
    bool everywhere; /* host_argv is a plain command: no job */
    const char *ssh; /* NULL: the usual */
    /* NAME=value, a variable for the agents: the token of the store that they will serve; NULL: one
     * was said, or the store is another's. */
    const char *host_token;

    const char *store_host; /* OPTIONS_STORE: where to listen */
    int store_port;
    const char *store_quarantine; /* as above */
    int store_memory_mb;
    int store_connections;    /* 0: as many as there can be */
    const char *store_names;  /* that are allowed; NULL: none */
    bool log_json;            /* --log-format */
    bool event_log;           /* --event-log-handler console */
    bool status_json;         /* OPTIONS_STATUS, with run_id and endpoints */
    const char *outcome_dir;  /* OPTIONS_OUTCOME, with command: where the agents can write too */
    const char *outcome_file; /* of an agent that was started below one; NULL: none */

    /* Lines for stderr: options that are accepted but do nothing here, OMP_NUM_THREADS. */
    const char *const *notices;
};

/* Reads argv and the PET_* variables of the environment. Everything in *ret is in the arena or in
 * argv. Returns 0, or a negative value with the sentence to print before exiting 64. */
int options_read(struct options *ret, int argc, char **argv, struct arena *a, struct err *err);

void options_print_help(FILE *out);
/* Append the manual page; the lines for a shell (bash, fish, zsh); and what can stand where the last
 * of the words stands that are typed behind "rankrun", NULL-ended (base/completion.h). */
void options_put_manual(struct buf *out);
void options_put_script(struct buf *out, const char *shell);
void options_put_words(struct buf *out, const char *const *words);
