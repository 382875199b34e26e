#include "harness/play/last_words.h"

#include "base/str.h"

#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { LINES = 15, TAIL = 32 << 10, WORKERS_SHOWN = 8 };

/* torchrun ends with a traceback of itself and a summary that name nobody's mistake: what the
 * workers printed stands before them. */
static size_t without_torchrun(const char *tail, size_t n) {
    static const char begin[] = "Traceback (most recent call last)";
    const char *own = memmem(tail, n, "/torch/distributed/", strlen("/torch/distributed/"));
    const char *at = NULL, *next = tail;
    if (!own || !memmem(tail, n, "ChildFailedError", strlen("ChildFailedError")))
        return n;
    while ((next = memmem(next, (size_t)(own - next), begin, sizeof(begin) - 1)))
        at = next++;
    return at && at > tail ? (size_t)(at - tail) : n;
}

static void print_tail(const struct folder *dir, const char *path, const char *name, FILE *out) {
    struct buf text = {0};
    if (folder_read_last(dir, path, INT_MAX, TAIL, &text, NULL) == 0) {
        const char *tail = text.data;
        size_t n = without_torchrun(tail, text.len), at = n - 1;
        for (int lines = 0; at > 0; at--)
            if (tail[at - 1] == '\n' && ++lines == LINES)
                break;
        fprintf(out, "--- last lines of %s\n%.*s%s", name, (int)(n - at), tail + at,
                tail[n - 1] == '\n' ? "" : "\n");
    }
    buf_fini(&text);
}

/* What a line in a log most often means here. */
static const struct {
    const char *said, *means;
} hints[] = {
    {"ddress already in use",
     "a port is taken: what listens on a fixed port can be there once only, on a node, and with "
     "isolation processes on this machine; let each worker take one of its own (MASTER_PORT is "
     "free for rank 0), or give each node one worker and use isolation namespaces"},
    {"No module named 'torch'",
     "the Python that starts the job has no torch: name the one that has, /usr/bin/python3 "
     "train.py for example, or put it first in PATH"},
    {"Read-only file system",
     "what is the host's can only be read in a node: /etc, /usr, /proc and /sys, for a job that "
     "runs as root; let it write to its directory, or give it all rights with cluster: "
     "{privileged: true}"},
    {"/dev/tty", "a node has no terminal, and standard input is empty: the job must run without"},
    {"EOFError: EOF when reading a line",
     "a node has no terminal, and standard input is empty: the job must run without"},
    {"Inappropriate ioctl for device",
     "a node has no terminal, and standard input is empty: the job must run without"},
};

static void note_hints(const struct folder *dir, const char *path, bool seen[]) {
    BUF_FINI struct buf text = {0};
    if (folder_read_last(dir, path, INT_MAX, TAIL, &text, NULL) == 0)
        for (size_t i = 0; i < sizeof(hints) / sizeof(*hints); i++)
            seen[i] |= memmem(text.data, text.len, hints[i].said, strlen(hints[i].said)) != NULL;
}

static int only_workers(const struct dirent *d) {
    return (str_starts(d->d_name, "rank-") || str_starts(d->d_name, "pid-")) &&
           str_ends(d->d_name, ".log");
}

void last_words_print(const struct plan *p, const struct folder *dir, const char *only, FILE *out) {
    char folder[4300], path[4600], name[320];
    bool seen[sizeof(hints) / sizeof(*hints)] = {0};
    int shown = 0;
    for (size_t i = 0; i < p->nodes_n; i++) {
        const char *node = p->nodes[i].name;
        TEXTS_FINI struct texts files = {0};
        if (only && !str_eq(node, only))
            continue;
        snprintf(folder, sizeof(folder), "logs/%s", node);
        snprintf(path, sizeof(path), "%s/%s.log", folder, p->nodes[i].is_store ? "store" : "agent");
        print_tail(dir, path, node, out);
        note_hints(dir, path, seen);
        folder_list(dir, folder, only_workers, &files, NULL);
        for (size_t k = 0; k < files.n; k++) {
            snprintf(path, sizeof(path), "%s/%s", folder, files.v[k]);
            snprintf(name, sizeof(name), "%s, %s", node, files.v[k]);
            note_hints(dir, path, seen);
            if (shown++ < WORKERS_SHOWN)
                print_tail(dir, path, name, out);
        }
    }
    for (size_t i = 0; i < sizeof(hints) / sizeof(*hints); i++)
        if (seen[i])
            fprintf(out, "--- hint: %s\n", hints[i].means);
}
