/* copy_on_write: how a world's core and store are taken for a change. */
#pragma once

#include "harness/explore/world.h"

struct core_share *core_share_new(struct rendezvous *r); /* takes it */
void core_share_drop(struct core_share *b);              /* NULL is allowed */
/* Its own from now on. */
struct rendezvous *world_core(struct world *w, int node);
struct kv *world_store(struct world *w);
