/* host_link: a node's way to its host: the command whose standard streams are the helper's there, and
 * what of the helper's messages only comes from other hosts (node_helper.h). Of this room only. */
#pragma once

#include "harness/cluster/far_calls.h"

/* Where rankprobe lies, there as here. */
const char *hosts_probe(const struct node *n);
/* Starts the command; its end is n->init, its ends are n->ends. */
int host_link_start(struct node *n, struct err *err);
void host_link_let_go(struct host_link *l);            /* what it has of a life that is over */
struct host_link *host_link_free(struct host_link *l); /* NULL is allowed; returns NULL */

/* The last line that the command has printed; "". */
const char *host_link_last_words(struct host_link *l);
/* The helper has arranged the node: whether {shared} is there what it is here is asked now, and the node
 * is up when it is. */
int host_link_ready(struct host_link *l, struct err *err);
/* Its host has begun anew, and its clock with it. */
void host_link_begun_anew(struct host_link *l);
void host_link_arm(struct host_link *l);
/* Where what the program prints goes; stays the caller's. */
void host_link_log(struct host_link *l, int log);
/* What the message says of who is meant, in place of a descriptor. */
void host_link_put_target(struct host_link *l, const struct target *t, struct json_writer *w);
int host_link_signal(struct host_link *l, pid_t number, int signo, struct err *err);
void host_link_look(struct host_link *l, pid_t number);

/* A system call there may go on; which one it is, NULL: it does not wait. */
void host_link_pass(struct host_link *l, uint64_t call);
const struct far_call *host_link_call(const struct host_link *l, uint64_t call);

/* What follows is about this message: it says when it has happened there. NULL: about none. */
void host_link_note(struct host_link *l, const struct json *m);
/* When that was; false: nothing is known of their clock, or no message is being told. */
bool host_link_moment(const struct host_link *l, struct clock_stamp *ret);

/* Its program runs: a descriptor that becomes readable when it ends, the caller's; or -errno. */
int host_link_started(struct host_link *l, const struct json *m);
void host_link_exited(struct host_link *l, pid_t number, int status);
void host_link_injected(struct host_link *l, const struct json *m);
/* False: it is no message of other hosts. */
bool host_link_hear(struct host_link *l, const char *op, const struct json *m);
