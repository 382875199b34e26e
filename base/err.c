#include "base/err.h"

#include "base/printable.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MESSAGE_SIZE = sizeof((struct err *)NULL)->msg };

/* A message that is too long is cut behind a whole character. Returns code. */
static int put(struct err *err, int code, const char *fmt, va_list ap, const char *before,
               const char *behind) __attribute__((format(printf, 3, 0)));
static int put(struct err *err, int code, const char *fmt, va_list ap, const char *before,
               const char *behind) {
    if (!err)
        return code;
    char text[MESSAGE_SIZE];
    int n = vsnprintf(text, sizeof(text), fmt, ap);
    if (n >= 0 && (size_t)n < sizeof(text))
        snprintf(text + n, sizeof(text) - (size_t)n, "%s%s", before, behind);
    size_t length = strlen(text);
    if (length == sizeof(text) - 1)
        text[length - printable_unfinished(text, length)] = '\0';
    printable_copy(err->msg, sizeof(err->msg), text);
    return err->code = code;
}

int err_set(struct err *err, int code, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    put(err, code, fmt, ap, ": ", strerror(-code));
    va_end(ap);
    return code;
}

int err_say(struct err *err, int code, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    put(err, code, fmt, ap, "", "");
    va_end(ap);
    return code;
}

int err_wrap(struct err *err, const char *fmt, ...) {
    if (!err)
        return -1;
    struct err old = *err;
    va_list ap;
    va_start(ap, fmt);
    put(err, old.code, fmt, ap, "", old.msg);
    va_end(ap);
    return old.code;
}
