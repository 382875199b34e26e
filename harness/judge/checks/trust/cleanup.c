/* Reads what was left on the host after the cluster was taken down. */
#include "harness/judge/checks/check.h"

#include "base/str.h"

/* A cgroup outlives who made it. The harness makes none: it is judged as a leftover of the job. */
static const char *first_of(const struct json *left, bool cgroups, size_t *ret_n) {
    const char *first = NULL;
    *ret_n = 0;
    json_each(it, left) {
        const char *what = json_string(it, "");
        if (str_starts(what, "the cgroup ") != cgroups)
            continue;
        first = first ? first : what;
        ++*ret_n;
    }
    return first;
}

static bool judge(const struct trial *t, struct finding *f) {
    size_t n, cgroups;
    const struct record *health = history_newest(t->history, SOURCE_HARNESS, "health");
    if (!health)
        return finding_skip(f, "the harness did not come to look (see harness_health)");
    const struct json *left = record_get(health, "left");
    const char *first = first_of(left, false, &n), *cgroup = first_of(left, true, &cgroups);
    finding_prove(f, health->seq);
    if (first)
        return finding_fail(f, "Cleanup: the harness leaves nothing behind on the host.",
                            "no process, namespace, device, mount or directory of the run",
                            "%zu left: %s%s (rankquake clean takes it away)", n, first,
                            n > 1 ? ", ..." : "");
    if (!json_get_bool(health->fields, "complete", false))
        return finding_unknown(f, "Cleanup: the harness leaves nothing behind on the host.",
                               "the host could not be searched to the end");
    if (cgroup)
        return finding_pass(f, "nothing of the harness is left on the host; see leftovers");
    return finding_pass(f, "nothing is left on the host");
}

const struct check check_cleanup = {
    .name = "cleanup",
    .summary = "nothing of the run is left on the host",
    .text = "Looked for by the harness itself after the last node is down: processes, namespaces, "
            "devices, mounts and scratch directories of the run. What a launcher leaves behind "
            "inside its node, and a cgroup that outlives all who were in it, is the check "
            "leftovers.",
    .example = "rankquake run scenarios/tour.yaml",
    .class = CLASS_CLEANUP,
    .sources = 0,
    .judge = judge,
};
