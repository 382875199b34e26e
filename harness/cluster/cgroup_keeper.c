#include "harness/cluster/cgroup_keeper.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sys/loop.h"
#include "harness/cluster/cgroups.h"
#include "harness/carrier/channel.h"
#include "harness/cluster/dead_man.h"

#include <errno.h>
#include <stdlib.h>

struct kept_cgroup {
    char *path, *from;
};

struct cgroup_keeper {
    struct loop *loop;
    int control;
    struct dead_man *heals;
    struct kept_cgroup *v;
    size_t n;
};

static void forget(struct cgroup_keeper *k, size_t at) {
    free(k->v[at].path);
    free(k->v[at].from);
    k->v[at] = k->v[--k->n];
}

static void on_silence(void *arg, int64_t silent_ns) {
    struct cgroup_keeper *k = arg;
    for (size_t i = k->n; i-- > 0;)
        if (cgroups_release(k->v[i].path, k->v[i].from) == 0)
            forget(k, i);
}

static void note(struct cgroup_keeper *k, const struct json *m) {
    const char *made = json_get_string(m, "made", NULL), *gone = json_get_string(m, "gone", NULL);
    if (made)
        mem_push(k->v, k->n) = (struct kept_cgroup){
            mem_printf("%s", made), mem_printf("%s", json_get_string(m, "from", "/"))};
    for (size_t i = k->n; gone && i-- > 0;)
        if (str_eq(k->v[i].path, gone))
            forget(k, i);
    if (made && !k->heals)
        k->heals = dead_man_new(k->loop, k->control, json_get_i64(m, "dead_man", 0), on_silence, k);
    dead_man_heard(k->heals);
}

static void on_message(void *arg, int fd, int what) {
    struct cgroup_keeper *k = arg;
    struct message m;
    int r;
    while ((r = channel_receive(fd, &m, NULL)) > 0) {
        note(k, m.json);
        message_fini(&m);
    }
    if (r < 0)
        loop_stop(k->loop);
}

static int clear_all(struct cgroup_keeper *k, struct err *err) {
    int failed = 0;
    for (size_t i = 0; i < k->n; i++) {
        int r = cgroups_clear(k->v[i].path);
        if (r && r != -ENOENT)
            failed = err_set(err, r, "take away the control group %s", k->v[i].path);
    }
    return failed;
}

int cgroup_keeper_run(int control, struct err *err) {
    struct cgroup_keeper k = {.control = control};
    k.loop = loop_new(err);
    if (!k.loop)
        return err->code;
    loop_fd(k.loop, control, LOOP_READ, on_message, &k);
    int r = loop_run(k.loop, err), failed = clear_all(&k, err);
    while (k.n)
        forget(&k, k.n - 1);
    free(k.v);
    dead_man_free(k.heals);
    loop_free(k.loop);
    return r ? r : failed;
}
