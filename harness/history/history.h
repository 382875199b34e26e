/* history: what happened, in one order. The run only writes it, checks and reports only read it.
 * It is an interface: others may write one and have it judged, and read ours (docs/histories.md).
 *
 * history.jsonl holds one JSON object a line, append-only. Every line has
 *     seq     1, 2, 3 ... without a gap: a record that is missing is missed
 *     t       CLOCK_MONOTONIC nanoseconds, stamped by the harness on receipt
 *     source  who says so: kernel | wire | disk | probe are evidence; job | launcher | user are
 *             claims; harness is the record of what the harness itself did
 *     kind    what; then the fields of that kind, and node ("n0") and pid (host's) where they apply
 * and of what was stamped on a host with a clock of its own, where t is that stamp in the harness's time,
 *     bound   it may have been so many nanoseconds earlier or later
 *     there   the stamp itself, in nanoseconds of that host's clock: two of one node are in that order
 *     late    whoever stamped it there may have been so late for it; bound has that in it
 *
 * kinds by source (history_kinds.c is the table of them that programs read):
 *
 *   harness   run {v, scenario, file, seed, version, launcher, control, kernel, exits: pidfd|
 *             events|zombie, set:[key=value..], untrusted?, fixed_ranks?}   first line; a control
 *             run's own history says control: true; kernel is the release; exits is how the status
 *             of a worker that ends is seen, zombie meaning that it is missed when its parent is
 *             quicker; set is what --set has overridden; untrusted: run --untrusted
 *             calibration {at: begin|end, wall_ns:[n..], processors, cpu_ns, sum}   a small fixed
 *             computation, each time that it was timed on each of these processors: before the first node is on, after the last is off
 *             node-up {node, addr}   node-down {node, why: killed|end}   steady {}
 *             fault-fired {id, n, fault, on:[name..], step?, lag_ns, held}   the trigger came true
 *             fault-in-force {id, n, fault, t0, ends_node, effects:[word..], signal?, targets:
 *             [{what: node|agent|worker|store, name, node, pid, rank?}]}   ends_node: it takes the
 *             node or its agent away; effects: what it does, in the words of faults/effect.h;
 *             signal: by which it asks an agent to leave, SIGTERM where it says none
 *             fault-failed {id, n, error}   fault-not-fired {id, why}   fault-recovered {id, n,
 *             error?}   undone, or with error, perhaps not
 *             dead-man {who, silent_ns, undone?:[{fault, name, error}]}   the harness had stood still
 *             for so long (limits.dead_man) that this node, or "the wire", undid what lasted there
 *             fault-unfelt {id, n, on, why}   no evidence of it has come until the end
 *             heal-idle {id, of, why}   the moment of a heal came, and there was nothing to end
 *             quiet {ns, limit: stall|total, left_ns}   nothing has happened for so long; left
 *             until that limit
 *             limit {name: start|stall|total, ns, hang?}   interrupted {signal | why: budget}
 *             kept {dir}
 *             by-hand {line, error?}   what was asked for by hand; error: it was refused
 *             paused {step?}   resumed {ns}   it stands still, at its start or where a worker came to that
 *             step; it goes on, after so long
 *             clock {node, host, ahead_ns, bound_ns, round_ns, samples, steps}   each second, of a node
 *             whose host has a clock of its own: by how much it is ahead of the harness's, give or take;
 *             round: the shortest that a question and its answer were on their way
 *             clock-step {node, host, was_ns, ahead_ns, bound_ns}   that clock, or ours, has been set since
 *             the clock before: ahead by was_ns, and then by ahead_ns
 *             control {model, label, step_ns, pace_ns?, first_step?, last_step?, loss?, kept?,
 *             saved?, saved_gap?, workers?, named?, cached, dir}   what the control run gave; pace:
 *             mean time from step to step, of all workers; kept: so many complete checkpoints lay
 *             there in the end, fewer than it had committed; saved: the newest of them, saved_gap:
 *             the most that lay between two; workers: of its last round, named: so many of these
 *             named a model
 *             control-weights {from, weights:[text..]}   what its workers told with the steps from
 *             `from` on; "": nothing
 *             store-said {id, n, who: coordinator|store-leader, node, term | error, took_ns}   whom
 *             that fault means, as the store was asked before it fired
 *             store-read {id, n, on, what, when: before|after, number | error, took_ns}   what our
 *             own client has read in that store, before the fault and when it was in force
 *             scheduler-read {id, n, on, what, when, number | error, took_ns}   what a scheduler has
 *             said of that node to our own client; drains: 1, it gets no more jobs, or 0
 *             job-end {why: ended|limit|interrupted|error, error?}
 *             unwatched {node, pid?, why}   nobody reads what it prints
 *             observed {lines, late_lines, cut_lines, skipped_bytes, thinned, buffered, patterns:
 *             [{event, pattern, own, matched, unread?, closest?}]}   what came of observe, at the
 *             end. late: of workers that had ended, cut: too long, thinned: events that are not in
 *             the history, buffered: workers that told their steps in bursts, own: not of the
 *             preset, unread: took no number
 *             lines {worker_lines, program_lines, patterns:[{pattern, matched, recorded}]}   how
 *             much was read for expect.log, at the end; recorded: so many of these are in the
 *             history
 *             heard {node, lines, said, whole}   all that the agents of that node have printed was looked
 *             through for what they say of the job; whole: nothing was left out
 *             lag {max_ns, window_ns, why?}   the harness was late by up to max_ns in the window_ns
 *             before t; without why, and by more than HISTORY_AWAY_NS: it was away
 *             signals {seen, why?}   whether the kernel tells who is sent which signal, at the
 *             beginning; later, seen false: some were lost
 *             scarce {what: memory-limit|processes|memory|neighbours, limit, used, why}   a limit of
 *             the host may have been in the job's way; why: a sentence that names it
 *             given {node, env, cwd, ..}   what the node's launcher is given when it is started: the
 *             fields of the kernel's record of that name
 *             health {left:[text..], complete, cpu_ns}   after the last node is down; on the host;
 *             cpu_ns: of the harness itself
 *
 *   kernel    agent-start {node, pid}   agent-exit {node, pid, code|signal}
 *             worker-exit {node, pid, code|signal|unknown:true}   t: when its pidfd woke; the line
 *             may come later, behind lines with a later t, when the status took its time
 *             store-start {node, pid}   store-exit {node, pid, code|signal}
 *             disk-call {node, pid, verdict: failed|slowed|stuck, path, op, error, by: calls}   a fault
 *             on a disk has struck this call, one of its first
 *             fault-evidence {id, n, what}   leftovers {node, processes:[{pid,name}], ports:[n..],
 *             shm:[path..], shm_ids:[id..], cgroups:[path..]}   counted inside the node after its agent
 *             ended; shm_ids: of shm, as shared-memory has them
 *             shared-memory {node, pid, id, n, held:[id..]}   what that process and those that it had
 *             started had of /dev/shm when that fault was about to end them
 *             given {node, pid, env:{NAME: mark}, cwd, fds:[[number, what]..], umask, blocked:
 *             [signal..], ignored:[signal..], limits:{name: [soft, hard]}, nice, policy,
 *             oom_score_adj, cgroup, leads_group, leads_session, terminal | error}   what the worker
 *             was given whose worker-start follows; mark: equal for equal values of one run, and
 *             nobody finds the value by it; fds: those that an exec leaves open; -1: unlimited
 *             signal {node, pid, worker, signal, by, who: launcher|job|other}   t: when it was
 *             sent, by the kernel; pid: who gets it, the worker or one of the group that it leads
 *             signal-group {node, pid, members:[{pid, name}]}   who else was in the group of that
 *             worker when the launcher first told it to end, and had been for 50 ms
 *             usage {node, pid, round, who: agent|helpers|store|worker, rank?, processes?, rss,
 *             threads, fds, kinds: {socket, pipe, file, pidfd, anonymous: so many of fds}}   what is
 *             held when a round is complete; by a worker when all of its round have stepped;
 *             helpers: all processes together that the agent (pid) has besides the workers; who
 *             absent: agent
 *             listening {node, port, round, found:[{local, remote?, state: listen|connected}]} what
 *             had MASTER_PORT at an end on the nodes of a round, when its group had formed
 *             devices {at: start|round-start|round|first-end|round-end|job-end, round, devices:
 *             [{index, uuid, used, processes:[{pid, node, bytes}], hidden}], open:[{pid, node,
 *             name}], nodes?:{n0: [uuid..]}, error?, took_ns}   who computes on the devices that
 *             nodes were given, by the driver's lists (node "": not of this run; hidden: so many
 *             cannot be told from here; bytes -1: not told), and which processes of the nodes have
 *             a file of the driver open; round-start: its first worker has started; round: all have
 *             stepped; first-end, round-end: its first, its last worker has ended; nodes: what each
 *             was given
 *
 *   wire      fault-evidence {id, n, what, dropped_in, dropped_out | fewest | count}
 *             wire {node, frames_in, bytes_in, frames_out, bytes_out, dropped_in, dropped_out,
 *             data_bytes_out, cut_to:{node: frames}, passed_to:{plane: {node: frames}},
 *             bytes_to:{node: bytes}, delayed_to?, lost_to?, duplicated_to?, reordered_to?,
 *             corrupted_to?, throttled_to?, oversize_to?, reset_to?, refused_to?, blocked_to?:
 *             {node: frames}}   (in: towards the node; data: all but the store's and MASTER_PORT's;
 *             cut_to: dropped by a partition on the way to that node; passed_to, bytes_to: passed
 *             on, by plane, and the bytes of all of it; the others: what an impairment did to
 *             frames on that way)
 *
 *   disk      disk-call {node, pid, verdict: failed|slowed|stuck|shortened|late, path, op, error,
 *             by: disk}   the same, told by a disk of ours; pid 0: pages of a mapping
 *             checkpoints {round, dir, newest, complete:[{step, round, path, model?}], damaged:
 *             [{path, why}], drafts?, error?}   read when the last worker of `round` has ended (round 0:
 *             before the first); model: SHA-256 of the weights that lie there, of ranktrain's
 *             format; drafts: so many other names there say that they are unfinished; error:
 *             job.checkpoint.complete gave no answer
 *             worker-file {node, pid, what: stdout|stderr|error-file, when: exit|end, path, bytes,
 *             mark, linked}   where it is a plain file: when that worker has ended, and when the
 *             job has; mark: equal for equal bytes, of what stood in it at the first look; linked:
 *             it has a name
 *             fault-evidence {id, n, what, before, after | path, was, is}   was, is: what went by that
 *             path before the fault, and when a worker was started after it
 *
 *   probe     worker-start {node, pid, argv0, env:{NAME:value}, below?, by?}   worker-exec {node,
 *             pid}   below: the worker that has started it, where the job starts ranks itself; by:
 *             who says what it was given, when it has no rankprobe: kernel (as its program was
 *             started) or job (it says so of itself)
 *             exec-failed {node, pid, error}
 *             fault-evidence {id, n, what, program, told, ahead_least, ahead_most}   what the
 *             programs of a node were told of the time, in ns, and how far ahead it was
 *
 *   job       ready | first-collective | step {step, loss, samples, shards:[..],
 *             weights?} | samples {step, epoch, of, ids:[..]} |
 *             checkpoint-begin|write|commit {step, path} | resume {step, path} | exit-barrier |
 *             done {model} | region {name, address, bytes} | other: with node, pid, job_seq, lost; from: "output" and neither of
 *             the last two when it was read from what the worker printed
 *             log {node, pid, from, id | pattern, line}   a line that id of the timeline waited
 *             for, or that the scenario expects something of (expect.log)
 *
 *   launcher  launcher {node, pid, what, round, of?, rank?}   of and rank: the node and the worker
 *             that the launcher calls the first-failure of that round
 *             store-keys {round, n}   how many keys the job has in its store, as the store says,
 *             when a round is complete
 *             log {node, from, id | pattern, line}   likewise, of what the node's own program
 *             printed
 *
 *             said {node, from, line}   a line in which the agent tells of rounds, of workers that
 *             failed or of the outcome, or one of torchelastic's events; recorded when the job has ended
 *
 *   user      answer {node?, probe, ok, value?, status?, error?, took_ns}   what a probe of the scenario
 *             was answered; ok: within its tolerance; status: all of what `rankrun status` has told
 *
 * A record in memory is the parse of the line that was written, so a check sees live exactly what
 * it sees when the run is judged again. */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum source {
    SOURCE_HARNESS,
    SOURCE_KERNEL,
    SOURCE_WIRE,
    SOURCE_DISK,
    SOURCE_PROBE,
    SOURCE_JOB,
    SOURCE_LAUNCHER,
    SOURCE_USER,
    SOURCE_N
};

