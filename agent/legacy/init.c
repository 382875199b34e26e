/* What is there before any rendezvous: an etcd that speaks v2, the folders, the counter. */
#include "agent/legacy/state.h"

enum { STEP_VERSION, STEP_PREFIX, STEP_RUN, STEP_FOLDER, STEP_COUNTER, STEPS };

void legacy_init_advance(struct legacy *l) {
    struct tree_request q = {.verb = TREE_PUT, .exist = TREE_ABSENT, .dir = true};
    if (!call_may(l, CALL_FLOW))
        return;
    switch (l->opened) {
    case STEP_VERSION:
        q = (struct tree_request){.verb = TREE_VERSION, .key = ""};
        break;
    case STEP_PREFIX:
        q.key = l->prefix;
        break;
    case STEP_RUN:
        q.key = l->run;
        q.ttl_s = TTL_RUN_S;
        break;
    case STEP_FOLDER:
        q.key = l->rdzv;
        break;
    default:
        q.key = path_counter(l);
        q.value = "0";
        q.dir = false;
    }
    flow_send(l, FLOW_OPEN, &q);
}

static void no_v2(struct legacy *l) {
    legacy_exit(l, 64, NULL,
                "--rdzv-backend etcd is torchelastic's legacy rendezvous over etcd's v2 API, which "
                "the etcd %s at the endpoint does not serve: start it with --enable-v2 (etcd up to "
                "3.5 has it), or use --rdzv-backend etcd-v3 for a job of rankrun agents",
                l->etcd);
}

void legacy_init_answered(struct legacy *l, const struct tree_answer *answer) {
    switch (answer->result) {
    case TREE_LOST:
        return;
    case TREE_NO_V2:
        no_v2(l);
        return;
    case TREE_STRANGE:
        legacy_exit(l, 64, NULL,
                    "--rdzv-backend etcd: what answers at the endpoint is no etcd; name the client "
                    "address of one by --rdzv-endpoint=HOST:2379");
        return;
    case TREE_DONE:
    case TREE_EXISTS:
        if (l->opened == STEP_VERSION)
            l->etcd = arena_strdup(&l->strings, answer->text);
        l->opened++;
        if (l->opened == STEPS)
            legacy_join_begin(l);
        return;
    case TREE_MISSING:
    case TREE_CHANGED:
    case TREE_CLEARED:
    case TREE_REFUSED:
        legacy_exit(l, 69, NULL, "etcd %s refused to make %s: %s", l->etcd, l->rdzv, answer->text);
    }
}
