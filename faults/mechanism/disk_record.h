/* disk_record: what programs did to one directory, in the order in which it took effect, with the
 * bytes. Who watches the directory (a FUSE disk, or their system calls) writes it; harness/crash
 * reads it and works out what a disk could hold after a death at any point.
 *
 * On disk: PATH is a line of JSON per operation (the names of enum disk_deed in lower case; `at`
 * and `size` of a write say where its bytes are), PATH.bytes all bytes one after the other. Both
 * grow at their ends alone, the bytes first, so a reader may follow a writer: a last line without
 * its end is not there yet. What the directory held before is told first, as DISK_HAD, whole.
 * Versioned: the first line is {"record": 1}. What is none, 0 or false is left out, of rank -1;
 * a name that is no UTF-8 stands as "path64" or "to64", in base64. */
#pragma once

#include "base/arena.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum disk_deed {
    DISK_HAD,      /* it was there at the beginning: file, path, its mode and all bytes; durable.
                       A link says `to`; a second one of a number is one more name, without bytes */
    DISK_CREATE,   /* a new regular file, empty */
    DISK_MKDIR,    /* a new directory; file is its number too */
    DISK_SYMLINK,  /* `to` is what it says */
    DISK_LINK,     /* `to` is one more name of path */
    DISK_RENAME,   /* path became `to`; what `to` named before has lost that name */
    DISK_EXCHANGE, /* path and `to` have exchanged their names */
    DISK_UNLINK,   /* of a file or a link */
    DISK_RMDIR,
    DISK_WRITE,      /* bytes at offset (an append's is resolved); a mapping's pages as they came */
    DISK_TRUNCATE,   /* the size is offset now, by ftruncate or O_TRUNC */
    DISK_ALLOCATE,   /* fallocate: offset, size; mode in `mode` */
    DISK_MODE,       /* chmod: mode in `mode` */
    DISK_SYNC,       /* fsync of a file, or of a directory: then path is its */
    DISK_SYNC_DATA,  /* fdatasync */
    DISK_SYNC_ALL,   /* sync, syncfs */
    DISK_SYNC_RANGE, /* sync_file_range: offset, size; promises nothing */
    DISK_OPEN,       /* to write; changes nothing */
    DISK_CLOSE,      /* of a descriptor that was open to write; changes nothing */
    DISK_MARK,       /* the job told something (path: what, as "checkpoint-write 20") or a worker
                       waited for others (path: "barrier"); changes nothing */
    DISK_DEEDS_N
};
extern const char *const disk_deed_names[DISK_DEEDS_N];

/* Done: one that failed changes nothing and is not recorded. Paths are relative to the directory,
 * "" is itself, and are those of that time; `file` stays the same over renames and links, and no
 * number is used twice. */
struct disk_operation {
    enum disk_deed deed;
    bool directory; /* of DISK_HAD, DISK_SYNC, DISK_RENAME: it is about a directory */
    uint64_t file;
    const char *path, *to;
    unsigned mode; /* permissions of what is made, or has them now; of DISK_ALLOCATE its flags */
    uint64_t offset, size;
    const unsigned char *bytes; /* of DISK_HAD and DISK_WRITE: size of them */
    int64_t t_ns;               /* CLOCK_MONOTONIC, of the host */
    int pid;                    /* whose process it was, as the host numbers it; 0: not known */
    int rank;                   /* its RANK; -1: it has none, or it is not known */
    const char *node;           /* of a cluster; "" where there is none */
};

struct disk_record {
    const struct disk_operation *v;
    size_t n;
    uint64_t bytes; /* of all writes */
    uint64_t full;  /* 0, or the bound at which the record ends before the job did */
};

/* ---- writing: one writer, by whom the order is given ---- */

struct disk_recorder;

/* What is at path is written over. max_bytes bounds what is kept of writes and of what was there
 * (0: 1 GiB); past it nothing more is recorded and disk_recorder_full is true: also where the disk
 * that holds the record is full. 0 or a -errno. */
int disk_recorder_open(struct disk_recorder **ret, const char *path, uint64_t max_bytes,
                       struct err *err);
/* Who a process is by its environment (/proc/PID/environ), as it was started. */
struct disk_writer {
    int rank;      /* RANK; -1: it has none, or fd is -1 */
    char node[64]; /* RANKQUAKE_NODE: of a cluster; "" */
};
void disk_writer_in(int fd, struct disk_writer *ret);
void disk_recorder_add(struct disk_recorder *r, const struct disk_operation *o);
bool disk_recorder_full(const struct disk_recorder *r);
/* From now on it is held in memory, and put on the disk by a thread of its own (disk_spool.h): where
 * somebody waits for each operation to be recorded. 0 or a -errno. */
int disk_recorder_hold(struct disk_recorder *r, struct err *err);
/* Where the bytes of the next operation may be put, which need not be copied then. NULL: nothing is
 * held, or not so much. */
unsigned char *disk_recorder_room(struct disk_recorder *r, size_t size);
bool disk_recorder_holds(
    const struct disk_recorder *r);                /* something the thread has not been given */
void disk_recorder_flush(struct disk_recorder *r); /* gives it; does not wait for the disk */
/* What could not be written, or is full (-EFBIG), is said here. NULL is closed too. */
int disk_recorder_close(struct disk_recorder *r, struct err *err);

/* ---- reading ---- */

/* All of it; the bytes stay mapped until the process ends. No path of it leads out of the
 * directory. -EINVAL names the line, -EFBIG: more than 512 MiB of lines. */
int disk_record_load(const char *path, struct arena *arena, struct disk_record *ret,
                     struct err *err);
/* For qsort: operations by their moments. */
int disk_record_by_time(const void *a, const void *b);
