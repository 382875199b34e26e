/* call_scene: one system call that waits, and what it is about in the directory that is recorded.
 * Private to the room. */
#pragma once

#include "base/buf.h"
#include "harness/crash/call_record.h"
#include "harness/crash/index.h"

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

/* A directory in which a name was found, kept open: whoever names it again has the same inode. */
struct call_folder {
    int fd; /* -1: none */
    dev_t dev;
    ino_t ino;
    char path[PATH_MAX]; /* from the directory that is recorded */
};
enum { CALL_FOLDERS = 4 };

/* A file, or a directory, that was served of late, with its path, which follows what is renamed. */
struct call_served {
    bool known;
    dev_t dev;
    ino_t ino;
    char path[PATH_MAX];
};
enum { CALL_SERVED = 8 };

struct call_record {
    int watch, dir;
    char base[PATH_MAX]; /* what the kernel calls the directory */
    struct disk_recorder *to;
    struct call_record_seen seen;
    struct known_file {
        dev_t dev;
        ino_t ino;
        uint64_t file;
    } * known;
    size_t known_n;
    struct crash_index by_inode;
    uint64_t files; /* the last number given */
    struct call_served served[CALL_SERVED];
    size_t served_next; /* the oldest */
    struct call_folder folders[CALL_FOLDERS];
    size_t folders_next, folders_lent; /* the newest, and the one that a place has borrowed last */
    struct {
        dev_t dev;
        ino_t ino;
    } outside[CALL_FOLDERS]; /* directories that were seen elsewhere last */
    size_t outside_next;
    pid_t pid, thread; /* whose pidfd is kept, and who called last of it */
    int pidfd;
    int64_t met_ns;         /* when */
    struct disk_writer who; /* the same process */
    mode_t mask;            /* its umask, where */
    bool mask_known;
    struct buf bytes;
    int idle; /* a timer, which runs while anything is held */
    bool idle_runs;
    int64_t served_ns; /* when something was recorded last */
};

struct call_scene {
    struct call_record *r;
    const struct watched_call *c;
};

/* A name in the directory: of what lies below parent. */
struct call_place {
    int parent;    /* -1: none */
    bool borrowed; /* it is one of the record's folders */
    int seen_from; /* the directory of the caller's from which it was found; -1 */
    bool looked, there;
    struct stat st;        /* of what has the name, once looked */
    char folder[PATH_MAX]; /* how the caller's text begins, up to the name */
    char name[NAME_MAX + 1];
    char path[PATH_MAX]; /* from the directory */
};
#define CALL_PLACE_NONE                                                                            \
    (struct call_place) {                                                                          \
        .parent = -1                                                                               \
    }
void call_place_close(struct call_place *p);
#define CALL_PLACE_CLOSE __attribute__((cleanup(call_place_close)))

/* What has the name, if that is a link the link; asked once. False: nothing has it. */
bool call_place_look(struct call_place *p);

/* What the caller means by a path, seen from a directory of its own (AT_FDCWD too). `at`: where the
 * text lies in it. follow: if the name is a link, what it leads to. False: not in the directory, or
 * not to be told. */
bool call_place_find(const struct call_scene *s, int dir, uint64_t at, bool follow,
                     struct call_place *ret);

/* Another one, in the same call: most often it lies beside the first. */
bool call_place_find_beside(const struct call_scene *s, int dir, uint64_t at,
                            const struct call_place *first, struct call_place *ret);

/* An open file of the caller's that lies in the directory; path from there, "" is the directory
 * itself. What has no name any more has no links. A descriptor, to be closed; -1: another one. */
int call_scene_file(const struct call_scene *s, int fd, char path[PATH_MAX], struct stat *ret);

/* The same of one that is open to write; -1: others too. */
int call_scene_writer(const struct call_scene *s, int fd, char path[PATH_MAX], struct stat *ret);

bool call_scene_read(const struct call_scene *s, uint64_t at, void *ret, size_t size);
bool call_scene_write(const struct call_scene *s, uint64_t at, const void *data, size_t size);

/* The number that the record has for it. */
uint64_t call_scene_number(const struct call_scene *s, const struct stat *st);
/* A new one: what was known by that inode is gone. */
uint64_t call_scene_new_number(const struct call_scene *s, const struct stat *st);
/* What is known of it; NULL: nothing. */
struct call_served *call_scene_find_served(const struct call_scene *s, const struct stat *st);
/* It has this path. */
void call_scene_served(const struct call_scene *s, const struct stat *st, const char *path);
/* A directory is new: what had its inode before lay anywhere. */
void call_scene_made(const struct call_scene *s, const struct stat *st);
/* A directory has come, gone or changed its place with another: no path that was known holds. */
void call_scene_moved(const struct call_scene *s);
/* Fills in when and by whom, and adds it. */
void call_scene_tell(const struct call_scene *s, struct disk_operation o);

/* ---- what each call does: the answer to it, or CALL_GOES_ON; call_names.c and call_bytes.c ---- */

#define CALL_GOES_ON  INT64_MIN
#define CALL_ANSWERED (INT64_MIN + 1)

typedef int64_t call_deed_fn(const struct call_scene *s);
call_deed_fn call_does_open, call_does_open_at, call_does_open_how, call_does_creat,
    call_does_close;
call_deed_fn call_does_rename, call_does_rename_at, call_does_link, call_does_link_at;
call_deed_fn call_does_symlink, call_does_symlink_at, call_does_unlink, call_does_unlink_at;
call_deed_fn call_does_rmdir, call_does_mkdir, call_does_mkdir_at, call_does_truncate;
call_deed_fn call_does_write, call_does_pwrite, call_does_writev, call_does_pwritev;
call_deed_fn call_does_pwritev2, call_does_ftruncate, call_does_allocate, call_does_fsync;
call_deed_fn call_does_fdatasync, call_does_sync_range, call_does_sync, call_does_syncfs;
call_deed_fn call_does_msync, call_does_copy_range, call_does_sendfile, call_does_splice;
call_deed_fn call_does_ring, call_does_umask, call_does_chmod, call_does_fchmod, call_does_chmod_at;
