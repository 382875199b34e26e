#include "harness/verbs/run/host.h"

#include <errno.h>
#include <stdio.h>

/* Before the first of them is started. What runs in nodes is not named: it is the job. */
void host_name_commands(struct selected *l) {
    BUF_FINI struct buf text = {0};
    plan_put_outside(l->plan, l->said, &text);
    fputs(buf_str(&text), stderr);
}

int host_check(const struct run_request *q, struct selected *l) {
    struct err err = {0};
    host_name_commands(l);
    int r = plan_check_host(l->plan, &err);
    if (r == 0 && q->suite.pcap && l->plan->isolation != ISOLATION_NAMESPACES)
        r = err_say(&err, -ENOTSUP,
                    "--pcap: there is no wire whose frames could be written down; it comes with "
                    "nodes in namespaces");
    if (r == 0 && l->plan->launcher_note)
        fprintf(stderr, "rankquake run: %s\n", l->plan->launcher_note);
    if (r == 0 && l->plan->hosts_note)
        fprintf(stderr, "rankquake run: %s\n", l->plan->hosts_note);
    if (r == 0)
        return EXIT_PASS;
    fprintf(stderr, "rankquake run: %s: %s\n", l->scenario->file, err.msg);
    return r == -ENOENT ? EXIT_USAGE_ERROR : EXIT_SKIPPED;
}
