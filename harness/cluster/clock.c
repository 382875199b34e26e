/* The wall clock of a node: the page that its programs read, in the scratch directory; on another host it is its
 * helper's (host_clock.h). */
#include "harness/cluster/parts.h"

#include "base/mem.h"
#include "base/sys/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Workers may have dropped their uid, and write there what they were told. */
static int open_page(struct node *n, struct err *err) {
    char *path = mem_printf("%s/%s.clock", n->cluster->scratch, n->plan->name);
    n->clock = folder_create(n->cluster->run, path + strlen(n->cluster->dir) + 1, err);
    n->clock_path = path;
    if (n->clock < 0)
        return n->clock;
    if (fchmod(n->clock, 0666) != 0)
        return err_set(err, -errno, "make %s writable", path);
    return clock_page_make(n->clock, err);
}

bool node_clock_is_wanted(const struct node *n) {
    return plan_needs(n->cluster->plan) & FAULT_NEEDS_PRELOAD;
}

/* On another host its helper makes one. */
int node_clock_make(struct node *n, struct err *err) {
    node_clock_close(n);
    return node_clock_is_wanted(n) && !n->plan->host ? open_page(n, err) : 0;
}

void node_clock_close(struct node *n) {
    file_close(&n->clock);
    n->clock_shifted = false;
    n->far_clock = (struct far_clock){0};
    free(n->clock_path);
    n->clock_path = NULL;
}

int node_clock_shift(struct node *n, const struct clock_shift *shift, struct err *err) {
    if (n->clock < 0)
        return err_say(err, -ENOENT, "%s has no clock of its own", n->plan->name);
    if (shift && n->clock_shifted)
        return err_say(err, -EBUSY,
                       "the clock of %s is wrong already, by an earlier fault: end that one first "
                       "(for, heal)",
                       n->plan->name);
    int r = clock_page_set(n->clock, shift, err);
    if (r)
        return err_wrap(err, "%s: ", n->plan->name);
    n->clock_shifted = shift != NULL;
    return 0;
}

const char *node_clock_path(const struct node *n) {
    return n->clock_path;
}

int node_clock_told(const struct node *n, int64_t since_ns, struct clock_setting *ret_setting,
                    struct clock_told *ret) {
    if (n->far_clock.setting.generation) {
        *ret_setting = n->far_clock.setting;
        *ret = n->far_clock.told;
        return 0;
    }
    if (n->clock < 0)
        return -ENOENT;
    int r = clock_page_setting(n->clock, ret_setting);
    return r ? r : clock_page_told(n->clock, since_ns, ret);
}
