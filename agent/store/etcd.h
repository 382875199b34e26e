/* etcd: an etcd of this job's own, beside its agent (--standalone --rdzv-backend etcd or etcd-v3).
 *
 * It serves at free ports of 127.0.0.1 and has its data in a folder of its own, below $TMPDIR. Its
 * parent is a keeper, this program executed again under the name ETCD_KEEPER_NAME: that kills it
 * and takes the folder away when the agent is gone, however that ended. main must therefore begin
 * with `if (etcd_keeper_is_me(argv)) return etcd_keeper_main(argv);`.
 *
 * The keeper hears of the agent by a pipe that ends, and the agent of both by another one. */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct etcd;
struct loop;

#define ETCD_KEEPER_NAME "rankrun-etcd"

/* Starts the etcd that TORCHELASTIC_ETCD_BINARY_PATH names, else the one in PATH, and returns when
 * it serves; old_api: with its v2 API too. ETCD_ variables do not reach it. NULL, with err:
 * -EINVAL for a path that is no program, -EHOSTUNREACH with etcd's last words when it does not
 * serve within half a minute. */
struct etcd *etcd_start(bool old_api, struct err *err);
/* Ends it; returns when it is gone, with its folder. NULL is allowed; returns NULL. */
struct etcd *etcd_free(struct etcd *e);
/* Of 127.0.0.1. */
uint16_t etcd_port(const struct etcd *e);
/* A child of this process, the parent of etcd. */
pid_t etcd_keeper(const struct etcd *e);

/* It has ended by itself; words: the last that it said. */
typedef void etcd_ended_fn(void *arg, const char *words);
/* Once; until the loop ends, and that must be before etcd_free. */
void etcd_watch(struct etcd *e, struct loop *l, etcd_ended_fn *fn, void *arg);

/* What etcd means by a line of its log, for people: without time and place, of JSON the message and
 * the error. In ret, cut to its size. */
void etcd_words(const char *line, char *ret, unsigned size);

bool etcd_keeper_is_me(char **argv);
int etcd_keeper_main(char **argv);
