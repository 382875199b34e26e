/* web: a run as a page of its own, by libevent's http: the page, its state as server-sent events, and lines from
 * its buttons. What it serves is made here; no file is opened for a request. */
#pragma once

#include "base/sys/folder.h"
#include "base/sys/loop.h"
#include "base/sys/tcp.h"
#include "harness/verbs/watch/door.h"
#include "reports/lanes.h"

struct web;

enum { WEB_URL = TCP_HOST_MAX + 64 };

/* Listens at the address. told: after web_end, when every page that was open has been told. run must
 * outlive it. NULL with err: the port is taken, or the address is not this host's. */
struct web *web_new(struct loop *loop, const struct folder *run, const struct tcp_endpoint *at,
                    bool beyond, void (*told)(void *arg), void *arg, struct err *err);
struct web *web_free(struct web *w); /* NULL is allowed; returns NULL */
/* What is to be opened, with the token. */
void web_url(const struct web *w, char ret[WEB_URL]);
/* Something has changed in what is shown, lanes: pages are told, ten times a second at most. NULL takes
 * it back, before what was shown is freed. */
void web_changed(struct web *w, const struct lanes *lanes);
/* Nothing more will change; why: "", or a sentence. Pages that are opened later are told so, too. */
void web_end(struct web *w, const char *why);
