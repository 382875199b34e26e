/* host_process: processes of other hosts, as this one knows them. Each has a number here that no
 * process of this host has, made of its node's place and its number there, so that whoever keys on a
 * pid may have either; and a descriptor that becomes readable when it ends, as a pidfd does. What
 * else is known of it is what its helper has told.
 *
 * There is one table in a process, as there is one of the kernel's. */
#pragma once

#include "harness/carrier/clock_bound.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* node: its place in the plan, from 0. pid: as its host numbers it; 0: all of the node. */
pid_t host_process_number(int node, int64_t pid);
bool host_process_is(pid_t number); /* of another host's process */
pid_t host_process_pid(pid_t number);

/* It lives: a process that had this number before has ended. Returns a descriptor, the caller's, or
 * a -errno. start: the tick in which it began, by its host. */
int host_process_watch(pid_t number, uint64_t start);
/* The same as of one that is watched; it need not be. */
void host_process_note(pid_t number, uint64_t start, pid_t parent);
/* known: how is; else status is of no matter. */
void host_process_ended(pid_t number, bool known, int status, const struct clock_stamp *at);
void host_process_node_ended(int node, int64_t t_ns); /* all of it, nobody knows how */
void host_process_forget_all(void);

/* 0, when it is not known. */
uint64_t host_process_start(pid_t number);
pid_t host_process_parent(pid_t number);
/* 0 with its wait status; -EAGAIN: it lives; -ENODATA: nobody knows; -ESRCH: it was never heard of. */
int host_process_status(pid_t number, int *ret_status);
/* When it has ended; false: it lives, or was never heard of. */
bool host_process_end(pid_t number, struct clock_stamp *ret);

/* What its helper has seen of it. */
struct host_process_look {
    bool still; /* every thread of it was stopped */
    bool waits; /* a thread of it waits in a call that reads a single byte */
    pid_t thread;
    char state;
    long call;                                  /* -1: none */
    uint64_t pending, blocked, ignored, caught; /* signals, a bit each; signal 1 is the lowest */
};
/* before: as it was before the newest fault was done to it there. */
void host_process_seen(pid_t number, bool before, const struct host_process_look *look);
/* False: it has not been looked at. */
bool host_process_look_at(pid_t number, bool before, struct host_process_look *ret);
