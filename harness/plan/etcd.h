/* etcd: whether this host has one that serves what a plan wants of it. Private to this room. */
#pragma once

#include "harness/plan/plan.h"

/* 0; -ENOTSUP with the sentence where the store is to be an etcd and there is none, or one without the
 * v2 API that the rendezvous speaks: from 3.6 on. One that does not say its version is left to its
 * start. */
int etcd_check(const struct plan *p, struct err *err);
