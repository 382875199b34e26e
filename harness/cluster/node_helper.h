/* node_helper: the first process of a node (`rankquake node`): pid 1 of its namespaces, or where
 * nodes are processes the root of their tree. It arranges the node, starts the program the node is
 * there for (the agent, or the store), runs faults on processes, reaps whatever loses its parent,
 * and counts what the program left behind. It ends when its carrier to the harness does, and the
 * node with it.
 *
 * Messages (carrier.h), in the order of a node's life; paths are the host's. Each of the helper's
 * says when, `t`, by its own CLOCK_MONOTONIC; on another host also `late`, by how much older what it
 * tells may be. What neither end knows is refused, and so is whatever comes before hello.
 *   both     hello {version, ..}: hello.h; a helper elsewhere says `cannot` too, {word: why}. Another version is refused before anything is done
 *   harness  file {token, do, path, at, max}    helper  file {token, ..}: file_answer.h
 *   harness  inventory {}             helper  inventory {..}: host_facts.h
 *   harness  left {do, run}           helper  left {at_work, left, pages}: host_left.h, {groups}: left_groups.h
 *   harness  preload {programs}       helper  preload {error|null}: whether programs of its host take along our
 *            object for clocks, which lies in that folder: host_clock.h; before setup
 *   harness  clock {t1}               helper  clock {t1, t2, t3}: heard and answered; clock_bound.h
 *   harness  setup {name, isolation, privileged, watch, calls, hosts, keep:[path..], dirs:[path..],
 *                   root: {dir, show:[path..], programs, libraries:[name=path..], name_servers,
 *                   home}, seal: {root, writable:[path..]}}
 *            or, for processes, setup {name, isolation, privileged, watch, calls, dir, addr, events}
 *            each with {linger}: so many ns what the program leaves may live before it is counted;
 *            with {monotonic, boottime}: so many ns its uptime is ahead of the host's; with
 *            {dead_man, end}: after so many ns of silence it undoes what lasts, or ends (dead_man.h);
 *            and with the page of its wall clock, if it has one (clock_page.h), behind the mounts
 *            of disks:[path, path], if it has such (disk_keeper.h)
 *            watch: the kinds of call of the program that are watched, as enum call_kind;
 *            calls: their numbers, of those that are watched besides
 *            events: an abstract name for RANKQUAKE_EVENTS, where its path would be too long
 *            privileged: the program keeps all rights, and there is no `seal`
 *   helper   ready, with the listener of RANKQUAKE_EVENTS and, in namespaces, a sock_diag socket
 *            and the network namespace
 *   harness  net {addr, prefix, metadata}    when eth0 is there    helper  net {}    in namespaces
 *            only; metadata: it has a cloud's metadata service (metadata.h)
 *   harness  run {argv, env, cwd, log}
 *   helper   started {} with a pidfd and, for `watch`, a call_watch | failed {why}; then exited
 *            {status}; then, when nothing lives any more but after a second at the latest,
 *            leftovers {found}
 *   harness  fault {token, fault, recover, kind, name, args:{..}, seed} with the target's pidfd
 *            and the file of what it keeps
 *   helper   injected {token, error|null}
 *   harness  notice {cloud, text}    what the metadata service says from now on
 *   harness  sockets {port, round}    helper  sockets {port, round, found}: see sockets.h
 *   harness  beat {}                  nothing but a sign that it is there: see dead_man.h
 *   helper   healed {silent_ns, undone:[{fault, name, error|null}..]}    it said nothing for too long
 *   helper   broken {error}: it cannot go on
 *   helper   bye {left:[text..], healed:[{fault, name, error|null}..], signal}: it ends; what it could
 *            not take along, and what it has undone; signal where one has told it to end
 *
 * Without a lane there are no descriptors, and this is said in their place:
 *   setup    {run, probe}: which run it is, for the host's lock and its log of acts (host_record.h),
 *            and the path of rankprobe on this host
 *            {clock}: the folder of our programs there, where the plan moves the wall clock: the helper makes the
 *            page of it, and gives it to its program
 *            {uptime}: so long its program is to take the host for being on, in place of {monotonic, boottime}
 *   ready    the helper keeps the listener of RANKQUAKE_EVENTS: node_clients.h
 *   run      helper  output {bytes}: what the program prints, in base64, as it comes
 *   started  {pid, start}: by these two a process of the host is known, start in clock ticks; {monotonic,
 *            boottime}: by so much the kernel says that its clocks are ahead of the host's
 *   run      what `env` does not name is as the helper has it
 *   fault    {pid, start}: of the target; {keep}: where what it keeps goes, a file that all hosts share
 *   injected {before, seen}: what the kernel showed of it before and after, and of who waits:
 *            seen_process.h
 *   harness  look {pid, start}        helper  look {seen}: the same, asked again
 *   injected, look {limits:[{limit, text}..]}: of limits that the node is held to, what the kernel has
 *            counted there until then; of one that was undone, until just before
 *   injected, look {clock:{generation, since, by, period, drift, program, first, last, least, most}}: while its
 *            wall clock is wrong, how, and what its programs were told of it: pairs of the real time and the said
 *   harness  signal {token, pid, start, signo}    helper  signalled {token, error|null}
 *   harness  arm {kinds, next_step, calls:[{number} | {kind, like}..]}: whose events wait (armed_page.h),
 *            and which calls: of that number, or of a kind (enum call_kind) on files of such a name
 *   run      with `watch` the helper itself watches the program's calls, for cuts and what is armed
 *   helper   called {call, kind, number, pid, start, thread, above:[{pid, start}..], from, to, bytes}: it
 *            waits; above: its parents. from, to: its files (call_file.h), of so many bytes, -1: unknown
 *   harness  pass {call}              it may go on
 *   setup    {shared, disk}: where what the job calls so lies on this host, for faults on disks
 *   helper   struck {rule, verdict, does, path, errno, pid, start, above}: such a fault has met an operation of
 *            the program's, one of its first: failed, slowed or stuck (disk_verdict_names)
 *   bye      {rules:[{.., matched, done, used}..]}: the rules on disks in force at last, and how far each had come
 *   fault    {had}: one of these, as the helper of the node's last life has said it: from there it goes on
 *   setup    {given}: a key (given_key_put), if it wants to know what processes are given
 *   helper   given {given}            before `started`: what the program will be
 *   harness  dump {budget}            helper  dumped {pid, name, bytes} of each process of the node, then
 *            dumped {done, error|null}, after so many ns at the latest: process_dump.h, in base64
 *
 * and a host does its half of a partition (host_cut.h):
 *   harness  part {token, name, way: "sockets"|"table", planes:[word..], ports:{store, store_peer,
 *                  bootstrap:[n..]}, listeners, keep:[{address, theirs, ours}..],
 *                  peers:[{name, addresses:[text..], deaf, mute}..]}
 *   helper   parted {token, error|null, way, caught, missed:[text..]}
 *            peers: addresses are numbers, or "*", everybody; deaf, mute (both unless said otherwise):
 *            nothing is heard from it, nothing is said to it. At a socket only new connections can
 *            be mute, and what is said on those that there are is for the peer's own helper
 *            planes: of ports, as in plane_names; all, if none are named. keep: what goes on, ports
 *            0: any; how ssh reaches the helper always does. listeners: those of the job are deaf
 *            too, to everybody; only of "*". One of the same name takes the place of what was
 *            in force, and goes on counting
 *   harness  mend {token, name}       helper  mended {token, error|null, late, peers}
 *   harness  count {token}            helper  counted {token, cuts:[{name, way, late, peers:[{name,
 *                                                                     dropped, unsaid, passed,
 *                                                                     connections}]}]} */
