/* door: who may ask the page of `watch --serve` for what. Pure: from what a request says to what it gets.
 *
 * The token stands in the path, so that relative addresses of the page carry it: /TOKEN/ is the page,
 * /TOKEN/events its state, /TOKEN/say takes a line. A request names the host by a number or localhost, and our
 * port: a stranger's name that has come to stand for this host is none of ours. */
#pragma once

#include "base/err.h"
#include "base/sys/tcp.h"

#include <stdbool.h>
#include <stdint.h>

enum { DOOR_TOKEN = 33, DOOR_LINE_MAX = 2048 };

struct web_door {
    char token[DOOR_TOKEN]; /* 32 hex digits */
    uint16_t port;
    bool beyond; /* addresses of this host that others reach may be named, too */
};

enum door_room { DOOR_PAGE, DOOR_EVENTS, DOOR_WORDS };

struct door_request {
    const char *target;        /* as it was sent: "/TOKEN/events" */
    const char *host, *origin; /* NULL: not sent */
    bool posts;
};

/* Where it is served: "127.0.0.1:8080", "localhost", "[::1]"; without a port a free one. A name, and
 * without `beyond` an address that other hosts reach, is -EINVAL with a sentence. */
int door_address(const char *text, bool beyond, struct tcp_endpoint *ret, struct err *err);
/* Returns 0 with the room, or the status of HTTP (403, 404, 405) with a sentence. */
int door_admit(const struct web_door *d, const struct door_request *r, enum door_room *ret,
               const char **ret_why);
/* A body of n bytes as one line without its line feed, in ret. Returns 0, or 400 or 413 with a sentence. */
int door_line(const char *body, size_t n, char ret[DOOR_LINE_MAX], const char **ret_why);
