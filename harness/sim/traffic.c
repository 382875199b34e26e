/* Counts what a run asks of the store and what passes on the wire to it, and knows keys again. */
#include "harness/sim/simulation.h"

#include <string.h>

static int64_t bytes_of(const struct kv_pair *p) {
    return (int64_t)(p->key.len + p->value.len);
}

void sim_traffic_events(struct sim *c, const struct kv_event *events, size_t n) {
    struct traffic *t = &c->traffic;
    t->messages++;
    t->events += (int64_t)n;
    for (size_t i = 0; i < n; i++)
        t->bytes += bytes_of(&events[i].pair);
}

void sim_traffic_request(struct sim *c, const struct kv_txn *txn,
                         const struct kv_txn_result *reply) {
    struct traffic *t = &c->traffic;
    t->messages += 2; /* with its answer */
    t->operations += txn->n_success ? (int64_t)txn->n_success : 1;
    for (size_t i = 0; i < txn->n_compares; i++)
        t->bytes += (int64_t)txn->compares[i].key.len;
    for (size_t i = 0; i < txn->n_success; i++)
        t->bytes += (int64_t)(txn->success[i].key.len + txn->success[i].value.len);
    for (size_t i = 0; i < reply->n_results; i++)
        for (size_t k = 0; k < reply->results[i].n_pairs; k++)
            t->bytes += bytes_of(&reply->results[i].pairs[k]);
}

/* What the store tells one watch after another is read once: the keys that came last are kept. */
bool sim_traffic_key(struct sim *c, struct kv_bytes text, struct store_key *ret) {
    if (text.len > sizeof(c->known[0].text))
        return key_parse(text.data, text.len, c->run_id, ret);
    unsigned char last = (unsigned char)text.data[text.len - 1];
    size_t at = (text.len * 7 + last) % (sizeof(c->known) / sizeof(*c->known));
    struct known_key *k = &c->known[at];
    if (k->len != text.len || memcmp(k->text, text.data, text.len) != 0) {
        if (!key_parse(text.data, text.len, c->run_id, &k->key)) {
            k->len = 0;
            return false;
        }
        k->len = text.len;
        memcpy(k->text, text.data, text.len);
    }
    *ret = k->key;
    return true;
}