const char *source_name(enum source s);
bool source_is_evidence(enum source s); /* kernel, wire, disk, probe */

struct record {
    int64_t seq, t_ns;
    enum source source;
    const char *kind;
    const char *node;          /* "" when it has none */
    int64_t pid;               /* 0 when it has none */
    int64_t bound_ns;          /* 0: by the harness's own clock */
    const struct json *fields; /* the rest of the line: all that has no member here */
};

struct pack;

struct history {
    struct arena arena, scratch;
    struct pack *pack;
    struct record **records;
    size_t n, cap;
    FILE *out; /* NULL when it was loaded */
    struct buf line;
    struct json_writer writer;
    size_t head;     /* bytes of line that are the common fields */
    bool torn;       /* the last line was cut off (a killed harness); it is left out */
    bool too_long;   /* there is more than was read */
    int64_t missing; /* how many numbers of records are left out */
    int64_t gap;     /* behind this record the first of them */
    int write_error; /* errno of the first line that could not be written, 0: none */
};

/* A new history written to path (NULL: memory only). */
int history_create(struct history *h, const char *path, struct err *err);
/* The same into a file that is open for it; takes the descriptor. */
void history_create_in(struct history *h, int fd);
/* Reads a recorded one. Errors name file and line: -ENOENT and the like when it cannot be read,
 * -EBADMSG when it is no history, one that this version does not know, or has a line that lacks
 * what its kind demands. */
