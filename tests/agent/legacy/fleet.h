/* fleet: agents of the legacy rendezvous around a model of an etcd, in virtual time, with faults
 * drawn from a seed. What no round may do is judged at every start of workers. */
#pragma once

#include "agent/legacy/legacy.h"
#include "tests/agent/legacy/tree_model.h"

enum { FLEET_MAX = 6 };

struct fleet;

struct fleet_agent {
    bool up;
    int exit_code; /* -1: it has not ended by itself */
    char exit_text[512];
    int64_t exit_round; /* of the failure it named */
    struct {
        bool alive;
        int64_t round, fence_ns;
        int rank, n, rank_base, world, restart_count, master_port;
        char master_addr[64];
        bool killed; /* will be dead soon */
    } group;
};

struct fleet *fleet_new(uint64_t seed, int min, int max, int max_restarts);
struct fleet *fleet_free(struct fleet *f);
struct tree_model *fleet_tree(struct fleet *f);
const struct fleet_agent *fleet_agent(const struct fleet *f, int i);
/* How many requests were asked so far. */
int64_t fleet_requests(const struct fleet *f);
/* What was wrong, "" when nothing was. */
const char *fleet_wrong(const struct fleet *f);

void fleet_run(struct fleet *f, int64_t ns); /* for so long */
/* Instead of a wait status: not a worker ends but the guard, killed or by its timer. */
enum { FLEET_GUARD_KILLED = -1, FLEET_GUARD_DUE = -2 };
void fleet_gang(struct fleet *f); /* those that start from now on end with the first that is lost */
/* Those that start from now on have a full name, ni.example, with the address ni. */
void fleet_names(struct fleet *f);
/* That agent does not know those names. */
void fleet_nameless(struct fleet *f, int i);
void fleet_start(struct fleet *f, int i);
void fleet_crash(struct fleet *f, int i); /* with its workers */
void fleet_signal(struct fleet *f, int i, int signo);
void fleet_exit(struct fleet *f, int i, int status);  /* a worker of it, with that wait status */
void fleet_pause(struct fleet *f, int i, int64_t ns); /* the agent; its guard goes on */
void fleet_cut(struct fleet *f, int i, int64_t ns);   /* from the store */
void fleet_lose(struct fleet *f, double share);       /* of the requests, half of them applied */
