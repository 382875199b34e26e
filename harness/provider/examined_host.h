/* examined_host: hosts asked what they are and what can be done there: each is reached as a run would
 * reach it, its helper is copied there if it has to be, its clock is compared with ours, and the
 * helper is let go again. All are asked at once. */
#pragma once

#include "base/buf.h"
#include "harness/carrier/clock_bound.h"
#include "harness/carrier/hello.h"
#include "harness/provider/provider.h"

enum { EXAMINED_SAMPLES = 100 };

struct examined_host {
    const char *name;
    bool works;
    struct err why;     /* it does not: a sentence with its name */
    struct hello hello; /* from here on: it does */
    bool copied;
    struct err no_clock; /* where it has not HELLO_CAN_WALL_CLOCKS: why not */
    int64_t up_ns;       /* from the start of the command to the helper's hello, with the copy */
    struct clock_bound clock;
    char address[46]; /* at which others reach it, as it sees it itself; "" when it has none */
    uint64_t network; /* its network namespace: with boot_id the same for who shares addresses */
    /* NULL: its facts are asked for. Else what is done about helpers there: look, clean or halt, and for
     * the last of which run, NULL: of any (host_left.h). */
    const char *errand, *run;
    struct buf facts; /* JSON, an object: host_facts.h, or what came of the errand; ended by
                         examined_hosts_fini */
};

/* v: n hosts with a name. samples: of the clock of each; with none no more is asked than whether it is there.
 * helper: our rankquake-node, to be copied, beside what lies at the same place there;
 * w->helper becomes the name of that copy, in a, and w->program the helper, for who reaches the hosts
 * again. Returns 0, or a
 * -errno when nothing could be asked at all. */
int examined_hosts_ask(const struct provider *p, struct provider_wish *w, const char *helper,
                       unsigned samples, struct examined_host *v, size_t n, struct arena *a,
                       struct err *err);
void examined_hosts_fini(struct examined_host *v, size_t n);