int history_load(struct history *h, const char *path, struct err *err);
/* The same from a file that is open; takes the descriptor. path: what it is called. */
int history_load_from(struct history *h, int fd, const char *path, struct err *err);
/* Reads until the records take so much memory; what follows is left out (too_long). history_load
 * takes HISTORY_BYTES_MAX, which is some ten million records. */
int history_load_within(struct history *h, const char *path, size_t bytes_max, struct err *err);
#define HISTORY_BYTES_MAX ((size_t)4 << 30)
/* One more line of a history that somebody else is writing, into h, which began zeroed: the record is the
 * last of h. -EBADMSG: it is none, or the first is not the first of a history; nothing is added. */
int history_take(struct history *h, const char *line, size_t len, struct err *err);
/* *ret becomes the part of h that the sources in mask (1u << SOURCE_...) have said; it shares the
 * records, so h must outlive it. Freed with history_fini too. */
void history_filter(struct history *ret, const struct history *h, unsigned mask);
/* *ret becomes h with other times: t_ns, one for each record, and t0 of a fault moved by as much. It
 * shares all else, so h must outlive it. Freed with history_fini too. */
void history_retime(struct history *ret, const struct history *h, const int64_t *t_ns);
void history_fini(struct history *h);

/* A moment of a host with a clock of its own: t, give or take bound_ns, is there_ns by that clock, or up to
 * late_ns before it. */
