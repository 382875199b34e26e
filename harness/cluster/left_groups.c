#include "harness/cluster/left_groups.h"

#include "base/str.h"
#include "harness/cluster/cgroups.h"
#include "harness/host/host_left.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Behind the word that all begin with comes whose it is. */
static bool is_left(const char *path, int *ret_pid) {
    return host_left_has_gone(str_base(path) + strlen(CGROUPS_OF_NODES), ret_pid);
}

static void put(const char *path, int pid, bool clean, struct json_writer *w) {
    struct err err;
    int r = clean ? cgroups_clear(path) : 0;
    bool stays = r && r != -ENOENT;
    if (stays)
        err_set(&err, r, "remove the control group %s", path);
    json_object(w, NULL);
    json_put_i64(w, "pid", pid);
    json_put_string(w, "path", path);
    json_put_string(w, "error", stays ? err.msg : NULL);
    json_end_object(w);
}

void left_groups_put(bool clean, struct json_writer *w) {
    TEXTS_FINI struct texts all = cgroups_of_nodes();
    json_array(w, "groups");
    for (size_t i = 0; i < all.n; i++) {
        int pid;
        if (is_left(all.v[i], &pid))
            put(all.v[i], pid, clean, w);
    }
    json_end_array(w);
}
