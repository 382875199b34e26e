/* lines: files that somebody is writing, followed line by line.
 *
 * A line ends with a line feed or a carriage return (a progress bar is rewritten after one; what
 * follows it counts when it stands still, without its end). Escape sequences of terminals are taken
 * out, other control bytes become blanks. Of a line longer than LINE_LENGTH_MAX only the beginning
 * is given.
 *
 * Whoever writes is never waited for and never waits: the kernel tells of changes (inotify), what
 * has come is read in portions between which the loop goes on, at no more than some megabytes a
 * second; of what comes faster the newest is read and the rest counted as skipped. A file that has
 * been emptied is read from its beginning. Single-threaded. */
#pragma once

#include "base/sys/loop.h"

enum { LINE_LENGTH_MAX = 4096 };

struct lines;
struct lines_file;

struct lines_count {
    uint64_t lines, skipped_bytes, cut_lines;
    uint64_t portions; /* in which it was read; while fn is called, with this one */
};

/* A line, ended by a NUL, valid during the call. */
typedef void lines_fn(void *arg, void *who, const char *line);

/* NULL with err when the kernel gives no inotify. */
struct lines *lines_new(struct loop *l, lines_fn *fn, void *arg, struct err *err);
struct lines *lines_free(struct lines *l); /* NULL is allowed; returns NULL */

/* Follows a file from its beginning: fd is open for reading, for writing too where the middle of
 * gigabytes may be given back; it is taken, also when it fails. who is handed to fn; the file lives
 * as long as l. NULL with err. */
struct lines_file *lines_follow(struct lines *l, int fd, void *who, struct err *err);
/* Reads what has come by now, and takes a last line without an end for one; at most some megabytes,
 * of more than that the newest. */
void lines_drain(struct lines_file *f);
/* Nobody will write into it any more: it is read no further, its counts stay. */
void lines_close(struct lines_file *f);
struct lines_count lines_counted(const struct lines_file *f);
