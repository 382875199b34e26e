/* Lets the name server fail a node, as often as it asks. */
#include "faults/network/traffic.h"

#include "base/str.h"

#include <errno.h>

static int read_args(const struct fault_args *a, struct impairment *ret, struct err *err) {
    static const char *const words[] = {[NAMES_SILENT] = "none",
                                        [NAMES_UNKNOWN] = "nxdomain",
                                        [NAMES_SERVFAIL] = "servfail",
                                        [NAMES_REFUSED] = "refused"};
    const char *text = fault_arg(a, "answer", "servfail");
    for (int i = NAMES_SILENT; i <= NAMES_REFUSED; i++)
        if (str_eq(text, words[i]))
            ret->names = i;
    if (!ret->names)
        return err_say(err, -EINVAL,
                       "answer: \"%s\" is none; write none, nxdomain, servfail or refused", text);
    ret->names_all = !fault_arg(a, "names", NULL);
    return 0;
}

FAULT_IMPAIRS(read_args)

const struct fault fault_net_dns_fail = {
    .name = "net-dns-fail",
    .summary = "a node is told no address of a name: its name server fails, or does not answer",
    .effects = EFFECT_IMPAIRS_NETWORK | EFFECT_SILENT | EFFECT_LASTING,
    .targets = TARGET_NODE,
    .needs = FAULT_NEEDS_WIRE | FAULT_NEEDS_NAMES,
    .where = FAULT_IN_HARNESS,
    .evidence = EVIDENCE(names_failed),
    .params =
        (const struct fault_param[]){
            {"answer", "string", "servfail",
             "servfail, refused or nxdomain (there is no such name); none: it is silent, and the C "
             "library waits 10 s"},
            {"names", "nodes", "(all)",
             "nodes whose names it is about, as in n0,n1; the store is named store"},
            {0}},
    .undo = "the name server answers again",
    .blast = "who is connected stays so; who connects by a name cannot",
    .example = "{when: {step: 20}, fault: net-dns-fail, on: n2, for: 2s}",
    .check = check,
    .inject = inject,
    .recover = recover,
};
