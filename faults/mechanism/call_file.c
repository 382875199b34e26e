#include "faults/mechanism/call_file.h"

#include "base/str.h"
#include "base/sys/file.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* ---- what the caller has ---- */

/* As far as the page that it begins in and the next one reach. */
static bool read_text(const struct watched_call *c, uint64_t at, char ret[CALL_FILE_MAX]) {
    size_t got = 0, page = 4096 - at % 4096;
    while (got < CALL_FILE_MAX) {
        size_t len = page < CALL_FILE_MAX - got ? page : CALL_FILE_MAX - got;
        struct iovec own = {ret + got, len}, its = {(void *)(uintptr_t)(at + got), len};
        if (process_vm_readv(c->thread, &own, 1, &its, 1, 0) != (ssize_t)len)
            break;
        if (memchr(ret + got, 0, len))
            return true;
        got += len;
        page = 4096;
    }
    ret[0] = '\0';
    return false;
}

static void read_link(const struct watched_call *c, const char *what, char ret[CALL_FILE_MAX]) {
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/%s", (int)c->thread, what);
    ssize_t n = readlink(path, ret, CALL_FILE_MAX - 1);
    ret[n > 0 ? n : 0] = '\0';
    if (*ret != '/') /* a pipe, a socket */
        ret[0] = '\0';
}

void call_file_of(const struct watched_call *c, int fd, char ret[CALL_FILE_MAX]) {
    char what[32];
    snprintf(what, sizeof(what), "fd/%d", fd);
    read_link(c, what, ret);
}

static bool was_opened_to_write(const struct watched_call *c, int fd) {
    char path[64];
    BUF_FINI struct buf info = {0};
    snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", (int)c->thread, fd);
    const char *flags =
        file_read(path, 1 << 16, &info, NULL) == 0 ? strstr(buf_str(&info), "flags:") : NULL;
    return flags && strtoul(flags + strlen("flags:"), NULL, 8) & O_ACCMODE;
}

/* ---- names ---- */

/* Takes "//", "." and ".." out of an absolute path. */
static void settle(char *path) {
    char *out = path;
    for (const char *p = path; *p;) {
        size_t n = strcspn(++p, "/");
        if (n == 2 && p[0] == '.' && p[1] == '.') {
            while (out > path && *--out != '/')
                ;
        } else if (n && !(n == 1 && *p == '.')) {
            *out++ = '/';
            memmove(out, p, n);
            out += n;
        }
        p += n;
    }
    *out = '\0';
}

void call_file_at(const struct watched_call *c, int dir, uint64_t name, char ret[CALL_FILE_MAX]) {
    char text[CALL_FILE_MAX], base[CALL_FILE_MAX] = "";
    ret[0] = '\0';
    if (!read_text(c, name, text) || !*text)
        return;
    if (*text != '/' && dir == AT_FDCWD)
        read_link(c, "cwd", base);
    else if (*text != '/')
        call_file_of(c, dir, base);
    if (*text != '/' && !*base)
        return;
    if (snprintf(ret, CALL_FILE_MAX, "%s/%s", base, text) >= CALL_FILE_MAX)
        ret[0] = '\0';
    settle(ret);
}

/* ---- calls ---- */

bool call_file_opens_to_write(const struct watched_call *c, uint64_t flags) {
#ifdef SYS_creat
    if (c->nr == SYS_creat)
        return true;
#endif
    struct iovec own = {&flags, sizeof(flags)},
                 its = {(void *)(uintptr_t)c->args[2], sizeof(flags)};
    if (c->nr == SYS_openat2 && process_vm_readv(c->thread, &own, 1, &its, 1, 0) < 0)
        return false;
    return flags & (O_ACCMODE | O_CREAT | O_TRUNC);
}

static void open_paths(const struct watched_call *c, char *from) {
    bool at = c->nr == SYS_openat || c->nr == SYS_openat2;
    if (call_file_opens_to_write(c, c->args[at ? 2 : 1]))
        call_file_at(c, at ? (int)c->args[0] : AT_FDCWD, c->args[at], from);
}

static void rename_paths(const struct watched_call *c, char *from, char *to) {
#ifdef SYS_rename
    if (c->nr == SYS_rename) {
        call_file_at(c, AT_FDCWD, c->args[0], from);
        call_file_at(c, AT_FDCWD, c->args[1], to);
        return;
    }
#endif
    call_file_at(c, (int)c->args[0], c->args[1], from);
    call_file_at(c, (int)c->args[2], c->args[3], to);
}

void call_file_paths(const struct watched_call *c, char from[CALL_FILE_MAX],
                     char to[CALL_FILE_MAX]) {
    int fd = (int)c->args[c->nr == SYS_copy_file_range ? 2 : 0];
    from[0] = to[0] = '\0';
    if (c->kind == CALL_OPEN)
        open_paths(c, from);
    else if (c->kind == CALL_RENAME)
        rename_paths(c, from, to);
    else if (c->kind == CALL_WRITE || (c->kind == CALL_CLOSE && was_opened_to_write(c, fd)))
        call_file_of(c, fd, from);
}
