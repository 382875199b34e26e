/* disk_server: how the parts of a disk lie together; of this room only. */
#pragma once

#include "faults/mechanism/disk/disk.h"
#include "faults/mechanism/disk/disk_loss.h"
#include "faults/mechanism/disk/disk_tree.h"
#include "faults/mechanism/disk/fuse_port.h"
#include "faults/mechanism/disk_record.h"

#include <linux/fuse.h>
#include <pthread.h>

enum { DISK_WRITE_MAX = 1 << 20, DISK_THREADS_MAX = 32, DISK_CALLERS = 64 };

/* A thread of a process that uses the disk. */
struct disk_caller {
    int thread, proc; /* proc: of /proc/THREAD, by which it is seen whether it is still the same */
    int pid;
    int64_t met_ns; /* when it was seen last */
    struct disk_writer who;
};

/* What an open directory lists that is so no more: disk_late.h. */
struct disk_list {
    int fd;
    struct buf entries;
};

struct disk_mount {
    struct disk *disk;
    size_t slot;
    int fd;
    char *node;
    bool dead; /* its node has lost its power: nothing of it takes effect any more */
    unsigned threads, idle;
    int *opened; /* descriptors that the mount holds */
    size_t opened_n;
    struct disk_rule_state *rules;
    size_t rules_n;
    struct disk_belief *seen; /* what it was told: disk_late.h */
    struct disk_list *lists;
    size_t seen_n, lists_n;
};

struct disk {
    pthread_mutex_t threads_lock;
    pthread_mutex_t lock; /* of all that is here; the order of effects is that of who holds it */
    int backing;
    struct disk_tree tree;
    struct disk_recorder *recorder; /* NULL: none */
    struct disk_loss loss;
    struct disk_mount *mounts[DISK_MOUNTS_MAX];
    struct disk_caller callers[DISK_CALLERS];
    struct buf path, to;
    bool root;  /* we may give files away */
    bool alone; /* what its mount was told holds */
    int idle;   /* a timer, which runs while the record is held in memory; -1 */
    bool idle_runs;
    int64_t noted_ns; /* when something was recorded last */
    void (*struck)(void *arg, const struct disk_struck *s);
    void *arg;
    struct list parked; /* requests that wait: disk_faults.h */
    pthread_cond_t parked_changed;
    unsigned telling; /* operations that were struck, of which nobody has been told yet */
};

/* One request of the kernel's. */
struct disk_call {
    struct disk_mount *mount;
    struct disk *disk;
    const struct fuse_in_header *in;
    const void *arg;
    size_t arg_len;
    const char *name; /* the first text behind arg, where there is one */
    char *reply;      /* room for DISK_WRITE_MAX bytes */
    bool ruled;       /* it has waited as a rule has it, or is none of those that rules are about */
    size_t cut;       /* of a write only so many bytes; 0: all */
    bool taken;       /* the kernel has taken the answer */
    struct disk_blow *blow; /* what a rule has done to it: disk_faults.h */
};

/* An operation: answers by one of the below. */
typedef void disk_deal(struct disk_call *c);

/* Returns 0, or -ENOENT where the kernel did not take it: nobody waits for it any more. */
int disk_answer(struct disk_call *c, const void *data, size_t len);
int disk_answer_error(struct disk_call *c, int code); /* a -errno, or 0 */

/* What the kernel has asked in `request` of n bytes; dealt with here, and answered. */
struct disk_call disk_call_of(struct disk_mount *m, const char *request, size_t n, char *reply);
void disk_deal_with(struct disk_call *c);
/* Starts one that nobody waits for. */
bool disk_thread(void *(*body)(void *), void *arg);

struct disk_file *disk_file_of(const struct disk_call *c, uint64_t number); /* NULL: none */
/* /proc/self/fd/N of the file, by which calls reach it that take no O_PATH. */
struct disk_way {
    char path[40];
};
struct disk_way disk_way_of(const struct disk_file *f);
int disk_attr(const struct disk_file *f, struct fuse_attr *ret);

/* Under the lock: the process of a thread; 0: of none. */
int disk_process_of(struct disk *d, int thread);
/* Under the lock: tells the record; of the file by its path, or of the entry. */
void disk_note(struct disk_call *c, struct disk_operation o, const struct disk_file *f);
void disk_note_entry(struct disk_call *c, struct disk_operation o, uint64_t parent,
                     const char *name);

/* Under the lock: of a directory that was not opened, as the disk is alone: a descriptor of it, the
 * caller's; else -1. */
int disk_folder_fd(const struct disk_call *c);
void disk_hold_fd(struct disk_mount *m, int fd);
void disk_drop_fd(struct disk_mount *m, int fd);

/* Holds the record in memory, for the thread of disk_idle.c to put on the disk once nobody has asked
 * for anything for a while. disk_idle_note, under the lock: something was recorded. */
int disk_idle_begin(struct disk *d, struct err *err);
void disk_idle_note(struct disk *d, int64_t t_ns);

/* How long the kernel may believe what it is told of names and attributes, in seconds. */
uint64_t disk_valid_s(const struct disk *d);
/* What an open with those flags is answered with besides. */
uint32_t disk_open_flags(const struct disk *d, int flags);

/* Everything that is in the directory now is told to the record. */
int disk_tell_all(struct disk *d, struct err *err);

/* By opcode: disk_names.c and disk_data.c. */
disk_deal disk_lookup, disk_getattr, disk_setattr, disk_readlink, disk_symlink, disk_mknod,
    disk_mkdir, disk_unlink, disk_rmdir, disk_rename, disk_rename2, disk_link, disk_create,
    disk_readdir, disk_opendir;
disk_deal disk_open_file, disk_read, disk_write, disk_release, disk_fsync, disk_flush, disk_statfs,
    disk_setxattr, disk_getxattr, disk_listxattr, disk_removexattr, disk_fallocate, disk_lseek,
    disk_syncfs;
