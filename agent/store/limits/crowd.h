/* crowd: who is connected to the embedded store, so that strangers cannot take the places of
 * agents.
 *
 * A connection is a stranger's until it has asked something, a guest's when it has, and an agent's
 * once it has asked about a run that is there. Strangers and guests have a quarter of all places,
 * and 1,024 where that is no more than half. Where there is none left, of the address that has most
 * of them the connection goes that was silent longest, but not within 100 ms, and not while
 * something of it waits to be read; whoever comes meanwhile waits. Agents' connections go last, and
 * only those on which nothing is under way: a client sends its next request on another one.
 *
 * A guest that asks often or much is served after all others (LOOP_LAST), as long as that leaves it
 * a turn. All others are of one priority: looking for whom to serve first costs a store with a
 * thousand agents more than serving them.
 *
 * This is who is told that evhttp frees a connection. Nobody else may set its close callback. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct bounds;
struct bufferevent;
struct crowd;
struct evconnlistener;
struct evhttp_connection;
struct loop;

enum crowd_rank { CROWD_STRANGER, CROWD_GUEST, CROWD_AGENT, CROWD_RANKS };

struct crowd_watch {
    void (*gone)(void *arg, struct bufferevent *b); /* it is about to be freed */
    void *arg;
};

/* How many connections this process may have: of its open files all but some. */
size_t crowd_default(void);

struct crowd *crowd_new(struct loop *l, struct bounds *bounds, const struct crowd_watch *watch);
struct crowd *crowd_free(struct crowd *c); /* after all connections; NULL is allowed */
void crowd_limit(struct crowd *c, size_t connections_max);
/* Lent: it is paused while nobody can come in. */
void crowd_listen(struct crowd *c, struct evconnlistener *listener);
/* No connection could be taken, as there are no more files. */
void crowd_wait(struct crowd *c);

/* A new connection, which gets its socket when this has returned. */
void crowd_enter(struct crowd *c, struct bufferevent *b);
/* It has asked something that was answered. A rank only rises. */
void crowd_asked(struct crowd *c, struct evhttp_connection *connection, enum crowd_rank rank);
/* It sends much. Nothing where it is an agent's. */
void crowd_lower(struct crowd *c, struct bufferevent *b);
enum crowd_rank crowd_rank_of(const struct crowd *c, struct evhttp_connection *connection);
/* Whose it is, as text; it lives until the next call. */
const char *crowd_address(const struct crowd *c, struct evhttp_connection *connection);
size_t crowd_count(const struct crowd *c, enum crowd_rank rank);

/* fn is called when the connection is freed, and until it is set to NULL something is under way. */
typedef void crowd_close_fn(struct evhttp_connection *connection, void *arg);
void crowd_on_close(struct crowd *c, struct evhttp_connection *connection, crowd_close_fn *fn,
                    void *arg);
/* Ends it: evhttp frees it on the next turn. */
void crowd_end(struct crowd *c, struct evhttp_connection *connection);
