/* err: one error, with its context, and nothing to free.
 *
 * The caller owns the struct and passes it down. On success it is left untouched; on failure it is
 * set exactly once where the trouble is, and wrapped on the way up ("n2: mount /tmp: ..."). Library
 * code returns errors, only a program prints them. Safe after fork; never allocates.
 *
 * A message is one line that a terminal can show: what it quotes may be anybody's, and is made so
 * (printable.h). */
#pragma once

struct err {
    int code;      /* -errno, or a negative value the function documents; 0: not set */
    char msg[512]; /* a sentence that names the file, host or key, and what to do */
};

/* Sets err (NULL is allowed) and returns code, which must be negative. When code is a -errno, its
 * text is appended: err_set(err, -ENOENT, "open %s", p) reads "open p: No such file or directory".
 */
int err_set(struct err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Like err_set for sentences that are complete without the text of an errno. */
int err_say(struct err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Puts "prefix" in front of the message that is there. Returns err->code (or -1 for NULL). */
int err_wrap(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
