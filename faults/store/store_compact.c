/* Compacts the history of the store up to now, while somebody may still read behind. */
#include "faults/fault.h"

#include "faults/store/store_request.h"

#include <inttypes.h>
#include <stdio.h>

/* Without anything older there is nothing to do, and then nothing shows that it was done. */
static int inject(const struct target *t, const struct fault_args *a, struct err *err) {
    char body[80];
    if (!t->store.number)
        return 0;
    snprintf(body, sizeof(body), "{\"revision\":\"%" PRId64 "\",\"physical\":true}",
             t->store.number);
    return store_request_unless(t, "/v3/kv/compaction", body, "compacted", err);
}

const struct fault fault_store_compact = {
    .name = "store-compact",
    .summary =
        "the store forgets all revisions before the newest: who reads or watches from behind "
        "must begin anew",
    .effects = EFFECT_HINDERS_STORE | EFFECT_SILENT,
    .targets = TARGET_STORE,
    .where = FAULT_IN_NODE,
    .evidence = EVIDENCE(revision_gone),
    .params = (const struct fault_param[]){{0}},
    .undo = "nothing to undo: what is forgotten stays so",
    .blast = "a watch that comes back from a cut finds its start gone, and reads all again",
    .example = "{when: {step: 20}, fault: store-compact, on: store}",
    .inject = inject,
};
