/* Loads cluster, its nodes, racks, GPUs and store, and limits. */
#include "base/str.h"
#include "harness/scenario/reader.h"

#include <stddef.h>
#include <string.h>

static void read_store(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    static const char *const choices[] = {"embedded", "etcd", "etcd-3", "none", NULL};
    static const enum store_kind kinds[] = {STORE_EMBEDDED, STORE_ETCD, STORE_ETCD_3, STORE_NONE};
    struct cluster_spec *c = out;
    const struct yaml *on = n->type == YAML_MAP ? yaml_get(n, "on") : NULL;
    if (on && n->length == 1) {
        struct key item = {.name = "store: {on}", .type = "a node, such as n0"};
        if (reader_is_scalar(r, &item, on))
            c->store_on = on->text;
        return;
    }
    int i = reader_choice(r, k, n, choices, NULL);
    if (i >= 0)
        c->store = kinds[i];
}

const char *const isolation_names[] = {"auto", "namespaces", "processes", "hosts", NULL};
static const char *const isolations_asked[] = {"auto", "namespaces", "processes", NULL};
const char *const provider_names[] = {"none", "exec", "slurm", "ssh", NULL};
const char *const disk_spec_names[] = {"kept", "losing", "served", NULL};

const char *const scheduler_names[] = {"none", "slurm", NULL};

static void read_hosts(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    struct cluster_spec *c = out;
    reader_words(r, k, n, &c->hosts, &c->hosts_n);
}

/* A command that names no host would strike the same one whatever node is meant. */
static bool names_host(const char *const *words) {
    for (; *words; words++)
        if (strstr(*words, "{host}") || strstr(*words, "{node}"))
            return true;
    return false;
}

static void check_power_word(struct reader *r, const struct key *k, const struct yaml *n) {
    for (const char *s = strchr(n->text, '{'); s; s = strchr(s + 1, '{')) {
        size_t len = strspn(s + 1, "abcdefghijklmnopqrstuvwxyz_");
        if (len && s[1 + len] == '}' && !str_starts(s, "{host}") && !str_starts(s, "{node}"))
            diagnostics_add(r->d, n->place,
                            "%s: there is no placeholder {%.*s} here; {host} and {node} exist",
                            k->name, (int)len, s + 1);
    }
}

static void read_power(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    struct power_spec *p = &((struct cluster_spec *)out)->power;
    bool off = str_eq(k->name, "off");
    const char *const **words = off ? &p->off : &p->on;
    p->place = n->place;
    if (!reader_words(r, k, n, words, off ? &p->off_n : &p->on_n))
        return;
    if (!n->length || !**words[0]) {
        diagnostics_add(r->d, n->place, "%s: its command is empty; it must be %s", k->name,
                        k->type);
        return;
    }
    yaml_each(it, n) check_power_word(r, k, it);
    if (!names_host(*words))
        diagnostics_add(r->d, n->place,
                        "%s: this command names no host: put {host} or {node} where the name of "
                        "the host stands whose power it is",
                        k->name);
}

/* One node of the rack'th rack, from 1. */
static void put_in_rack(struct reader *r, const struct yaml *n, int rack, int *rack_of, int nodes) {
    int64_t i;
    if (n->type != YAML_SCALAR)
        diagnostics_add(r->d, n->place, "racks: a node is a name such as n0, not %s",
                        yaml_type_name(n));
    else if (*n->text != 'n' || !str_to_i64(n->text + 1, 0, nodes - 1, &i))
        diagnostics_add(r->d, n->place,
                        "racks: there is no node \"%s\" in this cluster; it has n0 to n%d", n->text,
                        nodes - 1);
    else if (rack_of[i])
        diagnostics_add(r->d, n->place, "racks: n%d is in rack %d already", (int)i, rack_of[i] - 1);
    else
        rack_of[i] = rack;
}

static void read_racks(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    struct cluster_spec *c = out;
    if (n->type != YAML_LIST || !n->length) {
        diagnostics_add(r->d, n->place, "%s must be %s, such as [[n0, n1], [n2, n3]], not %s",
                        k->name, k->type, n->length ? yaml_type_name(n) : "empty");
        return;
    }
    int *rack_of = arena_array(r->arena, int, (size_t)c->nodes + 1);
    yaml_each(rack, n) {
        c->racks++;
        if (rack->type != YAML_LIST || !rack->length)
            diagnostics_add(r->d, rack->place,
                            "racks: rack %d must be a list of its nodes, such as [n0, n1]",
                            c->racks - 1);
        else
            yaml_each(node, rack) put_in_rack(r, node, c->racks, rack_of, c->nodes);
    }
    c->rack_of = rack_of;
}

/* Where it listens is the plan's. */
static void read_store_args(struct reader *r, const struct key *k, const struct yaml *n,
                            void *out) {
    struct cluster_spec *c = out;
    if (!reader_words(r, k, n, &c->store_args, &c->store_args_n))
        return;
    yaml_each(it, n) {
        if (str_starts(it->text, "--host") || str_starts(it->text, "--port"))
            diagnostics_add(r->d, it->place,
                            "store_args: %s: where the store listens is the harness's matter; "
                            "leave it out",
                            it->text);
    }
}

