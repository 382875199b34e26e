/* disk: a directory served through the kernel's FUSE, so that all that is done to it is seen in its
 * order, recorded (disk_record.h), and lost where it was not synced. What is written lies in the
 * backing directory, at once, as the programs see it.
 *
 * The disk is served by threads of the process that opened it. It ends with that process: whoever
 * has it mounted gets ENOTCONN from then on. */
#pragma once

#include "base/err.h"
#include "faults/mechanism/disk_rules.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether the calling process, or a child of it in namespaces of its own, can mount one: tried, and
 * nothing is left of it. 0, or -ENOTSUP with the reason and what would allow it. */
int disk_check(struct err *err);

/* What a node's loss of power takes. */
enum disk_losing {
    DISK_KEEPS,       /* nothing */
    DISK_LOSES,       /* bytes and names that no fsync came after, as of a disk of its own */
    DISK_LOSES_BYTES, /* bytes alone, of that node: as of a file system on the network */
};

/* What a rule has done to an operation, and the kernel has taken. */
struct disk_struck {
    const char *node;
    int64_t rule; /* its id */
    enum disk_verdict verdict;
    unsigned does;
    int pid; /* whose it was, as the host numbers it; 0: the kernel's own, as of pages of a mapping */
    int error;        /* of DISK_FAILS: the errno */
    const char *path; /* in the directory */
};

struct disk_options {
    /* Called by any thread, with nothing locked; what it is told is its own only meanwhile. */
    void (*struck)(void *arg, const struct disk_struck *s);
    void *arg;
    const char *record; /* NULL: none */
    uint64_t max_bytes; /* of the record; 0: as disk_recorder_open has it */
    /* It has one mount, gets no rules, and nobody changes the directory behind it: what the kernel was
     * told once holds until a program of that mount changes it, and need not be asked for again; what
     * only writes goes past the kernel's pages; and its record is whole when it has been closed, not before. */
    bool alone;
    enum disk_losing losing;
    /* Where what could be lost is kept until it is synced; on the file system of the directory, not
     * in it. NULL where nothing is lost. */
    const char *held;
};

struct disk;

/* dir is opened and may be mounted over from here on. What it holds is told to the record. Returns
 * 0 or a -errno. */
int disk_open(struct disk **ret, const char *dir, const struct disk_options *o, struct err *err);

/* A mount of it for a node ("" where there is none), which is served from here on; *ret_mount is
 * the caller's, for fuse_port_attach, here or in another mount namespace below the same user
 * namespace. *ret_slot names it. */
int disk_mount(struct disk *d, const char *node, int *ret_mount, size_t *ret_slot, struct err *err);
/* The mount is over, as its node has lost its power: what it had not synced is lost. */
int disk_power_off(struct disk *d, size_t slot, struct err *err);
/* The mount is over, and nothing is lost. */
void disk_forget(struct disk *d, size_t slot);
/* What is done through this mount gets what the rule says, from the next operation on; or as before
 * again: who waits for the rule of that id goes on, and all that it has struck has been told. */
void disk_rule_add(struct disk *d, size_t slot, const struct disk_rule *rule);
void disk_rule_drop(struct disk *d, size_t slot, int64_t id);
/* All rules of the mount, as it is about to be over: whoever waits gets EIO. */
void disk_let_go(struct disk *d, size_t slot);
/* Something that the job told: into the record (DISK_MARK). */
void disk_mark(struct disk *d, const char *node, int pid, const char *what);

/* Says what of the record could not be written. The threads end with the process: nothing else of
 * the disk is used after it. */
int disk_close(struct disk *d, struct err *err);
