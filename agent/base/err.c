#include "agent/base/err.h"

#include "agent/base/printable.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MESSAGE_SIZE = sizeof((struct err *)NULL)->msg };

/* A message that is too long is cut behind a whole character. */
static void put(struct err *err, const char *fmt, va_list ap, const char *before,
                const char *behind) __attribute__((format(printf, 2, 0)));
static void put(struct err *err, const char *fmt, va_list ap, const char *before,
                const char *behind) {
    char text[MESSAGE_SIZE];
    int n = vsnprintf(text, sizeof(text), fmt, ap);
    if (n >= 0 && (size_t)n < sizeof(text))
        snprintf(text + n, sizeof(text) - (size_t)n, "%s%s", before, behind);
    size_t length = strlen(text);
    if (length == sizeof(text) - 1)
        text[length - printable_unfinished(text, length)] = '\0';
    printable_copy(err->msg, sizeof(err->msg), text);
}

int err_set(struct err *err, int code, const char *fmt, ...) {
    if (!err)
        return code;
    va_list ap;
    va_start(ap, fmt);
    put(err, fmt, ap, ": ", strerror(-code));
    va_end(ap);
    err->code = code;
    return code;
}

int err_say(struct err *err, int code, const char *fmt, ...) {
    if (!err)
        return code;
    va_list ap;
    va_start(ap, fmt);
    put(err, fmt, ap, "", "");
    va_end(ap);
    err->code = code;
    return code;
}

int err_wrap(struct err *err, const char *fmt, ...) {
    if (!err)
        return -1;
    struct err old = *err;
    va_list ap;
    va_start(ap, fmt);
    put(err, fmt, ap, "", old.msg);
    va_end(ap);
    return err->code;
}
