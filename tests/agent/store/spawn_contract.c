/* spawn_contract ENDPOINT [CACERT CERT KEY USER PASSWORD]: the contract of a store, over the one
 * that is there; CACERT "-": without TLS. */
#include "agent/store/access.h"
#include "tests/agent/store/contract_tests.h"

static const char *endpoint;
static struct store_access access_;

static int set_up(void **state) {
    static struct contract c;
    struct loop *l = loop_new(NULL);
    struct err err = {0};
    struct store *s = store_client_new(l, endpoint, &access_, &err);
    if (!s)
        fail_msg("%s", err.msg);
    contract_begin(&c, l, s);
    *state = &c;
    return 0;
}

static int tear_down(void **state) {
    struct contract *c = *state;
    store_free(c->store);
    contract_end(c);
    loop_free(c->loop);
    return 0;
}

int main(int argc, char **argv) {
    if (argc != 2 && argc != 7)
        return 64;
    endpoint = argv[1];
    if (argc == 7)
        access_ = (struct store_access){.user = argv[5], .password = argv[6]};
    if (argc == 7 && strcmp(argv[2], "-") != 0) {
        access_.https = true;
        access_.cacert = argv[2];
        access_.cert = argv[3];
        access_.key = argv[4];
    }
    const struct CMUnitTest tests[] = {CONTRACT_TESTS};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
