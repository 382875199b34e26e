/* engine: what the parts of a run share, and the verbs by which they change it. What is in the
 * struct is theirs to read: the engine writes it, and nodes.c the cluster and the observer. */
#pragma once

#include "harness/cluster/cluster.h"
#include "harness/observe/observe.h"
#include "harness/run/part.h"
#include "harness/run/run.h"

enum engine_phase { ENGINE_STARTING, ENGINE_RUNNING, ENGINE_ENDING, ENGINE_DOWN };

struct engine {
    const struct run_spec *spec;
    const struct plan *plan;
    struct loop *loop;
    struct recorder rec; /* the history and its rounds, as far as they have come */
    struct cluster *cluster;
    struct observer *observer;
    enum engine_phase phase;
    /* Of the record that all are told of, as in record_fn; NULL: nobody. */
    struct event_client *sender;
    size_t rounds_ended; /* of the rounds, from the first on */
    struct err failure;  /* code != 0: the harness broke */
    struct arena arena;  /* as long as the run */
    void *own[PARTS_N];  /* of each part, known to its own file */
};

/* For the file of a part: its own struct, which is called as the part is. */
#define own(e, part) ((struct part *)((struct engine *)(e))->own[PART_##part])

/* Opens a record; its fields are put, and engine_recorded writes it and tells every part. */
struct json_writer *engine_record(struct engine *e, enum source s, const char *kind);
void engine_recorded(struct engine *e);
/* Ends the job: why is ended | limit | interrupted | error | worker failed. Safe to call again. */
void engine_end(struct engine *e, const char *why);
/* Ends it because the harness or the host broke: the run returns the first of these errors. */
void engine_fail(struct engine *e, const struct err *err);

/* What follows on one another, each told by the part that knows when. */
void engine_start(struct engine *e);                         /* the job */
void engine_take_down(struct engine *e);                     /* it has ended, all is counted */
void engine_down(struct engine *e, const char *const *left); /* as cluster_callbacks.down */