struct history_stamp {
    int64_t t_ns, bound_ns, there_ns, late_ns;
};

/* history_begin opens a line with the common fields; the caller puts what else there is with the
 * json_put_ functions; history_end writes it out and returns the record, which lives as long as h.
 */
struct json_writer *history_begin(struct history *h, int64_t t_ns, enum source source,
                                  const char *kind);
/* The same of what was stamped elsewhere; bound_ns 0: history_begin. */
struct json_writer *history_begin_at(struct history *h, const struct history_stamp *at,
                                     enum source source, const char *kind);
const struct record *history_end(struct history *h);

bool record_is(const struct record *r, const char *kind);
const struct json *record_get(const struct record *r, const char *key); /* NULL: absent */
const char *record_text(const struct record *r, const char *key);       /* "": absent */
int64_t record_i64(const struct record *r, const char *key, int64_t absent);
int64_t record_late_ns(const struct record *r);
int64_t record_there_ns(const struct record *r); /* its own host's stamp; t where it has none */
void record_put(const struct record *r, struct json_writer *w); /* the whole line, as an object */
/* The record of that number, or NULL. */
const struct record *history_record(const struct history *h, int64_t seq);
/* The newest record of that source and kind, or NULL. */
const struct record *history_newest(const struct history *h, enum source source, const char *kind);

/* The file in logs/NODE that takes what the worker with that pid printed, which ran then; "": it
 * has none of its own. */
const char *history_output(const struct history *h, int64_t pid, int64_t t_ns);

/* It stops before the job has ended: what it does not show may have come later. */
bool history_is_cut(const struct history *h);
/* rankquake sim has made it: time is virtual, and some ends are recorded after what came later. */
bool history_is_simulated(const struct history *h);

/* A harness whose loop was late by more was away: what came meanwhile was not seen as it came, and
 * some of it never. Longer than any machine stands still that is merely busy, shorter than agents
 * wait for one another by default. */
static const int64_t HISTORY_AWAY_NS = 2000000000;
/* For so long whoever has something to tell waits for it without being asked (rankquake.h): up to
 * that an absence has made everything late and lost nothing. */
static const int64_t HISTORY_BLIND_NS = 5000000000;

#define history_each(it, h)                                                                        \
    for (size_t it##_i = 0; it##_i < (h)->n; it##_i++)                                             \
        for (const struct record *it = (h)->records[it##_i]; it; it = NULL)
