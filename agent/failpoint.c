#include "agent/failpoint.h"

#ifdef RANKRUN_FAILPOINTS

#include "base/sys/event.h"

static const struct op *put_of(const struct txn *t, enum key_kind kind) {
    for (size_t i = 0; i < t->n_ops; i++)
        if (t->ops[i].put && t->ops[i].key.kind == kind)
            return &t->ops[i];
    return NULL;
}

void failpoint_sending(const struct txn *t) {
    const struct op *ack = put_of(t, KEY_ACK);
    if (ack)
        event_launcher("certified-under-ack", ack->key.round);
}

int64_t failpoint_head(const struct txn *t) {
    const struct op *head = put_of(t, KEY_HEAD);
    return head ? head->value->head.round : -1;
}

void failpoint_answered(int64_t head_round) {
    if (head_round >= 0)
        event_launcher("coordinator-unheard", head_round);
    else
        event_launcher("answer-lost", -1);
}

#endif
