/* plan: a valid scenario made concrete, before anything is done: which nodes with which addresses,
 * what is started on each, which fault with which arguments. `rankquake plan` prints it, the run
 * carries it out. Everything that can be refused is refused here, with the place in the file. */
#pragma once

#include "base/texts.h"
#include "faults/fault.h"
#include "harness/provider/examined_host.h"
#include "harness/scenario/scenario.h"

/* Where the store is met, whichever it is; etcd's members speak with each other at the next one. */
enum { PLAN_STORE_PORT = 29400 };

/* The name server of nodes that are namespaces, where a fault is about names (FAULT_NEEDS_NAMES). */
#define PLAN_RESOLVER     "198.18.0.9"
#define PLAN_RESOLVER_MAC "02:00:c6:12:00:09"

struct plan_device {  /* an accelerator of this host */
    const char *uuid; /* "GPU-..." */
    const char *name;
    int index;      /* as nvidia-smi counts them */
    int64_t memory; /* bytes, -1: not told */
    bool shareable; /* several processes at once */
    int nodes;      /* that it was given to */
};

/* The Python that scripts of the job, and a launcher of torchrun's kind, run on. */
struct python {
    const char *path;            /* as it is started: "/venv/bin/python3", "python3" */
    bool asked;                  /* what follows has been looked for */
    bool etcd;                   /* it has the module that torchrun's etcd backends need */
    char version[16], torch[48]; /* "3.11", "1.13.1"; "" when it could not be asked or has none */
};

struct plan_node {
    const char *name; /* "n0", "store"; also its host name */
    char addr[16];    /* "198.18.0.10": a range set aside for tests, never routed; a node that is
                         processes has one of the loopback, "127.64.3.10" */
    bool by_address;  /* it has no name and no network of its own; see plan_node_host */
    unsigned char mac[6];
    bool on_at_start;
    bool is_store;
    const char *rootfs; /* its own root file system, absolute; NULL: it sees the host's files */
    int index;          /* n2: 2; store: -1 */
    const struct plan_device *const *devices; /* of plan->devices; two nodes may share one */
    size_t devices_n;
    const struct examined_host *host; /* on which it runs, settled; NULL: on this machine */
};

struct planned_entry {
    const struct timeline_entry *entry; /* place, trigger, target as written */
    const struct fault *fault;          /* NULL: heals plan->entries[entry->heal] */
    struct fault_args args;
};

/* A program that a run starts because the scenario says so. */
struct plan_command {
    const char *key; /* that says so: "job.run", "checks.no-nan" */
    struct place place;
    const char *words; /* as a shell would take them; placeholders unresolved */
    const char *when;  /* "before the run: whether it ends with 0" */
    const char *nodes; /* "n0 n1 n2", where it is started; NULL: outside of them, on this host */
    bool is_ours;      /* rankquake itself, which asks a server that the scenario names */
    bool is_asked;     /* an interpreter that is asked what it has */
    bool is_reaching;  /* a host of the nodes */
    bool is_keyed; /* the scenario says all that it reads, and the key of the job is made of it */
};

struct plan {
    const struct scenario *scenario; /* not owned */
    /* Set by the caller: somebody else may have written it. Nothing that it names is then started
     * outside of nodes to learn what this host has. */
    bool untrusted;
    /* Set by the caller: the hosts are the command line's, and may be asked all the same. */
    bool hosts_said;
    /* Set by the caller: the folder of the run directory in which {shared} and the nodes' disks lie as
     * they are to be found; it stays. NULL: new ones, which go with the run. */
    const char *disks;
    uint64_t seed;
    struct plan_node *nodes; /* n0.., then the store's */
    size_t nodes_n;
    struct planned_entry *entries; /* as in the timeline */
    size_t entries_n;
    const char *rootfs;   /* of every node but the store's; NULL: none */
    const char *endpoint; /* "store:29400", "n0:29400"; NULL: standalone, no store node */
    const char *backend;  /* as --rdzv-backend says it; NULL: standalone, or a template */
    /* Filled by plan_find_launcher. */
    const char *const *launcher;        /* the words that start it; NULL-ended; NULL: as written */
    const char *const *launcher_quirks; /* options that this version cannot do without, or NULL */
    const char *launcher_note;          /* what people must know of it, a sentence; NULL: nothing */
    struct python python;               /* path NULL: not looked for */
    const struct provider *provider;    /* how hosts are reached; NULL: nodes are on this machine */
    struct examined_host *hosts;        /* as in cluster.hosts, once asked */
    size_t hosts_n;                     /* that were asked */
    const char *hosts_note;             /* what else runs on them, a sentence; NULL: nothing */
    struct provider_wish wish;          /* with which they are reached */
    struct plan_device *devices;        /* those of this host that the caller may use */
    size_t devices_n;
    const char *driver;                  /* of the devices, NULL: none was asked */
    const char *no_devices;              /* why there are none, or one is missing; NULL */
    const struct plan_command *commands; /* filled by plan_find_commands; those on the host first */
    size_t commands_n;
    enum isolation isolation;  /* auto: not settled yet, see plan_settle; hosts: with a provider */
    const char *isolation_why; /* processes that nobody asked for: why; else NULL */
    int addresses;             /* holds the range of addresses of this run; -1: none is held */
    struct arena arena;
};

