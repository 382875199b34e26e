/* Writes one record at a time into the history, and hands it to whoever listens. */
#include "harness/observe/observe.h"

struct json_writer *recorder_begin(struct recorder *rec, int64_t t_ns, enum source source,
                                   const char *kind) {
    return history_begin(rec->history, t_ns, source, kind);
}

struct json_writer *recorder_begin_at(struct recorder *rec, const struct clock_stamp *at,
                                      enum source source, const char *kind) {
    const struct history_stamp stamp = {at->t_ns, at->bound_ns, at->there_ns, at->late_ns};
    return history_begin_at(rec->history, &stamp, source, kind);
}

const struct record *recorder_end(struct recorder *rec, struct event_client *from) {
    const struct record *r = history_end(rec->history);
    rounds_feed(rec->rounds, r);
    if (rec->fn)
        rec->fn(rec->arg, r, from);
    return r;
}
