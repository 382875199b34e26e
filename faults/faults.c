#include "faults/fault.h"

#include "base/str.h"
#include "base/sys/signals.h"

#include <errno.h>

#define X(name) extern const struct fault fault_##name;
#include "faults/faults.h"
#undef X

const struct fault *const faults[] = {
#define X(name) &fault_##name,
#include "faults/faults.h"
#undef X
    NULL};
const size_t faults_n = sizeof(faults) / sizeof(*faults) - 1;

const struct fault *fault_find(const char *name) {
    for (size_t i = 0; faults[i]; i++)
        if (str_eq(faults[i]->name, name))
            return faults[i];
    return NULL;
}

struct fault_course fault_course(const struct fault *f, const struct fault_args *a) {
    struct fault_course c = {
        .effects = f->effects, .needs = f->needs, .evidence = f->evidence, .times = 1};
    if (f->course)
        f->course(a, &c);
    return c;
}

const char *fault_family(const struct fault *f) {
    static const struct {
        const char *begins, *family;
    } families[] = {{"clock-", "clock"}, {"disk-", "disk"}, {"file-", "disk"},
                    {"net-", "network"}, {"node-", "node"}, {"slurm-", "scheduler"},
                    {"store-", "store"}};
    for (size_t i = 0; i < sizeof(families) / sizeof(*families); i++)
        if (str_starts(f->name, families[i].begins))
            return families[i].family;
    return "process";
}

const char *const fault_evidence_names[EVIDENCES_N] = {
#define X(name) #name,
#include "faults/evidence.h"
#undef X
};

const char *fault_arg(const struct fault_args *a, const char *key, const char *absent) {
    for (size_t i = 0; a && i < a->n; i++)
        if (str_eq(a->v[i].key, key))
            return a->v[i].value;
    return absent;
}

int fault_signal(const struct fault_args *a, int absent, struct err *err) {
    const char *name = fault_arg(a, "signal", NULL);
    int signo = name ? signal_number(name) : absent;
    if (signo)
        return signo;
    return err_say(err, -EINVAL, "signal: %s is no signal; write one as %s or %d", name,
                   signal_name(absent), absent);
}
