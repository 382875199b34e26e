#include "harness/verbs/watch/door.h"

#include "base/str.h"

#include <errno.h>
#include <string.h>

int door_address(const char *text, bool beyond, struct tcp_endpoint *ret, struct err *err) {
    struct tcp_address number;
    int r = tcp_endpoint_parse(text, 0, ret, err);
    if (r < 0)
        return r;
    if (str_eq(ret->host, "localhost"))
        str_copy(ret->host, sizeof(ret->host), "127.0.0.1");
    if (tcp_resolve_number(ret, &number, 1) != 1)
        return err_say(err, -EINVAL, "%.80s: write an address as a number, as in 127.0.0.1:8080",
                       text);
    if (!beyond && !tcp_number_is_loopback(ret->host))
        return err_say(err, -EINVAL,
                       "%.80s is an address that other hosts may reach: whoever sees the page's "
                       "address on the way can break the run; where that is meant add "
                       "--beyond-this-host",
                       text);
    return 0;
}

static bool is_our_host(const struct web_door *d, const char *host) {
    struct tcp_endpoint e;
    struct tcp_address number;
    struct err err = {0};
    if (!host || tcp_endpoint_parse(host, 80, &e, &err) < 0 || e.port != d->port)
        return false;
    if (str_eq(e.host, "localhost"))
        return true;
    return tcp_resolve_number(&e, &number, 1) == 1 && (d->beyond || tcp_number_is_loopback(e.host));
}

/* Takes as long wherever they differ. */
static bool has_token(const struct web_door *d, const char *target) {
    size_t n = DOOR_TOKEN - 1;
    unsigned char differs = 0;
    if (*target != '/' || strlen(target) < n + 2 || target[n + 1] != '/')
        return false;
    for (size_t i = 0; i < n; i++)
        differs |= (unsigned char)(target[i + 1] ^ d->token[i]);
    return !differs;
}

static bool is_own_origin(const char *origin, const char *host) {
    return str_starts(origin, "http://") && str_eq(origin + strlen("http://"), host);
}

static int refuse(int status, const char *why, const char **ret_why) {
    *ret_why = why;
    return status;
}

int door_admit(const struct web_door *d, const struct door_request *r, enum door_room *ret,
               const char **ret_why) {
    static const char *const rooms[] = {
        [DOOR_PAGE] = "", [DOOR_EVENTS] = "events", [DOOR_WORDS] = "say"};
    if (!is_our_host(d, r->host))
        return refuse(403, "this host is not asked for by that name; take the address as printed",
                      ret_why);
    if (r->origin && !is_own_origin(r->origin, r->host))
        return refuse(403, "a page of another origin may not ask", ret_why);
    if (!has_token(d, r->target))
        return refuse(403, "the token is missing or wrong; take the address as printed", ret_why);
    for (int i = DOOR_PAGE; i <= DOOR_WORDS; i++) {
        if (!str_eq(r->target + DOOR_TOKEN + 1, rooms[i]))
            continue;
        if (r->posts != (i == DOOR_WORDS))
            return refuse(405, r->posts ? "this is only read" : "words are sent by POST", ret_why);
        *ret = (enum door_room)i;
        return 0;
    }
    return refuse(404, "there is nothing of that name", ret_why);
}

int door_line(const char *body, size_t n, char ret[DOOR_LINE_MAX], const char **ret_why) {
    if (n && body[n - 1] == '\n')
        n--;
    if (n >= DOOR_LINE_MAX)
        return refuse(413, "a line is shorter than 2048 bytes", ret_why);
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)body[i] < ' ' || body[i] == 0x7f)
            return refuse(400, "one line at a time, without control characters", ret_why);
    if (!n)
        return refuse(400, "no line was sent", ret_why);
    memcpy(ret, body, n);
    ret[n] = '\0';
    return 0;
}
