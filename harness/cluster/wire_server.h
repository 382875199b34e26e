/* wire_server: the wire as a process (`rankquake wire`), in a network namespace of its own. It ends
 * when its socket to the harness closes, and all network cards with it.
 *
 * Messages (channel.h); every request has an id, which comes back with the answer:
 *   setup {store_port, store_peer_port, ring, dead_man,   ring: packet rings on any kernel
 *          resolver: {addr, mac, names:[{name, addr}]}}   a name server on the wire, by ports
 *   capture {port, name} with a file               its frames go there, too (capture.h)
 *   port {port, mac} with the node's network namespace     a card for the node, or a new one
 *   silence {port, on}     holds from the next frame on
 *   partitions {list:[{planes, groups:[a group or -1 for each port], delay_ns, jitter_ns, seed}]}
 *                          all there are, likewise; with a delay frames pass, and late
 *   bootstrap {tcp_port}
 *   count {}               {ports:[{port, frames_in, ..., cut:[{to, frames}],
 *                          delayed: likewise}..]}
 *
 *   watch {told, held}     sets of 1 << STORE_*: what the store is asked for (store_gate.h)
 *   pass {waits}           one of them that waits
 *   beat {}                a sign that the harness is there, which has no answer: see dead_man.h
 *
 * An answer is {id, op, port, error|null}. By itself it says gone {port}: the node's namespace has
 * ended; request {port, to, operation, waits}: a node asks the store for what is watched, and waits: 0,
 * or what lets it go on; and healed {silent_ns}: the harness had said nothing for too long, and there
 * are neither partitions nor impairments any more, and nobody waits. */
#pragma once

#include "base/err.h"

int wire_server_run(int control, struct err *err);
