/* node_clients: a job's connections to RANKQUAKE_EVENTS on a host that the harness is not on. Who connects
 * is given a page of this host, so that events are armed and held here; what is said goes to the
 * harness by the carrier, with the moment at which it was heard; who waits goes on when the harness
 * says so, or when it has been silent for too long. rankprobes become workers, and are watched to
 * their end.
 *
 *   helper   client {id, pid, start, probe, above:[{pid, start}..]}    a process has connected; above:
 *                                              its parent, and whose child that is, up to the helper
 *   helper   given {pid, start, given}         what a rankprobe was given (given.h), which is to become a
 *                                              worker; before it is told of
 *   helper   record {id, text}                 it has said this; with `armed` in it, it waits
 *   helper   gone {id, image}                  its connection has ended; it runs "probe", "other" or,
 *                                              when it has ended, "unknown"
 *   helper   ended {pid, start, status|null}   a worker; after all that it had said
 *   harness  arm {kinds, next_step}            which events wait, as observer_arm
 *   harness  release {id}                      it goes on */
#pragma once

#include "base/json.h"
#include "harness/carrier/carrier.h"
#include "harness/carrier/given.h"

struct node_clients;

/* Takes the listener. probe: the path of rankprobe on this host; NULL: none is believed. key: for marks
 * of what workers are given; NULL: nobody wants to know. Returns NULL with err when there is no memory to
 * share. */
struct node_clients *node_clients_new(struct loop *l, struct carrier *to, int listener,
                                      const char *probe, const struct given_key *key,
                                      struct err *err);
struct node_clients *node_clients_free(struct node_clients *c); /* NULL is allowed; returns NULL */

void node_clients_arm(struct node_clients *c, const struct json *order);
void node_clients_release(struct node_clients *c, const struct json *order);
void node_clients_release_all(struct node_clients *c); /* and nothing is armed any more */
/* The harness takes nothing more, or does again. */
void node_clients_pause(struct node_clients *c, bool paused);
/* The processes that wait, as what the kernel shows of them (seen_process.h) put into the array that is
 * open. */
void node_clients_put_held(const struct node_clients *c, struct json_writer *w);
/* Tells of all that has been said and of workers that have ended by now. */
void node_clients_drain(struct node_clients *c);