#define AT(member)    .offset = offsetof(struct cluster_spec, member)
#define PLACE(member) .place = offsetof(struct cluster_spec, member)
#define SAID(member)  .said = offsetof(struct cluster_spec, member)

/* The wire's addresses are 198.18.0.10 .. .249: NODES_MAX of them. */
enum { NODES_MAX = 240 };

const struct section section_cluster = {
    "cluster",
    "The machines the job runs on, as namespaces of this one.",
    (const struct key[]){
        {"nodes", "a whole number", "2", "How many nodes exist: n0, n1, ...", "nodes: 4",
         reader_int, AT(nodes), PLACE(nodes_place), .min = 1, .max = NODES_MAX, .form = "<int>"},
        {"start", "a whole number", "(all)",
         "How many nodes are switched on at the beginning, all at once; the others are off until a "
         "node-start.",
         "start: 3", reader_int, AT(start), PLACE(start_place), .min = 1, .max = NODES_MAX,
         .form = "<int>"},
        {"store", "embedded, etcd, etcd-3, none or {on: NODE}", "embedded",
         "Where the agents meet. embedded: the launcher's own; rankrun's in a node of its own "
         "named \"store\" (with one node and nnodes 1 in the agent itself), torchrun's c10d in the "
         "agent of n0. etcd: a real etcd in a node of its own; etcd-3: one of three members, "
         "store-0 to store-2. {on: n1}: the launcher's own, in the agent of n1. none: no store.",
         "store: embedded", read_store, PLACE(store_place),
         .form = "embedded | etcd | etcd-3 | none | {on: <node>}"},
        {"store_quota_mb", "a whole number", "(etcd's own, 2048)",
         "How many MiB an etcd keeps in its database before it is full and takes no more "
         "(--quota-backend-bytes).",
         "store_quota_mb: 16", reader_int, AT(store_quota_mb), PLACE(quota_place), .min = 4,
         .max = 8192, .form = "<int>"},
        {"store_args", "a list of options", NULL,
         "Further options of rankrun's store where it is in a node of its own, as `rankrun store "
         "--help` has them. Files are looked for from the directory where rankquake is started.",
         "store_args: [--memory=16, --connections=64]", read_store_args, PLACE(args_place),
         .form = "[<scalar>]"},
        {"gpus_per_node", "a whole number", "(all of this host, dealt out)",
         "How many of this host's GPUs each node sees. When there are fewer than the nodes want "
         "they share them, each node as a host of its own for NCCL. Without the key all GPUs are "
         "dealt out, and a host without one is no mistake; with it the scenario is skipped where "
         "there are not that many. 0: nodes see none.",
         "gpus_per_node: 1", reader_int, AT(gpus_per_node), SAID(has_gpus), .min = 0, .max = 64,
         .form = "<int>"},
        {"racks", "a list of lists of nodes", NULL,
         "Groups of nodes that fail together, each the target \"rack 0\", \"rack 1\" ...; a node "
         "is in one of them or in none.",
         "racks: [[n0, n1], [n2, n3]]", read_racks, .form = "[[<node>]]"},
        {"rootfs", "a directory", NULL,
         "The root file system of every node but the store's, such as a debootstrap tree: another "
         "distribution, a newer torchrun. It is never written to. Of the host a node sees your "
         "directory and the run directory; programs are looked for in the tree.",
         "rootfs: /srv/trees/sid", reader_text, AT(rootfs)},
        {"isolation", "auto, namespaces or processes", "auto",
         "How nodes are kept apart. namespaces: each has a network, processes, mounts and a host "
         "name of its own. processes: each is a tree of processes with an address of the loopback, "
         "which works where namespaces are refused; faults on processes work as ever, a network is "
         "cut at the job's own sockets. auto: namespaces where the host allows them, else "
         "processes.",
         "isolation: processes", reader_enum, AT(isolation), .choices = isolations_asked,
         .form = "auto | namespaces | processes"},
        {"disk", "kept, losing or served", "kept",
         "What {disk} and {shared} hold after a node went off, by whatever fault. kept: all that "
         "was "
         "written. losing: of its {disk} what was synced, as after a loss of power: bytes that no "
         "fsync of their file came after and names that no fsync at all came after are lost; of "
         "{shared} the bytes that it had not synced, as its cache goes with it. They lie on a disk "
         "of ours then (FUSE). served: all that was written, on a disk of ours, so that faults on "
         "disks act on it and not on system calls.",
         "disk: losing", reader_enum, AT(disk), .choices = disk_spec_names,
         .form = "kept | losing | served"},
        {"scheduler", "none or slurm", "none",
         "slurm: a real Slurm runs in the nodes, its controller in n0, a slurmd in each, and "
         "job.run "
         "is a script that is given to sbatch as it stands; preempted jobs and those whose node "
         "fails are requeued. Needs Slurm and MUNGE (slurmctld, slurmd, munge), "
         "root and namespaces; elsewhere the scenario is skipped.",
         "scheduler: slurm", reader_enum, AT(scheduler), PLACE(scheduler_place),
         .choices = scheduler_names, .form = "none | slurm"},
        {"provider", "none, exec, slurm or ssh", "none",
         "How the hosts are reached on which the nodes are to run. none: they are on this machine. "
         "ssh: hosts by ssh, which copies its helper there. slurm: hosts of the allocation that "
         "rankquake is inside of, by srun. exec: a command each whose standard streams are a "
         "rankquake-node's, such as podman exec -i c1 rankquake-node. The directory of runs, "
         "RankQuake's programs and the job lie at the same paths on all hosts.",
         "provider: ssh", reader_enum, AT(provider), PLACE(provider_place),
         .choices = provider_names, .form = "none | exec | slurm | ssh"},
        {"hosts", "a list of hosts", NULL,
         "On which the nodes run, n0 on the first: names that ssh knows, or commands. With "
         "provider: "
         "slurm they may be left out: the allocation's then, in Slurm's order. A store of its own "
         "runs beside n0.",
         "hosts: [node7, node8]", read_hosts, PLACE(hosts_place), .form = "[<text>]"},
        {"ssh", "words", "(ssh -o BatchMode=yes -o ConnectTimeout=10)",
         "What is put before a host that ssh reaches.", "ssh: ssh -F cluster.conf", reader_text,
         AT(ssh)},
        {"power", "a map", NULL,
         "The commands by which hosts lose their power and have it again, for node-poweroff, "
         "node-start and whatever else is silent about a node that goes off. Without it such a "
         "node's processes are killed while its peers are deaf to its host.",
         "power: {off: [ipmitool, -H, \"{host}-bmc\", power, \"off\"], "
         "on: [ipmitool, -H, \"{host}-bmc\", power, \"on\"]}",
         reader_under, .under = &section_power, .form = "<@power>"},
        {"privileged", "true or false", "false",
         "The job keeps all rights of whoever starts the harness: as root every capability, "
         "devices and the host's /etc, /usr, /proc and /sys to write to, where it otherwise has "
         "what containers have; where nodes are processes, set-user-ID programs and signals to "
         "all that is the user's. For a job that mounts, loads a driver or calls sudo.",
         "privileged: true", reader_bool, AT(privileged)},
        {0},
    },
};

