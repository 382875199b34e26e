/* boxes: how a world's core and store are taken for a change. */
#pragma once

#include "harness/explore/world.h"

struct core_box *core_box_new(struct rendezvous *r); /* takes it */
void core_box_drop(struct core_box *b);              /* NULL is allowed */
/* Its own from now on. */
struct rendezvous *world_core(struct world *w, int node);
struct kv *world_store(struct world *w);
