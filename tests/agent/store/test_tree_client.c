/* Every request to etcd's v2 API as it is sent, and what becomes of each answer. HTTP is played by fake_http.h. */
#include "agent/store/access.h"
#include "agent/store/tree_client.h"
#include "tests/agent/store/fake_http.h"

#include "agent/store/tree_client.c"

static struct tree_client *client;
static struct store_access access_;
static int told;
static uint64_t told_id;
static enum tree_result told_result;
static int64_t told_index;
static size_t told_n;
static char told_text[300];
static uint64_t cancels; /* what the callback cancels; 0: nothing */

static void on_told(void *arg, uint64_t id, const struct tree_answer *answer) {
    assert_ptr_equal(arg, &told);
    told++;
    told_id = id;
    told_result = answer->result;
    told_index = answer->index;
    told_n = answer->n;
    snprintf(told_text, sizeof(told_text), "%s", answer->text);
    if (cancels)
        tree_client_cancel(client, cancels);
}

static int begin(void **state) {
    (void)state;
    fake_begin();
    told = 0;
    cancels = 0;
    fake_value = "";
    access_ = (struct store_access){0};
    client = tree_client_new((struct loop *)(void *)&fake_loop, "etcd.host:4001", &access_, on_told,
                             &told, NULL);
    assert_non_null(client);
    assert_ptr_equal(fake_access, &access_);
    assert_string_equal(tree_client_trouble(client), "");
    return 0;
}

static int finish(void **state) {
    (void)state;
    int open = fake_open(), before = fake_cancelled;
    assert_int_equal(fake_freed, 0);
    client = tree_client_free(client);
    assert_null(client);
    assert_int_equal(fake_freed, 1);
    assert_int_equal(fake_cancelled - before, open); /* those that were under way */
    return 0;
}

static void send_one(uint64_t id, const struct tree_request *q) {
    int before = fake_n;
    tree_client_send(client, id, q);
    assert_int_equal(fake_n, before + 1);
}

/* ---- what is sent ---- */

#define AT    "http://etcd.host:4001/v2/keys"
#define INDEX " with X-Etcd-Index:"
#define FORM  " (application/x-www-form-urlencoded)"

static void test_each_request_is_written_as_etcd_reads_it(void **state) {
    (void)state;
    static const struct {
        struct tree_request q;
        const char *said;
    } all[] = {
        {{TREE_VERSION, .key = "/ignored", .timeout_ms = 7},
         "GET http://etcd.host:4001/version" INDEX " 7 ms: (no body)"},
        {{TREE_GET, .key = "/a/b-c_d.e~f", .timeout_ms = 7},
         "GET " AT "/a/b-c_d.e~f?recursive=true&quorum=true" INDEX " 7 ms: (no body)"},
        {{TREE_WAIT, .key = "/a", .from_index = 9223372036854775807, .timeout_ms = 7},
         "GET " AT "/a?recursive=true&wait=true&waitIndex=9223372036854775807 waited for" INDEX
         " 5000 ms: (no body)"},
        {{TREE_WAIT, .key = "/a"},
         "GET " AT "/a?recursive=true&wait=true&waitIndex=0 waited for" INDEX
         " 5000 ms: (no body)"},
        {{TREE_DELETE, .key = "/a", .timeout_ms = 8}, "DELETE " AT "/a" INDEX " 8 ms: (no body)"},
        {{TREE_DELETE, .key = "/a", .compare = "x", .dir = true, .timeout_ms = 8},
         "DELETE " AT "/a?prevValue=x&dir=true" INDEX " 8 ms: (no body)"},
        {{TREE_PUT, .key = "/a", .timeout_ms = 9}, "PUT " AT "/a" INDEX " 9 ms: " FORM},
        {{TREE_PUT, .key = "/a", .value = "", .timeout_ms = 9},
         "PUT " AT "/a" INDEX " 9 ms: value=" FORM},
        {{TREE_PUT, .key = "/a", .value = "v", .compare = "", .timeout_ms = 9},
         "PUT " AT "/a" INDEX " 9 ms: value=v&prevValue=" FORM},
        {{TREE_PUT, .key = "/a", .exist = TREE_PRESENT, .ttl_s = -1, .timeout_ms = 9},
         "PUT " AT "/a" INDEX " 9 ms: prevExist=true&ttl=-1" FORM},
        {{TREE_PUT, .key = "/a", .ttl_s = 30, .refresh = true, .exist = TREE_PRESENT},
         "PUT " AT "/a" INDEX " 0 ms: prevExist=true&ttl=30&refresh=true" FORM},
        {{TREE_PUT, "/a", "1 2/3", "&=%", TREE_ABSENT, 10, true, true, 99, 9},
         "PUT " AT "/a" INDEX " 9 ms: value=1%202%2F3&prevValue=%26%3D%25&prevExist=false&ttl=10"
         "&dir=true&refresh=true" FORM},
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        send_one(i + 1, &all[i].q);
        fake_said(all[i].said);
    }
}

