/* disk_asker: requests as the kernel makes them of a disk that records, through a socket in the place of
 * /dev/fuse; what lies in its directory, and what its record says. */
#pragma once

#include "faults/mechanism/disk/disk_server.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

struct asker {
    struct disk *disk;
    struct disk_mount *mount;
    int kernel; /* the other end */
    char dir[40], over[60], record[60];
    struct arena arena;
    struct {
        struct fuse_out_header head;
        union {
            struct fuse_entry_out entry;
            struct {
                struct fuse_entry_out entry;
                struct fuse_open_out open;
            } made;
            struct fuse_open_out open;
            struct fuse_attr_out attr;
            struct fuse_write_out write;
            char bytes[8192];
        };
    } answer;
    ssize_t size; /* of the answer, without its head */
};

static inline int asker_begin(void **state) {
    struct asker *a = mem_new(struct asker);
    struct err err = {0};
    int ends[2];
    strcpy(a->dir, "/tmp/rq-asker-XXXXXX");
    if (!mkdtemp(a->dir))
        return -1;
    snprintf(a->over, sizeof(a->over), "%s/over", a->dir);
    snprintf(a->record, sizeof(a->record), "%s/record", a->dir);
    if (mkdir(a->over, 0755) != 0 ||
        disk_open(&a->disk, a->over, &(struct disk_options){.record = a->record}, &err) != 0 ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return -1;
    a->mount = mem_new(struct disk_mount);
    *a->mount =
        (struct disk_mount){.disk = a->disk, .fd = ends[0], .node = mem_strdup(""), .threads = 1};
    a->disk->mounts[0] = a->mount;
    a->kernel = ends[1];
    *state = a;
    return 0;
}

static inline int asker_end(void **state) {
    struct asker *a = *state;
    char command[100];
    disk_forget(a->disk, 0);
    free(a->mount->opened);
    free(a->mount->node);
    close(a->mount->fd);
    close(a->kernel);
    free(a->mount);
    disk_close(a->disk, NULL);
    disk_tree_fini(&a->disk->tree);
    close(a->disk->backing);
    buf_fini(&a->disk->path);
    buf_fini(&a->disk->to);
    free(a->disk);
    arena_fini(&a->arena);
    snprintf(command, sizeof(command), "rm -rf %s", a->dir);
    free(a);
    return system(command);
}

/* 0 or a -errno; the rest lies in `answer`. cut: of a write only so much, as a rule has it. */
static inline int asker_ask_cut(struct asker *a, unsigned opcode, uint64_t node, const void *arg,
                                size_t size, const void *more, size_t more_n, size_t cut) {
    static char request[16384], reply[DISK_WRITE_MAX];
    struct fuse_in_header in = {.opcode = opcode, .nodeid = node, .unique = 1};
    memcpy(request, &in, sizeof(in));
    if (size)
        memcpy(request + sizeof(in), arg, size);
    if (more_n)
        memcpy(request + sizeof(in) + size, more, more_n);
    struct disk_call c = disk_call_of(a->mount, request, sizeof(in) + size + more_n, reply);
    c.cut = cut;
    disk_deal_with(&c);
    ssize_t n = recv(a->kernel, &a->answer, sizeof(a->answer), 0);
    assert_true(n >= (ssize_t)sizeof(a->answer.head));
    a->size = n - (ssize_t)sizeof(a->answer.head);
    return a->answer.head.error;
}

static inline int asker_ask(struct asker *a, unsigned opcode, uint64_t node, const void *arg,
                            size_t size, const void *more, size_t more_n) {
    return asker_ask_cut(a, opcode, node, arg, size, more, more_n, 0);
}

/* The node that goes by this name in `parent`; 0: none. */
static inline uint64_t asker_look(struct asker *a, uint64_t parent, const char *name) {
    int r = asker_ask(a, FUSE_LOOKUP, parent, NULL, 0, name, strlen(name) + 1);
    return r ? 0 : a->answer.entry.nodeid;
}

/* Makes and opens a file. Returns its node, and the handle. */
static inline uint64_t asker_create(struct asker *a, const char *name, unsigned flags,
                                    uint64_t *ret_fh) {
    const struct fuse_create_in in = {.flags = flags | O_CREAT, .mode = S_IFREG | 0640};
    assert_int_equal(asker_ask(a, FUSE_CREATE, DISK_ROOT, &in, sizeof(in), name, strlen(name) + 1),
                     0);
    *ret_fh = a->answer.made.open.fh;
    return a->answer.made.entry.nodeid;
}

/* Below the directory, by another way than the disk. */
static inline int asker_lies(const struct asker *a, const char *name, char ret[64]) {
    char path[200];
    snprintf(path, sizeof(path), "%s/%s", a->over, name);
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, ret, 63);
    int r = n < 0 ? -errno : (int)n;
    ret[n > 0 ? n : 0] = '\0';
    if (fd >= 0)
        close(fd);
    return r;
}

/* What the record tells so far, one operation to a line: deed path [to] [offset+size or mode]. */
static inline const char *asker_record(struct asker *a) {
    struct disk_record r = {0};
    struct err err = {0};
    size_t at = 0, room = 4096;
    char *text = arena_alloc(&a->arena, room);
    text[0] = '\0';
    assert_int_equal(disk_record_load(a->record, &a->arena, &r, &err), 0);
    for (size_t i = 0; i < r.n; i++) {
        const struct disk_operation *o = &r.v[i];
        bool sized = o->deed == DISK_WRITE || o->deed == DISK_ALLOCATE || o->deed == DISK_TRUNCATE;
        bool moded = o->deed == DISK_CREATE || o->deed == DISK_MKDIR || o->deed == DISK_MODE;
        if (o->deed == DISK_HAD)
            continue;
        at += (size_t)snprintf(text + at, room - at, "%s %s", disk_deed_names[o->deed],
                               *o->path ? o->path : ".");
        if (o->to && *o->to)
            at += (size_t)snprintf(text + at, room - at, " %s", o->to);
        if (sized)
            at += (size_t)snprintf(text + at, room - at, " %d+%d", (int)o->offset, (int)o->size);
        if (moded)
            at += (size_t)snprintf(text + at, room - at, " %o", o->mode);
        at += (size_t)snprintf(text + at, room - at, "\n");
    }
    return text;
}
