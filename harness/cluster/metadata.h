/* metadata: what a machine of a cloud asks about itself, at 169.254.169.254 port 80: whether it is
 * about to be taken away. Served by the first process of a node in namespaces, to all that runs on
 * it, from the node's start on; so that a job which looks there finds what it finds in a cloud.
 *
 * Of each cloud as its manual has it, and nothing else; all other paths are 404:
 *   aws    PUT /latest/api/token (wants X-aws-ec2-metadata-token-ttl-seconds; a token is then
 *          looked at, and one that is not ours is 401; without one it is answered too)
 *          GET /latest/meta-data/spot/instance-action, .../spot/termination-time: 404 until then
 *          ("Spot Instance interruption notices", "Use the Instance Metadata Service")
 *   gcp    GET /computeMetadata/v1/instance/preempted (wants Metadata-Flavor: Google): FALSE, then
 *          TRUE; ?wait_for_change=true is answered when it changes ("View and query VM metadata")
 *   azure  GET /metadata/scheduledevents (wants Metadata: true): no events, then one
 *          ("Scheduled Events for Linux VMs") */
#pragma once

#include "base/err.h"
#include "base/sys/loop.h"

#define METADATA_ADDRESS "169.254.169.254"
/* By this name Google's libraries ask. */
#define METADATA_NAME "metadata.google.internal"

struct metadata;

/* The address is given to the loopback of the caller's network. 0 or a -errno. */
int metadata_open(struct metadata **ret, struct loop *l, struct err *err);
struct metadata *metadata_free(struct metadata *m); /* NULL is allowed; returns NULL */
/* What the cloud says from now on; copied. */
void metadata_tell(struct metadata *m, const char *cloud, const char *text);
