/* history: what happened, in one order. The run only writes it, checks and reports only read it.
 *
 * history.jsonl holds one JSON object a line, append-only. Every line has
 *     seq     1, 2, 3 ...
 *     t       CLOCK_MONOTONIC nanoseconds, stamped by the harness on receipt
 *     source  who says so: kernel | wire | disk | probe are evidence; job | launcher are claims;
 *             harness is the record of what the harness itself did
 *     kind    what; then the fields of that kind, and node ("n0") and pid (host's) where they apply
 *
 * kinds by source:
 *   harness   run {v, scenario, seed, version, launcher, control}   the first line
 *             node-up {node, addr}   node-down {node, why: killed|off|end}   steady {}
 *             fault-fired {id, n, fault, on:[name..], step?, lag_ns, held}  the trigger came true
 *             fault-in-force {id, n, fault, t0, targets:[{what, name, node, pid, rank?}]}
 *             fault-failed {id, n, error}   fault-not-fired {id, why}   fault-recovered {id, n}
 *             limit {name: start|stall|total, ns}   interrupted {signal}
 *             control {model, label, step_ns, cached, dir}   what the undisturbed run gave
 *             job-end {why: ended|limit|interrupted|error}   lag {max_ns, window_ns}
 *             health {left:[text..], complete}   after the last node is down; on the host
 *   kernel    agent-start {node, pid}   agent-exit {node, pid, code|signal}
 *             worker-exit {node, pid, code|signal|unknown:true}
 *             store-start {node, pid}   store-exit {node, pid, code|signal}
 *             fault-evidence {id, n, what}       leftovers {node, processes:[{pid,name}],
 * ports:[n..], shm:[path..], cgroups:[path..]}    counted inside the node after its agent ended
 *   wire      fault-evidence {id, n, what, dropped_in, dropped_out}
 *             wire {node, frames_in, bytes_in, frames_out, bytes_out, dropped_in, dropped_out,
 *             data_bytes_out}   (in: towards the node; data: all but the store's and MASTER_PORT's)
 *   disk      checkpoints {round, dir, newest, complete:[{step, round, path}], damaged:[{path,
 * why}]} read when the last worker of `round` has ended (round 0: before the first) probe
 * worker-start {node, pid, argv0, env:{NAME:value}}   worker-exec {node, pid} exec-failed {node,
 * pid, error} job       ready | first-collective | step {step, loss, samples, shards:[..]} |
 *             checkpoint-begin|write|commit {step, path} | resume {step, path} | exit-barrier |
 *             done {model} | other: with node, pid, job_seq, lost
 *   launcher  launcher {node, pid, what, round}
 *
 * A record in memory is the parse of the line that was written, so a check sees live exactly what
 * it sees when the run is judged again. */
#pragma once

#include "agent/base/arena.h"
#include "agent/base/err.h"
#include "agent/base/json.h"

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
    const struct json *fields; /* the whole line */
};

struct history {
    struct arena arena;
    struct record **records;
    size_t n, cap;
    FILE *out; /* NULL when it was loaded */
    struct buf line;
    struct json_writer writer;
    bool torn; /* the last line was cut off (a killed harness); it is left out */
};

/* A new history written to path (NULL: memory only). */
int history_create(struct history *h, const char *path, struct err *err);
/* Reads a recorded one. Errors name file and line. */
int history_load(struct history *h, const char *path, struct err *err);
void history_fini(struct history *h);

/* history_begin opens a line with the common fields; the caller puts what else there is with the
 * json_put_ functions; history_end writes it out and returns the record, which lives as long as h.
 */
struct json_writer *history_begin(struct history *h, int64_t t_ns, enum source source,
                                  const char *kind);
const struct record *history_end(struct history *h);

bool record_is(const struct record *r, const char *kind);

#define history_each(it, h)                                                                        \
    for (size_t it##_i = 0; it##_i < (h)->n; it##_i++)                                             \
        for (const struct record *it = (h)->records[it##_i]; it; it = NULL)