const struct section section_power = {
    "power",
    "How hosts lose their power and have it again, by commands of whoever operates them.",
    (const struct key[]){
        {"off", "a list: the program and its arguments", NULL,
         "Takes a host's power. It runs on the machine of the harness, without a shell. {host} is "
         "the host as cluster.hosts has it, without USER@, or with provider exec as it calls "
         "itself; {node} is n0, n1, ... That it has ended with 0 is no evidence: the host's helper "
         "must be gone.",
         "off: [ipmitool, -H, \"{host}-bmc\", power, \"off\"]", read_power, .required = true,
         .form = "[<scalar>]"},
        {"on", "a list: the program and its arguments", NULL,
         "Gives it back, for a node-start and at the end of the run. The host must answer then, "
         "and have begun anew: another boot ID, or another first process.",
         "on: [ipmitool, -H, \"{host}-bmc\", power, \"on\"]", read_power, .required = true,
         .form = "[<scalar>]"},
        {"within", "a duration", "5m",
         "How long a command may take, a host until its helper is gone, and one that has begun "
         "anew until it answers.",
         "within: 10m", reader_duration, AT(power.within_ns), .min = 1000000000},
        {0},
    },
};

#undef AT
#define AT(member) .offset = offsetof(struct limits, member)

const struct section section_limits = {
    "limits",
    "How long things may take before a check fails; a limit never kills without a word.",
    (const struct key[]){
        {"start", "a duration", "60s", "Until the first step of all workers.", "start: 2m",
         reader_duration, AT(start_ns), .min = 1},
        {"stall", "a duration", "(30s, under semantics: torchrun 2m)",
         "Without a step although nothing is broken.", "stall: 10s", reader_duration, AT(stall_ns),
         .min = 1},
        {"total", "a duration", "10m", "The whole run.", "total: 2m", reader_duration, AT(total_ns),
         .min = 1},
        {"grace", "a duration", "30s", "The end of the run, from the first agent that ends.",
         "grace: 10s", reader_duration, AT(grace_ns), .min = 1},
        {"fault", "a duration", NULL,
         "No fault lasts longer: one that has no end of its own by then is undone.", "fault: 30s",
         reader_duration, AT(fault_ns), .min = 1},
        {"dead_man", "a duration", "30s",
         "When the harness stands still (stopped, or stuck) for so long, nodes and wire undo by "
         "themselves what lasts: faults, partitions, limits. The run is inconclusive then.",
         "dead_man: 10s", reader_duration, AT(dead_man_ns), .min = 1000000000},
        {"faults", "a whole number", NULL,
         "At most so many faults are in force at once. A timeline of which that can be seen is "
         "refused; a fault whose moment comes while so many last does not fire, and the run is "
         "inconclusive. --max-concurrent-faults overrides it.",
         "faults: 1", reader_int, AT(faults), .min = 1, .max = 1000},
        {0},
    },
};
