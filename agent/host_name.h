/* host_name: this node's full name, for jobs on torchelastic's etcd rendezvous, and whether another
 * node's name is known here. */
#pragma once

#include "base/arena.h"
#include "base/sys/loop.h"

#include <stdbool.h>

/* "n0.example 10.0.0.1": the full name (hostname -f) with the address, which must not be a loopback
 * one and must be among those that the name leads to here. NULL: this host has no such name. May
 * block, as every look-up. */
const char *host_name_find(const char *addr, struct arena *a);

/* The full name alone; NULL: none. May block. */
const char *host_name_full(struct arena *a);

struct host_check;

typedef void host_check_fn(void *arg, bool found);

/* Looks the name of `host` (as above) up here, for three seconds at most; found: the address is among
 * what it leads to. fn is called once, from the loop. */
struct host_check *host_check_begin(struct loop *l, const char *host, host_check_fn *fn, void *arg);
/* fn is not called any more. NULL is allowed; returns NULL. */
struct host_check *host_check_cancel(struct host_check *c);
