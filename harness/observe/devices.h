/* devices: who computes on this host's accelerators, by two sources of the kernel's side: the
 * driver's list of processes for each device, and the files of the driver that the processes of a
 * node have open.
 *
 * Where the driver numbers processes as another pid namespace does (the harness in a container), a
 * process of its list cannot be told: it counts as hidden, and what follows from it is unknown. */
#pragma once

#include "base/json.h"

#include <sys/types.h>

struct devices_node {
    const char *name;
    pid_t first; /* the process that all others of the node descend from */
};

/* A child that keeps the driver open for as long as it lives: a driver that hangs stops the child,
 * and is an error after some seconds. */
struct devices;

/* For the devices with these UUIDs, others are none of our business. NULL with err when the driver
 * does not answer. */
struct devices *devices_new(const char *const *uuids, size_t n, struct err *err);
struct devices *devices_free(struct devices *d); /* NULL is allowed; returns NULL */

/* Puts into the open object, as history.h says: devices:[{index, uuid, used, processes:[{pid, node,
 * bytes}], hidden}], open:[{pid, node, name}], error when the driver did not answer. Takes some
 * milliseconds. */
void devices_put(struct devices *d, const struct devices_node *nodes, size_t n,
                 struct json_writer *w);
