#include "faults/node/notice.h"

#include "base/buf.h"
#include "base/str.h"
#include "faults/arguments.h"
#include "faults/node/power.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

static const int64_t grace_max_ns = 3600000000000;

static int read_grace(const struct fault_args *a, int64_t *ret_ns, struct err *err) {
    return fault_duration(a, "grace", "2s", grace_max_ns, ret_ns, err);
}

int notice_check(const struct fault_args *a, struct err *err) {
    const char *cloud = fault_arg(a, "cloud", "aws");
    const char *path = fault_arg(a, "notice", "preempted.json");
    int64_t grace_ns;
    int r = read_grace(a, &grace_ns, err);
    if (r)
        return r;
    if (!str_eq(cloud, "aws") && !str_eq(cloud, "gcp") && !str_eq(cloud, "azure"))
        return err_say(err, -EINVAL, "cloud: %s is none of aws, gcp and azure", cloud);
    if (*path == '/' && !str_starts(path, "/tmp/") && !str_starts(path, "/run/"))
        return err_say(err, -EINVAL,
                       "notice: %s is not the node's own; name a file of its disk, without a / in "
                       "front, or one below /tmp or /run",
                       path);
    return 0;
}

void notice_course(const struct fault_args *a, struct fault_course *ret) {
    if (read_grace(a, &ret->follow_ns, NULL) != 0)
        ret->follow_ns = 1; /* refused by check */
}

/* As the metadata services of the clouds say it: instance-action of a spot instance (AWS),
 * instance/preempted (Google), a scheduled event (Azure). */
static void put_notice(struct buf *out, const char *node, const struct fault_args *a) {
    const char *cloud = fault_arg(a, "cloud", "aws");
    int64_t grace_ns = 0;
    char when[64];
    struct tm tm;
    read_grace(a, &grace_ns, NULL);
    time_t t = time(NULL) + (time_t)(grace_ns / 1000000000);
    gmtime_r(&t, &tm);
    if (str_eq(cloud, "aws")) {
        strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm);
        buf_printf(out, "{\"action\": \"terminate\", \"time\": \"%s\"}\n", when);
    } else if (str_eq(cloud, "gcp")) {
        buf_puts(out, "TRUE\n");
    } else {
        strftime(when, sizeof(when), "%a, %d %b %Y %H:%M:%S GMT", &tm);
        buf_printf(out,
                   "{\"DocumentIncarnation\": 1, \"Events\": [{\"EventId\": \"preempt-%s\", "
                   "\"EventType\": \"Preempt\", \"ResourceType\": \"VirtualMachine\", "
                   "\"Resources\": [\"%s\"], \"EventStatus\": \"Scheduled\", \"NotBefore\": "
                   "\"%s\", \"EventSource\": \"Platform\"}]}\n",
                   node, node, when);
    }
}

int notice_give(const struct target *t, const struct fault_args *a, struct err *err) {
    BUF_FINI struct buf text = {0};
    put_notice(&text, t->name, a);
    int r =
        t->ops->leave_file(t->node, fault_arg(a, "notice", "preempted.json"), buf_str(&text), err);
    if (r == 0)
        r = t->ops->tell_cloud(t->node, fault_arg(a, "cloud", "aws"), buf_str(&text), err);
    return r ? r : t->ops->signal_program(t->node, SIGTERM, err);
}

int notice_follow(const struct target *t, const struct fault_args *a, struct err *err) {
    return power_off(t, true, err);
}