#pragma once

#include "base/json.h"
#include "base/sys/process.h"
#include "base/texts.h"
#include "harness/carrier/carrier.h"
#include "harness/host/sockets.h"

/* Serves the carrier until its other end has gone, and takes its ends. dead_man_ns: for how long
 * nothing may be heard before `setup` says so. Without a lane it is on another host, or as if it were:
 * then it undoes what lasts and ends after such a silence. Returns 0, or a -errno when it could not
 * even begin. */
int node_helper_run(const struct carrier_ends *ends, int64_t dead_man_ns, struct err *err);

/* Of a helper on another host, whose number is said while it lives: how it is known, and, when it has ended, the
 * end of the control groups in which it held its node to limits, and of the page of its clock. Returns how many
 * stay. */
enum { NODE_HELPER_OWNER_MAX = 96 };
void node_helper_owner(pid_t helper, char ret[NODE_HELPER_OWNER_MAX]);
int node_helper_clear(const char *owner);

/* A root file system of the node's own (`root` of setup): entered before, furnished after it has
 * its own /tmp and /run. What is shown is of the host's paths, and at the same place. */
int node_root_enter(const struct json *root, struct err *err);
int node_root_furnish(const struct json *root, struct err *err);

/* What the node's program cannot change (`seal` of setup), which comes last of all: as root the
 * host's system (plan_sealed, unless the node has a root of its own), devices, /proc and /sys; as
 * anybody its cgroups. The n paths of `writable` stay as they are. */
