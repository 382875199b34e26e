/* counting: what is counted, on the wire and in the nodes whose agent has ended, before the cluster
 * is taken down. */
#pragma once

#include "harness/run/engine.h"

void counting_ask(struct engine *e);   /* the wire, for all its counters; they come as records */
void counting_go_on(struct engine *e); /* somebody has counted whom the last count waits for */
void counting_wait_anew(struct engine *e); /* the harness was away */

/* As cluster_callbacks.counters and counted. */
void counting_counters(void *arg, struct node *n, const struct wire_counters *c);
void counting_counted(void *arg);
