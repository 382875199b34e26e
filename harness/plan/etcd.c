#include "harness/plan/etcd.h"

#include "base/str.h"
#include "base/sys/file.h"
#include "harness/plan/answer.h"
#include "harness/plan/features.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>

/* From 3.6 on it has no --enable-v2, and would end with its usage. In a plan of somebody else's the
 * program, which may be theirs, is not asked. */
static int check_v2(const struct plan *p, const char *program, struct err *err) {
    const char *const argv[] = {program, "--version", NULL};
    bool torchrun = !str_eq(p->scenario->job.launcher, "rankrun");
    char said[200];
    int major, minor;
    if (!answer_read(NULL, argv, said, sizeof(said)) ||
        sscanf(said, "etcd Version: %d.%d", &major, &minor) != 2)
        return 0;
    if (major < 3 || (major == 3 && minor < 6))
        return 0;
    return err_say(
        err, -ENOTSUP,
        "rdzv_backend: %s speaks etcd's v2 API, which %s, of version %d.%d, has no more: "
        "put an etcd up to 3.5 first in PATH, or write %s",
        p->backend, program, major, minor, torchrun ? "store: embedded" : "rdzv_backend: etcd-v3");
}

int etcd_check(const struct plan *p, struct err *err) {
    ARENA_FINI struct arena a = {0};
    enum store_kind store = p->scenario->cluster.store;
    const char *said = p->scenario->job.rdzv_backend;
    bool own = store == STORE_NONE && said && str_starts(said, "etcd");
    if (!own && store != STORE_ETCD && store != STORE_ETCD_3)
        return 0;
    char folder[PATH_MAX]; /* comes first in the PATH of nodes */
    const char *path = arena_printf(&a, "%s:%s", file_own_folder(folder, sizeof(folder)),
                                    plan_path(&p->scenario->job));
    const char *program = plan_find_program(NULL, &a, "etcd", path);
    if (!program)
        return err_say(err, -ENOTSUP,
                       "%s: etcd is not installed here; apt install etcd-server, or use %s",
                       own ? "job.rdzv_backend" : "cluster.store",
                       own ? "rdzv_backend: embedded" : "store: embedded");
    const char *backend = own ? said : p->backend;
    bool v2 = backend && (str_eq(backend, "etcd") || str_eq(backend, "etcd-v2"));
    return v2 && !p->untrusted ? check_v2(p, program, err) : 0;
}
