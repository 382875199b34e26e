/* theatre: a cluster of three nodes on a loop, and what its callbacks have told; what the scenes of
 * spawn_cluster are played in. One in a process. Whatever goes wrong ends the process with 1 and a
 * line on stderr. */
#pragma once

#include "base/str.h"
#include "faults/fault.h"
#include "harness/cluster/parts.h"

#include <limits.h>

enum { NODES = 3 };

/* What is known of a node, from callbacks only. */
struct seen {
    bool up, started, exited, leftovers, injected;
    int downs, ups, status, clients;
    pid_t pid, client_pid;
    int64_t asked_ns;
    size_t left;
    char left_text[512], error[512];
    struct wire_counters counters;
};

extern bool as_processes;
extern int64_t dead_man_ns, total_ns; /* limits of the cluster's scenario; 0: nobody listens */
extern char port_text[8];             /* nodes that are processes share the ports of this host */
extern struct loop *loop;
extern struct cluster *cluster;
extern struct node **nodes;
extern struct seen seen[NODES];
extern bool counted;
extern char
    *failure; /* what the cluster has failed with, in a scene that wants it; else that ends it */
extern char program[PATH_MAX], run_dir[PATH_MAX], cwd[PATH_MAX];

void die(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

#define CHECK(x)                                                                                   \
    do {                                                                                           \
        if (!(x))                                                                                  \
            die("%s:%d: not so: %s", __FILE__, __LINE__, #x);                                      \
    } while (0)

/* Turns the loop until the condition holds; the deadline of the scene ends what hangs. */
#define AWAIT(x)                                                                                   \
    do {                                                                                           \
        struct err e_;                                                                             \
        while (!(x))                                                                               \
            if (loop_run(loop, &e_) != 0)                                                          \
                die("%s", e_.msg);                                                                 \
    } while (0)

void run(int node, const char *const *argv);
#define RUN(node, ...) run(node, (const char *[]){program, __VA_ARGS__, NULL})
void await_success(int node);                             /* of the node's program */
void inject(const char *name, int node, bool at_program); /* a fault as the engine does it */
void part(int node, const char *groups, bool on);
const char *host(int node); /* what others reach it by */

/* Builds the cluster in dir, plays the scene, takes all down and looks for what is left. begun: is
 * said on stdout when the nodes are being made. */
void play(void (*scene)(void), const char *dir, const char *begun);
/* Where the cluster cannot be built, nothing is left of it. */
void play_in_vain(const char *dir);
void say(const char *line);
