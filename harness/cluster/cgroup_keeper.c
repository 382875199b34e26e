#include "harness/cluster/cgroup_keeper.h"

#include "base/str.h"
#include "base/texts.h"
#include "harness/cluster/cgroups.h"
#include "harness/cluster/channel.h"

#include <errno.h>
#include <poll.h>

static void note(struct texts *made, const struct json *m) {
    const char *path = json_get_string(m, "made", NULL);
    const char *gone = json_get_string(m, "gone", NULL);
    if (path)
        texts_add(made, "%s", path);
    for (size_t i = 0; gone && i < made->n; i++)
        if (str_eq(made->v[i], gone))
            *made->v[i] = '\0';
}

static int receive_all(int control, struct texts *made) {
    struct message m;
    int r;
    while ((r = channel_receive(control, &m, NULL)) > 0) {
        note(made, m.json);
        message_fini(&m);
    }
    return r;
}

int cgroup_keeper_run(int control, struct err *err) {
    TEXTS_FINI struct texts made = {0};
    struct pollfd p = {.fd = control, .events = POLLIN};
    int failed = 0;
    while (poll(&p, 1, -1) >= 0 || errno == EINTR)
        if (receive_all(control, &made) < 0)
            break;
    for (size_t i = 0; i < made.n; i++) {
        int r = *made.v[i] ? cgroups_clear(made.v[i]) : 0;
        if (r && r != -ENOENT)
            failed = err_set(err, r, "take away the control group %s", made.v[i]);
    }
    return failed;
}