static void escape(char ret[4], int byte, const char *stays) {
    snprintf(ret, 4, strchr(stays, byte) ? "%c" : "%%%02X", byte);
}

/* Of a key the slashes stay, of a value nothing but what RFC 3986 leaves to everybody. */
static void test_each_byte_is_escaped_where_it_must_be(void **state) {
    static const char stays[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~";
    (void)state;
    for (int byte = 1; byte < 256; byte++) {
        char key[] = {'/', (char)byte, '\0'}, in_key[4], in_value[4], expected[256];
        struct tree_request q = {TREE_PUT, .key = key, .value = key + 1, .timeout_ms = 1};
        escape(in_value, byte, stays);
        escape(in_key, byte, byte == '/' ? "/" : stays);
        snprintf(expected, sizeof(expected), "PUT " AT "/%s" INDEX " 1 ms: value=%s" FORM, in_key,
                 in_value);
        fake_n = 0;
        send_one((uint64_t)byte, &q);
        fake_said(expected);
        tree_client_cancel(client, (uint64_t)byte);
    }
}

static void test_where_it_is_says_the_url(void **state) {
    (void)state;
    struct tree_request q = {TREE_VERSION, .timeout_ms = 1};
    struct err err = {0};
    static const struct {
        const char *endpoint, *url;
    } all[] = {{"h", "https://h:2379/version"}, {"[fd00::1]:80", "https://[fd00::1]:80/version"}};
    struct store_access safe = {.https = true};
    for (size_t i = 0; i < 2; i++) {
        char expected[128];
        struct tree_client *c = tree_client_new((struct loop *)(void *)&fake_loop, all[i].endpoint,
                                                &safe, on_told, &told, &err);
        assert_string_equal(err.msg, "");
        tree_client_send(c, 1, &q);
        snprintf(expected, sizeof(expected), "GET %s" INDEX " 1 ms: (no body)", all[i].url);
        fake_said(expected);
        assert_null(tree_client_free(c));
        assert_int_equal(fake_freed, 1);
        fake_freed = 0;
    }
    fake_freed = 0;
    assert_null(
        tree_client_new((struct loop *)(void *)&fake_loop, "h:x", NULL, on_told, NULL, &err));
    assert_string_not_equal(err.msg, "");
    fake_none = true;
    assert_null(
        tree_client_new((struct loop *)(void *)&fake_loop, "h", &safe, on_told, NULL, &err));
    assert_string_equal(err.msg, "no way there");
    assert_null(tree_client_free(NULL));
    fake_freed = 0;
}

/* ---- what comes back ---- */

static void test_each_answer_is_told_once_with_its_id(void **state) {
    (void)state;
    static const struct {
        enum tree_verb verb;
        long status;
        const char *text, *error, *index;
        enum tree_result result;
        int64_t at;
        size_t n;
        const char *said;
    } all[] = {
        {TREE_VERSION, 200, "{\"etcdserver\":\"3.4.23\"}", "", "5", TREE_DONE, 5, 0, "3.4.23"},
        {TREE_GET, 200, "{\"node\":{\"key\":\"/a\",\"nodes\":[{},{}]}}", "", "6", TREE_DONE, 6, 3,
         ""},
        {TREE_WAIT, 200, "{\"node\":{\"key\":\"/a\",\"nodes\":[{},{}]}}", "", "7", TREE_DONE, 7, 1,
         ""},
        {TREE_PUT, 201, "{\"node\":{\"key\":\"/a\"}}", "", "", TREE_DONE, 0, 1, ""},
        {TREE_DELETE, 404, "{\"errorCode\":100,\"message\":\"m\",\"cause\":\"c\",\"index\":9}", "",
         "8", TREE_MISSING, 9, 0, "m (c)"},
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        send_one(100 + i, &(struct tree_request){all[i].verb, .key = "/a"});
        fake_value = all[i].index;
        fake_answer(fake_last(), all[i].status, all[i].text, all[i].error);
        assert_int_equal(told, i + 1);
        assert_int_equal(told_id, 100 + i);
        assert_int_equal(told_result, all[i].result);
        assert_int_equal(told_index, all[i].at);
        assert_int_equal(told_n, all[i].n);
        assert_string_equal(told_text, all[i].said);
        assert_string_equal(tree_client_trouble(client), "");
        tree_client_cancel(client, 100 + i); /* it is not under way any more */
    }
    assert_int_equal(fake_cancelled, 0);
}

static void lose(long status, const char *text, const char *error, const char *why) {
    send_one(1, &(struct tree_request){TREE_PUT, .key = "/a"});
    fake_answer(fake_last(), status, text, error);
    assert_int_equal(told_result, TREE_LOST);
    assert_int_equal(told_index, 0);
    assert_int_equal(told_n, 0);
    assert_string_equal(told_text, why);
    assert_string_equal(tree_client_trouble(client), why);
}

static void test_why_the_last_was_lost_is_kept(void **state) {
    char longest[300];
    (void)state;
    memset(longest, 'w', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    lose(0, "", "connect to etcd.host: refused", "connect to etcd.host: refused");
    lose(500, "{\"errorCode\":300,\"message\":\"Raft\",\"cause\":\"c\"}", "", "Raft (c)");
    send_one(1, &(struct tree_request){TREE_PUT, .key = "/a"});
    fake_answer(fake_last(), 200, "{\"node\":{}}", "");
    assert_int_equal(told_result, TREE_DONE);
    assert_string_equal(tree_client_trouble(client), "Raft (c)");
    send_one(1, &(struct tree_request){TREE_PUT, .key = "/a"});
    fake_answer(fake_last(), 0, "", longest);
    longest[255] = '\0'; /* as much as fits */
    assert_string_equal(tree_client_trouble(client), longest);
}

static void test_only_what_is_cancelled_is_dropped(void **state) {
    (void)state;
    for (uint64_t id = 1; id <= 4; id++)
        send_one(id, &(struct tree_request){TREE_GET, .key = "/a"});
    tree_client_cancel(client, 2);
    tree_client_cancel(client, 2);
    tree_client_cancel(client, 77);
    assert_true(fake_calls[0].open && !fake_calls[1].open && fake_calls[2].open);
    assert_int_equal(fake_cancelled, 1);
    cancels = 3; /* from inside the callback of another */
    fake_answer(&fake_calls[0], 0, "", "gone");
    assert_true(told == 1 && told_id == 1 && !fake_calls[2].open && fake_calls[3].open);
}

int main(int argc, char **argv) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, finish)
    const struct CMUnitTest tests[] = {
        TEST(test_each_request_is_written_as_etcd_reads_it),
        TEST(test_each_byte_is_escaped_where_it_must_be),
        TEST(test_where_it_is_says_the_url),
        TEST(test_each_answer_is_told_once_with_its_id),
        TEST(test_why_the_last_was_lost_is_kept),
        TEST(test_only_what_is_cancelled_is_dropped),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
