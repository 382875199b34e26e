/* Revokes the lease of a job behind its back. */
#include "faults/fault.h"

#include "faults/store/store_request.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

static int suits(const struct fault_args *a, const struct fault_store *store, struct err *err) {
    return store->rankrun ? 0
                          : err_say(err, -EINVAL,
                                    "store-lease-lost is about the lease that a job of rankrun "
                                    "keeps in the store; use launcher: rankrun");
}

/* What there is not cannot be revoked, and then nothing shows that it was. */
static int inject(const struct target *t, const struct fault_args *a, struct err *err) {
    char body[64];
    if (!t->store.number)
        return 0;
    snprintf(body, sizeof(body), "{\"ID\":\"%" PRId64 "\"}", t->store.number);
    return store_request_unless(t, "/v3/lease/revoke", body, "lease not found", err);
}

const struct fault fault_store_lease_lost = {
    .name = "store-lease-lost",
    .summary = "the lease that all keys of the job hang on is revoked, and the keys are gone",
    .effects = EFFECT_HINDERS_STORE | EFFECT_SILENT,
    .targets = TARGET_STORE,
    .where = FAULT_IN_NODE,
    .evidence = EVIDENCE(lease_gone),
    .params = (const struct fault_param[]){{0}},
    .undo = "nothing to undo: the agents bring what they remember, under another lease",
    .blast = "the job's state in the store: all agents must find each other again",
    .example = "{when: {step: 20}, fault: store-lease-lost, on: store}",
    .suits = suits,
    .inject = inject,
};
