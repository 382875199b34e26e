#include "harness/crash/call_scene.h"

#include "base/str.h"
#include "base/sys/file.h"
#include "base/sys/root.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { LINKS_MAX = 16, NOWHERE = -1 };

/* ---- what the caller has ---- */

bool call_scene_read(const struct call_scene *s, uint64_t at, void *ret, size_t size) {
    struct iovec own = {ret, size}, its = {(void *)(uintptr_t)at, size};
    return process_vm_readv(s->c->thread, &own, 1, &its, 1, 0) == (ssize_t)size;
}

bool call_scene_write(const struct call_scene *s, uint64_t at, const void *data, size_t size) {
    struct iovec own = {(void *)(uintptr_t)data, size}, its = {(void *)(uintptr_t)at, size};
    return process_vm_writev(s->c->thread, &own, 1, &its, 1, 0) == (ssize_t)size;
}

/* Page by page: the one behind the text may not be there. */
static bool read_text(const struct call_scene *s, uint64_t at, char ret[PATH_MAX]) {
    size_t got = 0, len = 4096 - at % 4096;
    for (; got < PATH_MAX; len = 4096) {
        len = len < PATH_MAX - got ? len : PATH_MAX - got;
        if (!call_scene_read(s, at + got, ret + got, len))
            return false;
        if (memchr(ret + got, 0, len))
            return true;
        got += len;
    }
    return false;
}

static bool read_link(const char *path, char ret[PATH_MAX]) {
    ssize_t n = readlink(path, ret, PATH_MAX - 1);
    ret[n > 0 ? n : 0] = '\0';
    return n > 0 && *ret == '/';
}

/* Where the kernel shows a descriptor of the caller's, or its working directory. */
static void link_of_fd(const struct call_scene *s, int fd, char ret[64]) {
    if (fd == AT_FDCWD)
        snprintf(ret, 64, "/proc/%d/cwd", (int)s->c->thread);
    else
        snprintf(ret, 64, "/proc/%d/fd/%d", (int)s->c->thread, fd);
}

static bool path_of_fd(const struct call_scene *s, int fd, char ret[PATH_MAX]) {
    char link[64];
    link_of_fd(s, fd, link);
    return read_link(link, ret);
}

/* From the directory; false: it lies elsewhere. */
static bool is_below(const struct call_scene *s, const char *path, char ret[PATH_MAX]) {
    size_t n = strlen(s->r->base);
    if (strncmp(path, s->r->base, n) != 0 || (path[n] && path[n] != '/'))
        return false;
    return str_copy(ret, PATH_MAX, path[n] ? path + n + 1 : "");
}

/* ---- open files ---- */

static int copy_fd(const struct call_scene *s, int fd) {
    return fd < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, s->r->pidfd, fd, 0);
}

/* Takes `own`, a copy of the caller's fd. */
static int find_file(const struct call_scene *s, int own, int fd, char path[PATH_MAX],
                     struct stat *ret) {
    char whole[PATH_MAX];
    if (own < 0 || fstat(own, ret) != 0)
        return file_close(&own), -1;
    const struct call_served *l = call_scene_find_served(s, ret);
    if (l)
        return str_copy(path, PATH_MAX, l->path), own;
    if (!(S_ISREG(ret->st_mode) || S_ISDIR(ret->st_mode)) || !path_of_fd(s, fd, whole) ||
        !is_below(s, whole, path))
        return file_close(&own), -1;
    call_scene_served(s, ret, path);
    return own;
}

int call_scene_file(const struct call_scene *s, int fd, char path[PATH_MAX], struct stat *ret) {
    return find_file(s, copy_fd(s, fd), fd, path, ret);
}

int call_scene_writer(const struct call_scene *s, int fd, char path[PATH_MAX], struct stat *ret) {
    int own = copy_fd(s, fd);
    if (own >= 0 && (fcntl(own, F_GETFL) & O_ACCMODE) == O_RDONLY)
        file_close(&own);
    return find_file(s, own, fd, path, ret);
}

/* ---- names ---- */

void call_place_close(struct call_place *p) {
    if (p->borrowed)
        p->parent = -1;
    p->borrowed = false;
    file_close(&p->parent);
}

bool call_place_look(struct call_place *p) {
    if (!p->looked)
        p->there = fstatat(p->parent, p->name, &p->st, AT_SYMLINK_NOFOLLOW) == 0;
    p->looked = true;
    return p->there;
}

