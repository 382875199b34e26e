#include "harness/observe/held.h"

#include "base/str.h"
#include "base/sys/file.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_MAX = 1 << 16, DEEPEST = 8 };

static int read_of(pid_t pid, const char *what, struct buf *out) {
    char path[128];
    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, what);
    buf_clear(out);
    return file_read(path, TEXT_MAX, out, NULL);
}

/* Unknown stays unknown, whatever is added. */
static void add(int64_t *sum, int64_t more) {
    *sum = *sum < 0 || more < 0 ? -1 : *sum + more;
}

/* ---- memory and threads ---- */

static int64_t resident(pid_t pid) {
    BUF_FINI struct buf text = {0};
    const char *at = read_of(pid, "statm", &text) ? NULL : strchr(buf_str(&text), ' ');
    return at ? strtoll(at, NULL, 10) * sysconf(_SC_PAGESIZE) : -1;
}

static int64_t threads(pid_t pid) {
    BUF_FINI struct buf text = {0};
    const char *at = read_of(pid, "status", &text) ? NULL : strstr(buf_str(&text), "\nThreads:");
    return at ? strtoll(at + strlen("\nThreads:"), NULL, 10) : -1;
}

/* ---- descriptors ---- */

enum held_kind held_kind_of(const char *link) {
    if (str_starts(link, "socket:"))
        return HELD_socket;
    if (str_starts(link, "pipe:"))
        return HELD_pipe;
    if (str_starts(link, "anon_inode:[pidfd]") || str_starts(link, "pidfd:"))
        return HELD_pidfd; /* since Linux 6.9 it has a file system of its own */
    return str_starts(link, "anon_inode:") ? HELD_anonymous : HELD_file;
}

static void add_descriptors(struct held_sum *h, pid_t pid) {
    char path[64], link[256];
    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    FILE_CLOSE_DIR DIR *dir = opendir(path);
    if (!dir)
        h->fds = -1;
    for (struct dirent *d; dir && (d = readdir(dir));) {
        ssize_t n = isdigit((unsigned char)d->d_name[0])
                        ? readlinkat(dirfd(dir), d->d_name, link, sizeof(link) - 1)
                        : -1;
        if (n < 0)
            continue;
        link[n] = '\0';
        h->kinds[held_kind_of(link)]++;
        add(&h->fds, 1);
    }
}

void held_add(struct held_sum *h, pid_t pid) {
    int64_t rss = resident(pid);
    if (rss <= 0) /* it is gone, or a zombie */
        return;
    h->processes++;
    add(&h->rss, rss);
    add(&h->threads, threads(pid));
    add_descriptors(h, pid);
}

/* ---- a tree of processes ---- */

struct tree {
    void (*visit)(void *arg, pid_t pid);
    void *arg;
    const pid_t *without;
    size_t n;
};

static bool is_without(const struct tree *t, pid_t pid) {
    for (size_t i = 0; i < t->n; i++)
        if (t->without[i] == pid)
            return true;
    return false;
}

static void visit_below(const struct tree *t, pid_t pid, int depth);

/* Each thread has its own children. */
static void visit_children(const struct tree *t, pid_t pid, const char *thread, int depth) {
    BUF_FINI struct buf text = {0};
    char what[64], *save = NULL;
    snprintf(what, sizeof(what), "task/%.20s/children", thread);
    if (read_of(pid, what, &text) || !text.len)
        return;
    for (char *word = strtok_r(text.data, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        pid_t child = (pid_t)strtol(word, NULL, 10);
        if (child <= 0 || is_without(t, child))
            continue;
        t->visit(t->arg, child);
        visit_below(t, child, depth + 1);
    }
}

static void visit_below(const struct tree *t, pid_t pid, int depth) {
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    FILE_CLOSE_DIR DIR *dir = depth < DEEPEST ? opendir(path) : NULL;
    for (struct dirent *d; dir && (d = readdir(dir));)
        if (isdigit((unsigned char)d->d_name[0]))
            visit_children(t, pid, d->d_name, depth);
}

void held_each_descendant(pid_t pid, const pid_t *without, size_t n,
                          void (*visit)(void *arg, pid_t pid), void *arg) {
    struct tree t = {visit, arg, without, n};
    visit_below(&t, pid, 0);
}

static void add_one(void *h, pid_t pid) {
    held_add(h, pid);
}

void held_add_descendants(struct held_sum *h, pid_t pid, const pid_t *without, size_t n) {
    held_each_descendant(pid, without, n, add_one, h);
}

void held_put(struct json_writer *w, const struct held_sum *h) {
    static const char *const names[] = {
#define X(name) #name,
        HELD_KINDS(X)
#undef X
    };
    if (h->rss >= 0)
        json_put_i64(w, "rss", h->rss);
    if (h->threads >= 0)
        json_put_i64(w, "threads", h->threads);
    if (h->fds < 0)
        return;
    json_put_i64(w, "fds", h->fds);
    json_object(w, "kinds");
    for (int k = 0; k < HELD_KINDS_N; k++)
        json_put_i64(w, names[k], h->kinds[k]);
    json_end_object(w);
}
