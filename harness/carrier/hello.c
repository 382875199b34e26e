#include "harness/carrier/hello.h"

#include "base/str.h"

#include <errno.h>

const char *const hello_abilities[] = {
#define X(id, word) word,
    HELLO_ABILITIES
#undef X
        NULL};

void hello_put(struct json_writer *w, const struct hello *h) {
    json_put_i64(w, "version", h->version);
    json_put_i64(w, "uid", h->uid);
    json_put_i64(w, "pid", h->pid);
    json_put_string(w, "boot_id", h->boot_id);
    json_put_string(w, "life", h->life);
    json_put_string(w, "host", h->host);
    json_array(w, "can");
    for (int i = 0; i < HELLO_ABILITIES_N; i++)
        if (h->can >> i & 1)
            json_put_string(w, NULL, hello_abilities[i]);
    json_end_array(w);
}

static unsigned ability_of(const char *word) {
    for (int i = 0; i < HELLO_ABILITIES_N; i++)
        if (str_eq(word, hello_abilities[i]))
            return 1u << i;
    return 0;
}

void hello_take(const struct json *message, struct hello *ret) {
    *ret = (struct hello){.version = json_get_i64(message, "version", 0),
                          .uid = json_get_i64(message, "uid", -1),
                          .pid = json_get_i64(message, "pid", 0)};
    str_copy(ret->boot_id, sizeof(ret->boot_id), json_get_string(message, "boot_id", ""));
    str_copy(ret->life, sizeof(ret->life), json_get_string(message, "life", ""));
    str_copy(ret->host, sizeof(ret->host), json_get_string(message, "host", ""));
    json_each(it, json_get(message, "can")) ret->can |= ability_of(json_string(it, ""));
}

bool hello_is_another_life(const struct hello *before, const struct hello *now) {
    return !str_eq(before->boot_id, now->boot_id) || !str_eq(before->life, now->life);
}

int hello_check(const struct hello *h, const char *who, struct err *err) {
    if (h->version == HELLO_VERSION)
        return 0;
    return err_say(
        err, -EPROTO,
        "%s%s%s%s: it speaks version %lld of the protocol of helpers, and we version %d; "
        "give both ends the same version of RankQuake",
        who, *h->host ? " (" : "", h->host, *h->host ? ")" : "", (long long)h->version,
        HELLO_VERSION);
}
