/* hello: the first message of either end of a carrier: which version of the protocol it speaks, and
 * of a helper where it is and what can be done there. Whoever hears another version refuses, before
 * anything was done. */
#pragma once

#include "base/json.h"

enum { HELLO_VERSION = 2 };

/* What a helper may be able to do; the words are those of `can`. */
#define HELLO_ABILITIES                                                                            \
    X(DESCRIPTORS, "descriptors") /* it takes and gives open files: it is on the harness's host */ \
    X(ADOPTION, "adoption")       /* what loses its parent comes to it: nobody escapes */          \
    X(PIDFDS, "pidfds")           /* it strikes whom it means, never a number's next owner */      \
    X(ROOT, "root")               /* it has all rights there */                                    \
    X(SILENT_SOCKETS, "silent-sockets") /* a TCP connection can be made deaf (IP_MINTTL) */        \
    X(TRACE, "trace")                   /* a process can be made to do something (ptrace) */       \
    X(WATCHED_CALLS, "watched-calls")   /* system calls can wait for us (seccomp) */               \
    X(OWNED_TABLES, "owned-tables")     /* packets can be filtered by what goes away with us */    \
    X(CPU_LIMITS, "cpu-limits")         /* processes can be held to limits by a control group */   \
    X(MEMORY_LIMITS, "memory-limits")   /* the same of what they have in memory */                 \
    X(PIDS_LIMITS, "pids-limits")       /* and of how many they are */                             \
    X(UPTIMES, "uptimes")               /* what it starts can have another uptime than the host */ \
    X(WALL_CLOCKS, "wall-clocks") /* programs can have a wall clock of their own (LD_PRELOAD) */

enum hello_ability {
#define X(id, word) HELLO_CAN_##id,
    HELLO_ABILITIES
#undef X
        HELLO_ABILITIES_N
};
extern const char *const hello_abilities[HELLO_ABILITIES_N + 1]; /* NULL-ended */

struct hello {
    int64_t version, uid, pid; /* pid: as its own host numbers it */
    char boot_id[40];          /* of the kernel there: who shares it shares clock and processes */
    /* Of what began there first: its namespace of processes, and when it was started. With boot_id
     * it says whether the host, or the container, has begun anew. "": it is not known. */
    char life[48];
    char host[65];
    unsigned can; /* bits of enum hello_ability */
};

/* As the members of a message that has been begun. */
void hello_put(struct json_writer *w, const struct hello *h);
/* What is missing is 0 or "", words that nobody knows are left out. */
void hello_take(const struct json *message, struct hello *ret);
/* Whether it has begun anew between these two; false also where nothing shows it. */
bool hello_is_another_life(const struct hello *before, const struct hello *now);
/* Of this process: all but what depends on how it is reached. Orphans come to it from then on. */
void hello_here(struct hello *ret);
/* 0, or -EPROTO with a sentence: it cannot be spoken with. who: "n1", as people know it. */
int hello_check(const struct hello *h, const char *who, struct err *err);
