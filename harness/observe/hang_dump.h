/* hang_dump: what the processes of a run that hangs are doing, written down before they are ended.
 *
 * In hang/ of the run directory, one folder for each node:
 *   rank-R.txt, PID-NAME.txt   a process: its threads with their state, wait channel and kernel
 *                              stack, its open files and sockets
 *   store.txt                  every key of the store, as it answers a connection made from this
 *                              node
 *   last-lines.txt             the end of what was printed on the node
 *
 * All of it is read by one child for each node, so that whatever hangs there cannot hang the
 * caller. It is for people: nothing of it is judged. */
#pragma once

#include "base/sys/folder.h"
#include "harness/history/rounds.h"

#include <sys/types.h>

struct hang_dump_node {
    const char *name;
    pid_t first;     /* of the node's processes, in the caller's eyes */
    bool far;        /* it is on another host, whose helper tells of its processes: hang_dump_put */
    const char *log; /* of its program, in the run directory */
    const char *store; /* "198.18.0.2", NULL: none that can be asked from outside */
    uint16_t store_port;
    const char *token; /* NAME=value, of that store; NULL: it wants none */
};

/* Returns within budget_ns: 0, or -ETIME when a node's child had to be killed (what it had written
 * stays), or another -errno when nothing could be written. */
int hang_dump_make(const struct folder *run, const struct hang_dump_node *nodes, size_t n,
                   const struct rounds *rs, int64_t budget_ns, struct err *err);

/* Writes down one process of that node, of which somebody else has the text: a helper on another host.
 * pid: its number here (host_process.h). */
void hang_dump_put(const struct folder *run, const char *node, pid_t pid, const char *name,
                   const struct buf *text, const struct rounds *rs);
/* hang_dump_store.c: asks the store from the network namespace of the calling process, which gives
 * it two seconds to answer. */
void hang_dump_store(const char *addr, uint16_t port, struct buf *out);
