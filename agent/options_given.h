/* options_given: the command line as text, before anybody asks what the values mean. options.c
 * fills it, options_job.c and options_rdzv.c make an options of it. */
#pragma once

#include "agent/options.h"
#include "base/arena.h"
#include "base/err.h"

enum { NOTICES_MAX = 32, SOURCES_MAX = 48 };

#define OPTIONS_TOKEN_VARIABLE "RANKRUN_STORE_TOKEN"

/* NULL: not given; a flag that was given is "1". */
struct options_given {
    const char *standalone, *nnodes, *nproc_per_node;
    const char *rdzv_id, *rdzv_backend, *rdzv_endpoint, *rdzv_conf;
    const char *max_restarts, *role, *log_dir, *local_addr, *shutdown_timeout;
    const char *module, *no_python;
    const char *standby, *on_node_loss, *restart_count;
    const char *node_rank, *master_addr, *master_port;
    const char *monitor_interval, *start_method;
    const char *redirects, *tee, *local_ranks_filter, *log_line_prefix_template;
    const char *duplicate_stdout_filters, *duplicate_stderr_filters;
    const char *run_path, *virtual_local_rank, *sandbox, *use_env;
    const char *signals_to_handle, *logs_specs, *event_log_handler, *numa_binding;
    const char *hosts, *hostfile, *accelerators, *ssh, *everywhere, *compat;
    const char *host, *port, *quarantine, *token_file; /* of rankrun store */
    const char *cert, *key, *client_ca;                /* the same */
    const char *memory, *connections, *allow_host;     /* the same */
    const char *format;                                /* of rankrun status */
    const char *dir;                                   /* of rankrun outcome */
    const char *log_format;
    const char *help, *version, *man, *complete, *words;

    /* What the environment gave: the option ("--nnodes") and the variable it stood in. */
    struct options_source {
        const char *option, *variable;
    } from_environment[SOURCES_MAX];
    int from_environment_n;

    int place;           /* of this host among those that a scheduler gave; -1: none did */
    bool legacy;         /* the backend is torchelastic's legacy etcd rendezvous */
    bool has_store;      /* the job's store has an address */
    bool lifeline;       /* one was asked for */
    char **rest;         /* what stands behind the options: the program and its arguments */
    const char **passed; /* the words that an agent on another host is given too */
    int passed_n;

    struct arena *arena;
    const char *notices[NOTICES_MAX + 1];
    int notices_n;
};

/* ROW_HERE: of a job, and only for the rankrun that was typed. ROW_ALL: of none, and asks for no
 * more than a text. */
enum {
    ROW_JOB = 1,
    ROW_STORE = 2,
    ROW_HERE = ROW_JOB | 4,
    ROW_STATUS = 8,
    ROW_OUTCOME = 32,
    ROW_RDZV = ROW_JOB | ROW_STATUS,
    ROW_SAYS = ROW_JOB | ROW_STORE | ROW_STATUS | ROW_OUTCOME,
    ROW_ALL = ROW_SAYS | 16,
};

/* One row: the name with dashes, what stands for the value in the help (NULL: a flag), and whether
 * it belongs to a job, to the store, to the status. The PET_ variable follows from the name. */
struct options_row {
    const char *name;
    char letter;
    const char *value;
    size_t offset;
    int verb;         /* ROW_... */
    const char *help; /* NULL: for shells, not told to people */
};

extern const struct options_row options_rows[]; /* ended by {0} */

/* One line for stderr; in the order of the calls. */
void options_notice(struct options_given *g, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* What the job is: nodes, workers, store, run id, program. */
int options_settle_job(struct options *ret, struct options_given *g, struct err *err);
/* --compat: what is not said gets the defaults of another launcher. */
int options_settle_compat(struct options_given *g, struct err *err);
/* --accelerators without hosts: this one. */
int options_settle_here(struct options_given *g, struct err *err);
/* --rdzv-backend slurm and kubernetes, and what is taken where nothing is said: fills in nodes, store
 * and run id as if they had been typed. */
int options_settle_allocation(struct options_given *g, struct err *err);
/* What of Slurm's settings would end the job before rankrun can do what it was told; the first host
 * says it for all. */
int options_settle_betrayal(struct options *ret, struct options_given *g, struct err *err);
/* rankrun outcome. Its file, as an agent below it finds it: not for workers. NULL: none. */
const char *options_take_outcome_file(struct options_given *g);
int options_settle_outcome(struct options *ret, struct options_given *g, struct err *err);
/* --log-format. */
int options_settle_format(struct options *ret, struct options_given *g, struct err *err);
/* rankrun status: the store and the run. */
int options_settle_status(struct options *ret, struct options_given *g, struct err *err);
/* Where the workers' output goes; after the number of workers is known. */
int options_settle_output(struct options *ret, struct options_given *g, struct err *err);
/* --signals-to-handle. */
int options_settle_signals(struct options *ret, struct options_given *g, struct err *err);
/* -H: the command line of the agent on each host. Fills in what the job's other settings follow
 * from. */
int options_settle_hosts(struct options *ret, struct options_given *g, struct err *err);
/* what: what was typed before the word, for the message. */
int options_check_quarantine(const char *what, const char *word, struct err *err);
/* The keys of --rdzv-conf that say how an etcd is reached. 1: it is one and is set; 0: it is none;
 * negative: it is one, with a wrong value. */
int options_set_access(struct store_access *a, struct options_given *g, const char *name,
                       const char *value, struct err *err);
/* The same for an embedded store: its token; of the variable too, where it has no name. */
int options_set_token(struct store_access *a, struct options_given *g, const char *name,
                      const char *value, struct err *err);
int options_settle_token(struct store_access *a, struct options_given *g, struct err *err);
/* Where no token was said the store is asked for one that MUNGE can open. */
void options_ask_sealed(struct store_access *a, struct options_given *g);
int options_settle_access(struct store_access *a, struct options_given *g, struct err *err);
/* The same for the certificate with which a store is served: the agent's own, and rankrun store's.
 * Files are looked at by who serves (agent/main.c): the other nodes need not have them. */
int options_set_tls(struct tls_files *f, const char *name, const char *value);
int options_settle_tls(struct options_rdzv *r, struct err *err);
int options_settle_store_tls(struct tls_files *f, const struct options_given *g, struct err *err);
/* --rdzv-conf. */
int options_settle_rdzv(struct options_rdzv *ret, struct options_given *g, struct err *err);
