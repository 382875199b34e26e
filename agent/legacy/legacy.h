/* legacy: torchelastic's legacy etcd rendezvous (torchrun's --rdzv-backend etcd) of one agent, as a
 * pure state machine with the events and actions of agent/core/rendezvous.h. THE header to read.
 *
 * Source of the protocol: what torchrun 1.13 to 2.14 reads and writes below
 * <prefix>/run_<run id>/rdzv of an etcd's v2 tree:
 *
 *   version_counter      a decimal number; of the newest version of the rendezvous
 *   active_version       the state, as JSON (document.h): setup, joinable, frozen, final, closed
 *   v_<N>/rank_<R>       member R of version N lives; ttl 10 s, set anew by it
 *   v_<N>/kv/<base64>    what the agents tell each other: role_info, MASTER_ADDR, terminal_state
 *
 * A member is who has added its number to the participants of a joinable state, by comparing and
 * setting the whole text; a frozen state is confirmed by each with its rank_<R>; who confirms last
 * makes it final. Who comes later, or wants to begin anew, raises num_workers_waiting and takes the
 * state away once a rank_<R> is missing. Every agent counts its own restarts.
 *
 * Over torchrun's agents this one
 *  - waits for what others do instead of asking every few seconds, and sees ends of workers at
 *    once;
 *  - writes into the state, under "rankrun", which members are of its kind: torchrun passes on what
 *    it does not know. In a round of only such members a restart takes no time beyond the stopping
 *    of workers: each takes its own key away when its workers are dead, and only when all keys are
 *    gone is the state taken away. So no two rounds overlap;
 *  - has its workers killed by the guard before its key can expire;
 *  - goes to the new round when its own was dissolved without it, and begins one when a member is
 *    lost; where members of torchrun are to be told, it holds the lost one's key for so long that
 *    each has asked once, since they would part otherwise;
 *  - does not disturb a full round: it waits as a spare.
 *
 * Who decides what: init.c (the folders), observe.c (seeing what is there), join.c (a state
 * made, joined, confirmed), waiting.c (the old one taken away), exchange.c (ranks and master),
 * round.c (the workers), leave.c (closing, leaving), alive.c (own key). */
#pragma once

#include "agent/core/rendezvous.h"

struct legacy;

/* Of config the timing, the restart mode, the attempt and the admission are not used. prefix: NULL
 * for torchrun's. The strings are copied. seed: as rendezvous_new's. NULL with err (-EINVAL) and
 * the sentence to print before exiting 64. */
struct legacy *legacy_new(const struct rendezvous_config *config, const char *prefix, uint64_t seed,
                          struct err *err);
struct legacy *legacy_free(struct legacy *l); /* NULL is allowed; returns NULL */

/* As rendezvous_step; of the store only TREE requests are asked, answered by EVENT_TREE. */
const struct action *legacy_step(struct legacy *l, const struct event *event, struct now now,
                                 size_t *ret_n);