int node_seal(const struct json *seal, bool own_root, const char *const *writable, size_t n,
              struct err *err);

/* The disks of ours that it has (`disks` of setup): where, and the mounts. */
struct node_disks {
    const struct json *paths; /* NULL: none */
    int mounts[2];
};
/* In the mount namespace of the caller, which is its own. */
int node_disks_attach(const struct node_disks *d, struct err *err);

/* What differs in a node by how it is kept apart: one const struct each, in node_setup.c and
 * node_tree.c. What may be NULL has nothing to do there. */
struct habitat {
    const char *name; /* of the isolation */
    /* What `setup` asks for. All of it ends with the node. Returns 0 or -errno. */
    int (*setup)(const struct json *setup, const struct node_disks *disks, struct err *err);
    /* The descriptors that go with `ready`, the listener of RANKQUAKE_EVENTS first; they are the
     * caller's, also those made before an error. */
    int (*ready)(int ret_fds[CHANNEL_FDS_MAX], size_t *ret_n, struct err *err);
    int (*net)(const struct json *net, struct err *err); /* NULL: it needs none */
    /* A descriptor to be told of by `noticed` when it can be read; -1: none. May be NULL. */
    int (*notice)(void);
    void (*noticed)(void);
    /* The program is about to start. May be NULL. What it has done in the child is done before the
     * program loses its rights. */
    void (*starting)(struct process_spawn *s, bool privileged);
    void (*put_sockets)(struct json_writer *w, uint16_t port);
    void (*put_leftovers)(struct json_writer *w);
    void (*heal)(void); /* undoes what the harness does to its processes by itself. May be NULL */
    /* The carrier has ended: what the kernel does not take along. Adds what is left all the same. May
     * be NULL. */
    void (*end)(struct texts *left);
};
extern const struct habitat habitat_namespaces, habitat_processes;

/* Listens at the path, or behind @ at the abstract name, for processes of any user. Returns the
 * descriptor or a -errno. */
int node_listen(const char *path, struct err *err);

/* What is found of a node once its program has ended. */
struct leftovers {
    const pid_t *pids;
    size_t pids_n;
    bool (*is_ours)(void *arg, const struct socket_line *s); /* NULL: every socket is */
    void *arg;
    char **shm; /* paths and names, NULL-ended */
};
/* Appends {processes:[{pid,name}], ports:[n..], shm:[path..], shm_ids:[id..], cgroups:[path..]} as the member
 * `found` of w; ports are those of listening TCP sockets, cgroups those that a process has gone
 * into. */
void leftovers_put(struct json_writer *w, const struct leftovers *l);
/* Everything that can be seen from here but the caller: all of the node's namespaces. */
void leftovers_of_namespaces(struct json_writer *w);
