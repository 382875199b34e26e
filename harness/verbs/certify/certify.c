/* Runs a suite for a certificate, and judges certificates. */
#include "harness/verbs/certify/certifying.h"

#include "base/str.h"
#include "harness/verbs/wanted_hosts.h"

#include <stdlib.h>
#include <string.h>

int certify_open(const struct arguments *a, const char *path, struct folder *ret) {
    ARENA_FINI struct arena arena = {0};
    struct err err = {0};
    size_t n = strlen(path), file = strlen(CERTIFICATE_FILE);
    if (str_eq(str_base(path), CERTIFICATE_FILE))
        path = n == file ? "." : arena_strndup(&arena, path, n - file - 1);
    if (folder_open(ret, *path ? path : "/", &err) == 0)
        return 0;
    return verb_usage_error(a->verb, "%s; name the directory of a certificate", err.msg);
}

static int main_certify(const struct arguments *a) {
    const char *word = a->files_n ? a->files[0] : "";
    if (str_eq(word, "verify"))
        return certify_verify(a);
    if (str_eq(word, "diff"))
        return certify_diff(a);
    return certify_suite(a);
}

const struct verb verb_certify = {
    .name = "certify",
    .usage = "certify SUITE [options] [-- CMD...] | certify verify DIR --signers FILE | "
             "certify diff DIR DIR",
    .summary = "run a suite for a signed certificate that jobs survive here; judge certificates",
    .example = "certify quick --allow node --plan",
    .operands = "verify|diff|SCENARIO|DIR",
    .options =
        (const struct verb_option[]){
            {"--key", "FILE",
             "sign with this key of ssh-keygen; without it the certificate is not signed"},
            {"--operator", "NAME", "who certifies (default: user@host)"},
            {"--valid", "DAYS", "for how many days it holds (default: 90)"},
            {"--out", "DIR",
             "where to make the directory of the certificate (default: "
             "certificates)"},
            {"--yes", NULL, "accept the plan, which is printed first"},
            {"--plan", NULL, "print the plan and do nothing"},
            {"--allow", "CLASS", "how far faults may reach: job (the default), node, shared"},
            {"--deny", "WHAT",
             "do nothing on these: host=NAME, user=NAME, address=ADDRESS/BITS; may be repeated"},
            {"--deny-file", "FILE", "the same, a line each; may be repeated"},
            {"--window", "WHEN",
             "run only then: 22:00-06:00, \"Sat,Sun 00:00-24:00\"; may be repeated"},
            {"--max-concurrent-faults", "N", "at most N faults in force at once"},
            {"--max-fault-time", "TIME", "no fault lasts longer"},
            {"--max-time", "TIME", "begin nothing that would end later than TIME from now"},
            {"--seed", "N", "the seed of all draws (default: the file's, else 1)"},
            {"--repeat", "N", "each scenario N times"},
            {"--every-node", NULL, "each node is the victim once"},
            {"--without", "PROBE", "leave this probe of preflight out; may be repeated"},
            {"--results", "FILE",
             "certify what nccl-tests, fio, dcgmi diag or SuperBench have found, too"},
            {"--set", "KEY=VALUE", "overrides a value of every scenario; may be repeated"},
            {"--tag", "TAG", "only scenarios with this tag, or with !TAG those without it"},
            {"--launcher", "LAUNCHER", "the launcher, as for run"},
            {"--observe", "KIND=REGEX", "reads events from what workers print, as for run"},
            {"--isolation", "KIND", "auto, namespaces or processes, as for run"},
            WANTED_HOSTS_OPTIONS,
            PROBE_WISHES_OPTIONS,
            {"--signers", "FILE", "verify: who may sign, as ssh-keygen's allowed signers"},
            {"--here", NULL, "verify: the inventory must be that of this host"},
            {"--at", "DATE", "verify: as if it were 2027-01-31"},
            {"--programs", NULL,
             "verify: start the programs that scenarios name under checks, with your rights"},
            {"--slower", "PERCENT", "diff: times that differ by less are the same (default: 20)"},
            VERB_HEADWAY,
            {0}},
    .run = main_certify,
};
