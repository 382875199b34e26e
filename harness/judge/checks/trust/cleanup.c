/* Reads what was left on the host after the cluster was taken down. */
#include "harness/judge/checks/check.h"

#include "base/str.h"

static bool judge(const struct trial *t, struct finding *f) {
    const struct record *health = history_newest(t->history, SOURCE_HARNESS, "health");
    if (!health)
        return finding_skip(f, "the harness did not come to look (see harness_health)");
    const struct json *left = record_get(health, "left");
    const char *first = json_string(json_first(left), NULL);
    finding_prove(f, health->seq);
    if (first)
        return finding_fail(f, "Cleanup: the harness leaves nothing behind on the host.",
                            "no process, namespace, device, mount or directory of the run",
                            "%zu left: %s%s (%s takes it away)", left->length, first,
                            left->length > 1 ? ", ..." : "",
                            str_starts(first, "the cgroup ") ? "rmdir" : "rankquake clean");
    if (!json_get_bool(health->fields, "complete", false))
        return finding_unknown(f, "Cleanup: the harness leaves nothing behind on the host.",
                               "the host could not be searched to the end");
    return finding_pass(f, "nothing is left on the host");
}

const struct check check_cleanup = {
    .name = "cleanup",
    .summary = "nothing of the run is left on the host",
    .text = "Looked for by the harness itself after the last node is down: processes, namespaces, "
            "devices, mounts, cgroups and scratch directories of the run. A cgroup counts when it "
            "lies below the harness's own, was not there before the run, is the same user's and "
            "holds no process: who made it cannot be asked. What a launcher leaves behind inside "
            "its node is the check "
            "leftovers.",
    .example = "rankquake run scenarios/tour.yaml",
    .class = CLASS_CLEANUP,
    .sources = 0,
    .judge = judge,
};
