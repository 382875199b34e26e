/* observe: everything seen, written to the history in one order.
 *
 * The recorder is the one way into the history during a run: whoever has seen something opens a
 * record, puts its fields and ends it; rounds are then brought up to date and the listener (the
 * engine) is told. A listener may write further records while it is being told.
 *
 * The observer owns the connections of all processes that speak to the harness (RANKQUAKE_EVENTS;
 * the protocol is in scenarios/jobs/rankquake.h) and the pidfds of workers. Single-threaded. */
#pragma once

#include "base/sys/loop.h"
#include "harness/carrier/clock_bound.h"
#include "harness/history/history.h"
#include "harness/history/rounds.h"

#include <sys/types.h>

struct event_client;
struct given_key;

/* from: the connection a job's, probe's or launcher's record came by, else NULL; valid only during
 * the call. The sender of an armed event waits (client_is_held); it goes on when the listener
 * returns, unless it was kept with client_keep, and then with observer_release of the last of the tags
 * that it is kept under. */
typedef void record_fn(void *arg, const struct record *r, struct event_client *from);

struct recorder {
    struct history *history;
    struct rounds *rounds;
    record_fn *fn;
    void *arg;
};

struct json_writer *recorder_begin(struct recorder *rec, int64_t t_ns, enum source source,
                                   const char *kind);
/* The same of what another host has stamped. */
struct json_writer *recorder_begin_at(struct recorder *rec, const struct clock_stamp *at,
                                      enum source source, const char *kind);
const struct record *recorder_end(struct recorder *rec, struct event_client *from);

struct observer;

/* probe: the path of our rankprobe; only a process that runs it is believed when it says what a
 * worker was given. Returns NULL with err when there is no such file or no memory to share. */
struct observer *observer_new(struct loop *l, struct recorder *rec, const char *probe,
                              struct err *err);
struct observer *observer_free(struct observer *o); /* NULL is allowed; returns NULL */

/* A process of the node has connected; takes fd. pid is the host's; node must outlive the observer.
 */
void observer_connect(struct observer *o, const char *node, int fd, pid_t pid);

/* A process on another host that speaks to its helper, which tells us. */
struct far_speaker {
    const char *node; /* must outlive the observer */
    pid_t pid;        /* its number here: host_process.h */
    bool probe;       /* its helper has seen that it runs rankprobe */
    int end;          /* readable when it ends; the observer's now; -1: nobody watches it */
    void (*release)(void *arg);   /* it waits, and may go on */
    void (*forgotten)(void *arg); /* nothing is said to it any more */
    void *arg;
};
struct event_client *observer_join(struct observer *o, const struct far_speaker *s);
/* It has said this, at that moment. */
void observer_hear(struct event_client *c, const char *text, size_t len,
                   const struct clock_stamp *at);
/* Its connection has ended, and it runs something else than rankprobe by now, or not. */
void observer_leave(struct event_client *c, bool became_other);
/* fn is told what observer_arm is, from now on and at once: for those whose page is not ours. */
void observer_on_arm(struct observer *o, void (*fn)(void *arg, uint32_t kinds, uint64_t next_step),
                     void *arg);

/* Records what the program of a node will be given, before it is started (given.h): `parent` starts
 * it. */
void observer_record_planned(struct observer *o, const char *node, pid_t parent,
                             const char *const *env, const char *cwd);

/* The same, and of its workers, as the helper of another host has read it there; pid 0: of the program.
 * The key makes all marks of a run alike. */
const struct given_key *observer_given_key(const struct observer *o);
void observer_record_given(struct observer *o, const char *node, pid_t pid,
                           const struct json *given, const struct clock_stamp *at);

/* The bit of a kind of event, "step"; kinds that have none of their own share that of "other". */
uint32_t observer_kind(const char *name);

/* What jobs are asked to tell besides: its bits of enum rankquake_ask, before any job has connected.
 */
void observer_ask(struct observer *o, bool weights, bool samples);

/* Of jobs' events `sent` says when, before any job has connected. */
void observer_note_sent(struct observer *o);

/* Which events make their sender wait: a bit per kind, and for steps the first one. */
void observer_arm(struct observer *o, uint32_t kinds, uint64_t next_step);

/* fn is called when a worker has ended and what it had sent is recorded, before its end is. */
void observer_on_end(struct observer *o, void (*fn)(void *arg, pid_t pid), void *arg);

/* The pidfd of a worker that lives, -1 otherwise; it stays the observer's. */
int observer_worker_pidfd(const struct observer *o, pid_t pid);
/* How the exit status of a worker is seen on this host, see pidfds_way. */
const char *observer_way(const struct observer *o);
/* Notes what has already happened: messages in the sockets, ended workers (pidfds_drain). */
void observer_drain(struct observer *o);

bool client_is_held(const struct event_client *c);
void client_keep(struct event_client *c, int tag); /* tag > 0 */
/* Tells of every sender that is kept under this tag: pid is the worker's or agent's, speaker's the
 * process that waits. */
typedef void kept_fn(void *arg, const char *node, pid_t pid, pid_t speaker);
void observer_kept(const struct observer *o, int tag, kept_fn *fn, void *arg);
/* Lets every sender go on that is kept under this tag and no other; those that died meanwhile are
 * forgotten. */
void observer_release(struct observer *o, int tag);