/* ---- folders ---- */

enum folder_lies { UNKNOWN, INSIDE, OUTSIDE };

/* Of what the caller has open a copy is quicker to be had than the way to it. */
static bool look_at_folder(const struct call_scene *s, int dir, const char *way, struct stat *ret) {
    if (dir == AT_FDCWD)
        return stat(way, ret) == 0;
    FILE_CLOSE int own = copy_fd(s, dir);
    return own >= 0 && fstat(own, ret) == 0;
}

/* The directory is asked for by the caller's own way to it, links and all; only if it is one that is kept
 * open need nothing else be asked. */
static enum folder_lies find_folder(const struct call_scene *s, int dir, const char *way,
                                    struct call_place *ret) {
    struct stat st;
    if (!look_at_folder(s, *ret->folder ? AT_FDCWD : dir, way, &st))
        return UNKNOWN;
    for (size_t i = 0; i < CALL_FOLDERS; i++) {
        const struct call_folder *f = &s->r->folders[i];
        if (f->fd < 0 || f->ino != st.st_ino || f->dev != st.st_dev)
            continue;
        ret->parent = f->fd;
        ret->borrowed = true;
        s->r->folders_lent = i;
        bool fits = snprintf(ret->path, PATH_MAX, "%s%s%s", f->path, *f->path ? "/" : "",
                             ret->name) < PATH_MAX;
        return fits ? INSIDE : UNKNOWN;
    }
    for (size_t i = 0; i < CALL_FOLDERS; i++)
        if (s->r->outside[i].ino == st.st_ino && s->r->outside[i].dev == st.st_dev)
            return OUTSIDE;
    return UNKNOWN;
}

/* One that is none of ours: a name in it is none either, unless it is a link. */
static void keep_outside(const struct call_scene *s, int parent) {
    struct call_record *r = s->r;
    struct stat st;
    if (fstat(parent, &st) != 0)
        return;
    r->outside_next = (r->outside_next + 1) % CALL_FOLDERS;
    r->outside[r->outside_next].dev = st.st_dev;
    r->outside[r->outside_next].ino = st.st_ino;
}

/* In place of another, but not of the one that was lent last: the same call may have it. */
static void keep_folder(const struct call_scene *s, int parent, const char *path) {
    struct call_record *r = s->r;
    struct stat st;
    r->folders_next = (r->folders_next + 1) % CALL_FOLDERS;
    if (r->folders_next == r->folders_lent)
        r->folders_next = (r->folders_next + 1) % CALL_FOLDERS;
    struct call_folder *f = &r->folders[r->folders_next];
    file_close(&f->fd);
    if (fstat(parent, &st) != 0 || !str_copy(f->path, PATH_MAX, path))
        return;
    f->dev = st.st_dev;
    f->ino = st.st_ino;
    f->fd = fcntl(parent, F_DUPFD_CLOEXEC, 0);
}

/* Parts the last name off, without the slashes behind it. */
static bool part(char *path, char name[NAME_MAX + 1]) {
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        path[--n] = '\0';
    char *slash = strrchr(path, '/');
    if (!slash || !slash[1] || str_eq(slash + 1, ".") || str_eq(slash + 1, "..") ||
        !str_copy(name, NAME_MAX + 1, slash + 1))
        return false;
    slash[slash == path] = '\0';
    return true;
}

/* Where the parent is that is open, and the name in it. */
static bool tell_place(const struct call_scene *s, struct call_place *ret) {
    char whole[PATH_MAX], below[PATH_MAX];
    if (ret->parent < 0 || !file_path_of(ret->parent, whole, sizeof(whole)))
        return false;
    if (!is_below(s, whole, below)) {
        keep_outside(s, ret->parent);
        return false;
    }
    keep_folder(s, ret->parent, below);
    return snprintf(ret->path, PATH_MAX, "%s%s%s", below, *below ? "/" : "", ret->name) < PATH_MAX;
}

static bool open_parent(const struct call_scene *s, const char *path, struct call_place *ret) {
    char root[64];
    snprintf(root, sizeof(root), "/proc/%d/root", (int)s->c->thread);
    call_place_close(ret);
    ret->looked = false;
    ret->parent = root_open(root, path, O_PATH | O_DIRECTORY);
    return tell_place(s, ret);
}

