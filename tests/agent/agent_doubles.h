/* agent_doubles: everything that agent/agent.c stands on, as doubles that write down how they are called, word for word, and do
 * no more: loop, guard, store, core, lifeline, files of --event-log, clock, harness. A test says which actions the core answers
 * with, calls what the agent has told a double to call, and compares what was written. */
#pragma once

#include "agent/core/rendezvous.h"
#include "agent/hosts/hosts.h"
#include "agent/store/tree_client.h"
#include "agent/workers/guard.h"
#include "base/buf.h"
#include "base/sys/loop.h"

#include <stdbool.h>

enum { AT_MONOTONIC = 1000, AT_BOOTTIME = 2000, AT_REALTIME = 3000 };

extern struct doubles {
    struct buf said;          /* each call a line; what is compared is taken off */
    const char *failing;      /* the call that fails: "loop_new" */
    int failing_code;         /* how; 0: -EIO */
    int alive;                /* made and not given back yet */
    struct action actions[8]; /* what the core answers the next step with; n of them */
    size_t n;
    void (*scene)(void); /* played where the loop would run */
    int loop_rc;
    bool hosted;         /* agent_store_is_hosted */
    const char *trouble; /* of store and tree */
    const char *output_dir;
    int start_rc, renew_rc; /* of the guard */
    const char *address;
    /* What the agent has asked to be called. */
    const struct guard_events *guard_events;
    void *guard_arg;
    loop_timer_fn *timer_fn;
    loop_signal_fn *signal_fn;
    void (*store_fn)(void *arg, const struct event *e);
    tree_answer_fn *tree_fn;
    void (*host_fn)(void *arg, bool found);
    void (*etcd_fn)(void *arg, const char *words);
    void *arg;   /* the agent */
    int port_fd; /* the descriptor that the last port was reserved by; -1: none was */
    int event;   /* how many events the core was told */
} doubles;

void doubles_reset(void);