/* A file for a plan: scenario_load, and where that finds errors, plan_check_entries as well, so that
 * every verb tells all of them at once. NULL with the diagnostics filled. */
struct scenario *plan_load(const char *file, const char *const *set, struct diagnostics *d);
/* Adds what is wrong to d and returns NULL then. s must outlive the plan. */
struct plan *plan_make(const struct scenario *s, uint64_t seed, struct diagnostics *d);
struct plan *plan_free(struct plan *p);
/* Of a scenario that was loaded with errors (scenario_load_flawed): adds what can be told of its
 * entries all the same, so that nobody fixes one mistake to hear of the next: faults, parameters
 * and targets that do not exist, and values that no parameter takes. What follows from several entries, or from what is wrong, is left
 * out. */
void plan_check_entries(const struct scenario *s, struct diagnostics *d);
/* What others reach it by, its name or its address; and what a server in it listens on, all
 * addresses or its own. */
const char *plan_node_host(const struct plan_node *n);
const char *plan_node_listen(const struct plan_node *n);
const struct plan_node *plan_find_node(const struct plan *p, const char *name);
/* FAULT_NEEDS_* of all faults of its timeline, and of the cluster; and of one fault of it, which acts on the
 * disks of nodes themselves where these are ours. */
unsigned plan_needs(const struct plan *p);
/* As fault_course, with what differs where the operator's commands take the power of hosts. */
struct fault_course plan_entry_course(const struct plan *p, const struct planned_entry *a);
unsigned plan_entry_needs(const struct plan *p, const struct planned_entry *a);
/* The disks of its nodes are ours (faults/mechanism/disk/): asked for, or needed by a fault. */
bool plan_has_disks(const struct plan *p);
/* A cloud takes a node away in it. */
bool plan_has_cloud(const struct plan *p);
/* It is there for the store, or its agent serves it. */
bool plan_serves_store(const struct plan *p, const struct plan_node *n);

/* Lists every program that a run starts, for people to read before: for each node and outside of
 * them. Starts none, and is told by plan_print and plan_json. Safe to call again. */
void plan_find_commands(struct plan *p);
/* What of them is started on this host, a line each, for whoever is about to start it: what is not
 * in `said`, to which it is added. How hosts are reached that he has named himself is nothing new to
 * him. */
void plan_put_outside(struct plan *p, struct texts *said, struct buf *out);
/* Adds to d what `run --untrusted` refuses: each program outside of nodes with the line that asks
 * for it, and what would make a node see or write what is the host's. */
void plan_refuse_outside(struct plan *p, struct diagnostics *d);
/* Words as a shell would take them, with quotes where they are needed. */
void plan_put_words(const char *const *words, struct buf *out);

/* Finds out which launcher of torchrun's kind this host has: the words that start it, its Python,
 * that one's version and its torch's (it is asked, some 50 ms), and what follows from them. At most
 * once, and nothing under rankrun. Returns 0, or -ENOENT with the sentence. */
int plan_find_launcher(struct plan *p, struct err *err);

/* Decides how nodes are kept apart where that is open, by trying; for processes it takes a range of
 * addresses of the loopback, 127.x.y.0/24, which no other run on this host has until the plan is
 * freed. Safe to call again. Returns 0, or -ENOTSUP: what is asked for cannot be had here, or a
 * fault of the timeline cannot. */
int plan_settle(struct plan *p, struct err *err);

/* A program of the job, a fault's need or a capability that this host lacks: 0, or -ENOENT (the
 * job's program: exit 64) or -ENOTSUP (the host: exit 4), with the sentence and the fix. Settles
 * the plan. */
int plan_check_host(struct plan *p, struct err *err);

/* The host's folders that a job which runs as root, and sees the host's files, cannot write to;
 * NULL-ended. */
extern const char *const plan_sealed[];

/* The PATH that the job's programs are looked for in: the scenario's, else the caller's. */
const char *plan_path(const struct job_spec *j);
/* The Python that its scripts are given to, PYTHON_EXEC as with torchrun; `absent` where neither
 * the scenario nor the caller says. */
const char *plan_python(const struct job_spec *j, const char *absent);
/* The program of this name as exec looks for it in path, on a node; NULL: there is none. */
const char *plan_find_program(const struct plan *p, struct arena *a, const char *name,
                              const char *path);
/* Opens a plain file to read it as the nodes see it: in their root file system, or here; anything
 * else is not opened (-EINVAL). A relative path begins in the caller's directory. Returns a
 * descriptor, the caller's, or -errno. */
int plan_open(const struct plan *p, const char *path);
/* path is dir, or below it. */
bool plan_is_below(const char *path, const char *dir);
/* Whether a node with a root file system of its own sees the host's directory dir, because it is
 * the caller's: not when it holds what every system has one of, /usr or /etc. */
bool plan_is_shown(const char *dir);

void plan_print(const struct plan *p, struct buf *out); /* for people */
void plan_json(const struct plan *p, struct buf *out);  /* plan.json */