/* The path of what the link says, which lies where the place is. */
static bool follow_link(const struct call_place *p, char path[PATH_MAX]) {
    char text[PATH_MAX], whole[PATH_MAX];
    ssize_t n = readlinkat(p->parent, p->name, text, sizeof(text) - 1);
    if (n <= 0)
        return false;
    text[n] = '\0';
    if (*text == '/')
        return str_copy(path, PATH_MAX, text);
    return file_path_of(p->parent, whole, sizeof(whole)) &&
           snprintf(path, PATH_MAX, "%s/%s", whole, text) < PATH_MAX;
}

static bool is_link(struct call_place *p) {
    return call_place_look(p) && S_ISLNK(p->st.st_mode);
}

static bool find(const struct call_scene *s, char path[PATH_MAX], bool follow,
                 struct call_place *ret) {
    for (int i = 0; i < LINKS_MAX; i++) {
        if (!part(path, ret->name) || !open_parent(s, path, ret))
            return false;
        if (!follow || !is_link(ret))
            return true;
        ret->seen_from = NOWHERE;
        if (!follow_link(ret, path))
            return false;
    }
    return false;
}

/* The folder of a text, with its slash, and the name in it; false: that takes a closer look. */
static bool split(const char *text, struct call_place *ret) {
    const char *slash = strrchr(text, '/');
    const char *name = slash ? slash + 1 : text;
    snprintf(ret->folder, PATH_MAX, "%.*s", (int)(name - text), text);
    return *name && !str_eq(name, ".") && !str_eq(name, "..") &&
           str_copy(ret->name, NAME_MAX + 1, name);
}

/* By what name this process can ask for the folder of a text. False: there is none that means the same. */
static bool way_to_folder(const struct call_scene *s, int dir, const char *folder,
                          char ret[PATH_MAX]) {
    char from[64];
    if (*folder != '/')
        link_of_fd(s, dir, from);
    else if (!strstr(folder, ".."))
        snprintf(from, sizeof(from), "/proc/%d/root", (int)s->c->thread);
    else
        return false;
    return snprintf(ret, PATH_MAX, "%s/%s", from, folder) < PATH_MAX;
}

static bool find_text(const struct call_scene *s, int dir, const char *text, bool follow,
                      struct call_place *ret) {
    char way[PATH_MAX], path[PATH_MAX], base[PATH_MAX] = "";
    bool plain = split(text, ret);
    ret->seen_from = plain ? dir : NOWHERE;
    if (plain && way_to_folder(s, dir, ret->folder, way)) {
        enum folder_lies lies = find_folder(s, dir, way, ret);
        if (lies == OUTSIDE && !follow) {
            ret->parent = open(way, O_PATH | O_DIRECTORY | O_CLOEXEC); /* for a rename across */
            return false;
        }
        if (lies == INSIDE && !(follow && is_link(ret)))
            return true;
    }
    call_place_close(ret);
    ret->looked = false;
    if (plain && !*ret->folder) { /* the short way, of most calls */
        ret->parent = open(way, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (ret->parent >= 0 && !(follow && is_link(ret)))
            return tell_place(s, ret);
    }
    if (*text != '/' && !path_of_fd(s, dir, base))
        return false;
    return snprintf(path, sizeof(path), "%s/%s", base, text) < (int)sizeof(path) &&
           find(s, path, follow, ret);
}

bool call_place_find(const struct call_scene *s, int dir, uint64_t at, bool follow,
                     struct call_place *ret) {
    char text[PATH_MAX];
    return read_text(s, at, text) && *text && find_text(s, dir, text, follow, ret);
}

bool call_place_find_beside(const struct call_scene *s, int dir, uint64_t at,
                            const struct call_place *first, struct call_place *ret) {
    char text[PATH_MAX];
    if (!read_text(s, at, text) || !*text)
        return false;
    if (first->parent >= 0 && first->seen_from == dir && split(text, ret) &&
        str_eq(ret->folder, first->folder)) {
        ret->parent = first->parent;
        ret->borrowed = true;
        size_t folder = (size_t)(str_base(first->path) - first->path);
        return *first->path && snprintf(ret->path, PATH_MAX, "%.*s%s", (int)folder, first->path,
                                        ret->name) < PATH_MAX;
    }
    return find_text(s, dir, text, false, ret);
}
