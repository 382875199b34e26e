/* Ends a program that serves the store and runs the same command line again. */
#include "faults/arguments.h"

#include "base/str.h"

#include <errno.h>
#include <signal.h>

static const int64_t down_max_ns = 600000000000;

static int read_args(const struct fault_args *a, bool *ret_empty, int64_t *ret_down_ns,
                     struct err *err) {
    const char *data = fault_arg(a, "data", "kept");
    const char *down = fault_arg(a, "down", "0s");
    *ret_empty = str_eq(data, "empty");
    *ret_down_ns = 0;
    if (!*ret_empty && !str_eq(data, "kept"))
        return err_say(err, -EINVAL, "data: %s is neither kept nor empty", data);
    return str_eq(down, "0s") ? 0 : fault_duration(a, "down", "0s", down_max_ns, ret_down_ns, err);
}

static int check(const struct fault_args *a, struct err *err) {
    bool empty;
    int64_t down_ns;
    return read_args(a, &empty, &down_ns, err);
}

static int suits(const struct fault_args *a, const struct fault_store *store, struct err *err) {
    const char *data = fault_arg(a, "data", NULL);
    if (!store->etcd && data && str_eq(data, "kept"))
        return err_say(err, -EINVAL,
                       "data: rankrun's store keeps nothing on a disk, so it always comes back "
                       "empty; leave data out, or take cluster: {store: etcd}");
    if (store->members > 1 && data && str_eq(data, "empty"))
        return err_say(err, -EINVAL,
                       "data: a member of an etcd that has lost its disk must be removed and added "
                       "anew, the others take it for broken; write data: kept, or take one "
                       "member, cluster: {store: etcd}");
    return 0;
}

/* What has ended already is not started again: nothing is half done. On another host its helper sees to it. */
static int find_alive(const struct target *t, struct err *err) {
    return t->far ? 0 : target_signal(t, 0, err);
}

static int inject(const struct target *t, const struct fault_args *a, struct err *err) {
    bool empty;
    int64_t down_ns;
    int r = read_args(a, &empty, &down_ns, err);
    r = r ? r : find_alive(t, err);
    r = r ? r : t->ops->run_again(t->node, empty, down_ns, err);
    return r ? r : target_signal(t, SIGKILL, err);
}

const struct fault fault_store_restart = {
    .name = "store-restart",
    .summary = "a program that serves the store dies at once, and the same command line runs again",
    .effects = EFFECT_ENDS_STORE | EFFECT_LOUD,
    .targets = TARGET_STORE,
    .where = FAULT_IN_HARNESS,
    .evidence = EVIDENCE(store_restarted),
    .params =
        (const struct fault_param[]){
            {"data", "string", "(what it keeps: an etcd all, rankrun's store nothing)",
             "kept: it has what was on its disk, for an etcd; empty: it has nothing, for rankrun's "
             "store and an etcd of one member"},
            {"down", "duration", "0s", "how long it is away, before it is started again"},
            {0}},
    .undo = "nothing to undo: it runs again",
    .blast = "calls on their way are lost; of one that comes back empty agents bring what they "
             "remember, and whoever could not reach it for fence has ended its workers",
    .example = "{when: {step: 20}, fault: store-restart, on: store, with: {down: 300ms}}",
    .check = check,
    .suits = suits,
    .inject = inject,
};
