/* node_helper: the first process of a node (`rankquake node`), pid 1 of its namespaces. It arranges
 * the node, starts the program the node is there for (the agent, or the store), runs faults on
 * processes, reaps whatever loses its parent, and counts what the program left behind. It ends when
 * its socket to the harness closes, and the node with it.
 *
 * Messages (channel.h), in the order of a node's life; paths are the host's:
 *   harness  setup {name, hosts, keep:[path..], dirs:[path..],
 *                   root: {dir, show:[path..], programs, libraries:[name=path..], name_servers}}
 *   helper   ready, with the listener of RANKQUAKE_EVENTS, a sock_diag socket and the network
 *            namespace
 *   harness  net {addr, prefix}    when eth0 is there        helper  net {}
 *   harness  run {argv, env, cwd, log}
 *   helper   started {} with a pidfd | failed {why}; then exited {status}; then, when nothing lives
 *            any more but after a second at the latest, leftovers {found}
 *   harness  fault {token, fault, recover, kind, name, args:{..}, seed} with the target's pidfd
 *   helper   injected {token, error|null}
 *   harness  sockets {port, round}    helper  sockets {port, round, found}: see sockets.h
 *   helper   broken {error}: it cannot go on */
#pragma once

#include "agent/base/json.h"

/* Serves the socket until it closes. Returns 0, or a -errno when it could not even begin. */
int node_helper_run(int control, struct err *err);

/* What `setup` asks for. All of it ends with the node's namespaces. Returns 0 or -errno. */
int node_setup(const struct json *setup, struct err *err);
/* A root file system of the node's own (`root` of setup): entered before, furnished after it has
 * its own /tmp and /run. What is shown is of the host's paths, and at the same place. */
int node_root_enter(const struct json *root, struct err *err);
int node_root_furnish(const struct json *root, struct err *err);
/* Brings up eth0 with the address. */
int node_setup_network(const struct json *net, struct err *err);

/* Appends {processes:[{pid,name}], ports:[n..], shm:[path..], cgroups:[]} as the member `found` of
 * w: every process but the caller, every listening TCP port, everything in /dev/shm and every
 * System V segment. */
void leftovers_count(struct json_writer *w);
