/* host_cut: a host's half of partitions, on a host that the harness is not on. Each half makes the
 * host, or the job's processes on it, deaf to some peers and mute to some; the peers' helpers do the
 * other half.
 *
 * By sockets (socket_cut.h), which any user may: the TCP connections of all that descends from the
 * helper hear nothing from those peers. New ones are caught before they begin, where the helper
 * watches the program's calls, and come to nothing at both ends, as an answer is not heard; what it
 * could not know in time is caught when somebody counts, and what it had heard until then is counted
 * as passed. By table (owned_table.h), which needs root: packets of all the host, whatever their
 * protocol; the way by which the helper is reached is left out.
 *
 * Whatever becomes of the helper, a cut does not outlive it: a table is the kernel's to take away,
 * and deaf sockets are mended by the helper's keeper. */
#pragma once

#include "base/json.h"
#include "base/texts.h"
#include "faults/mechanism/call_watch.h"

struct host_cut;

struct host_cut *host_cut_new(void);
struct host_cut *host_cut_free(struct host_cut *k); /* mends all. NULL is allowed; returns NULL */

/* Brings in force what a `part` says, in place of what one of this name said before. Returns 0, and
 * adds {way, caught, missed:[text..]} to w: how many connections were silenced, and what could not be
 * reached; or a -errno, and is as before. -ENOTSUP: not on this host. */
int host_cut_part(struct host_cut *k, const struct json *order, struct json_writer *w,
                  struct err *err);
/* Undoes it, and adds `late` and `peers` as host_cut_count does; of what is not in force there are none. */
void host_cut_mend(struct host_cut *k, const char *name, struct json_writer *w);
/* Undoes all, or all but those with `listeners`: who has lost his power must not be heard dying. Adds
 * their names. */
void host_cut_mend_all(struct host_cut *k, bool silenced_too, struct texts *ret_names);
/* Adds `cuts`: [{name, way, late, peers: [{name, dropped, unsaid, passed, connections}]}]: packets
 * that were dropped by now, how many of them on their way to the peer, and packets that came through all the same; late: connections that were caught now. */
void host_cut_count(struct host_cut *k, struct json_writer *w);
/* Whether somebody watches the program's connects (call_watch.h), and has each of them met before it
 * goes on. */
void host_cut_watches(struct host_cut *k, bool watches);
void host_cut_meet(struct host_cut *k, const struct watched_call *call);

/* For who outlives a helper: every socket of what descends from the caller hears again. */
void host_cut_mend_descendants(void);
