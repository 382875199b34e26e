/* host_question: one question asked of this host, answered by trying, never by guessing. One const
 * struct per question, one line in host_questions.h. A question runs in a child of its own
 * (question_try), so it may move into namespaces, load libraries, install filters and die. */
#pragma once

#include "faults/fault.h"

#include <stdbool.h>

enum question_status {
    QUESTION_WORKS,
    QUESTION_LACKS,  /* fix says what would change that */
    QUESTION_UNASKED /* it has to be asked for, or nothing is lost either way */
};

struct question_given {
    const char *etcd; /* HOST:PORT of a store that jobs will use; NULL: none named */
};

struct question_result {
    const struct question_given *given;
    enum question_status status;
    char seen[240];
    char fix[360];
};

/* Nodes need what the questions of one of the two parts ask for; the rest is for all. */
enum question_part {
    QUESTION_FOR_ALL,
    QUESTION_FOR_NAMESPACES,
    QUESTION_FOR_PROCESSES,
    QUESTION_PARTS
};

struct host_question {
    const char *name;
    const char *gives; /* what cannot be done without it */
    unsigned need;     /* FAULT_NEEDS_*: faults with that need cannot be injected without it */
    enum question_part part;
    bool demo; /* no scenario runs without it; of a part: not with nodes of that kind */
    bool (*look)(struct question_result *ret); /* ends in an answer, and returns it */
};

/* Within ten seconds; a question that dies or hangs lacks what it looked for. */
void question_try(const struct host_question *p, const struct question_given *given,
                  struct question_result *ret);

/* The three answers of a question; the last texts given count. Only the first returns true. */
bool question_works(struct question_result *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
bool question_lacks(struct question_result *r, const char *fix, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
bool question_unasked(struct question_result *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* A switch of the kernel by its path below /proc/sys; -1: there is none. */
long question_sysctl(const char *name);

/* The one command or flag that would most likely give this host namespaces. */
const char *question_flag_for_namespaces(void);
