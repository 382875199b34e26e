#include "harness/certify/certificate.h"

#include "base/canonical.h"
#include "base/mem.h"
#include "base/sha256.h"
#include "base/str.h"
#include "base/sys/file.h"
#include "harness/play/suite.h"
#include "harness/verb.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CERTIFICATE_MAX = 64 << 20 };

const struct json *certificate_read(struct arena *a, const struct folder *in, struct buf *text,
                                    struct err *err) {
    struct err why = {0};
    if (folder_read(in, CERTIFICATE_FILE, CERTIFICATE_MAX, text, err) < 0)
        return NULL;
    const struct json *j = canonical_read(a, buf_str(text), text->len, &why);
    if (j && str_eq(json_get_string(j, "format", NULL), CERTIFICATE_FORMAT))
        return j;
    if (j)
        err_say(err, -EBADMSG, "%s/%s is no certificate of this format (%s)", in->path,
                CERTIFICATE_FILE, CERTIFICATE_FORMAT);
    else
        err_say(err, -EBADMSG, "%s/%s is cut or was changed: %s", in->path, CERTIFICATE_FILE,
                why.msg);
    return NULL;
}

int certificate_hash(const struct folder *in, const char *name, char ret[65], struct err *err) {
    FILE_CLOSE int fd = folder_open_file(in, name, err);
    struct sha256 sum;
    char part[1 << 16];
    ssize_t n;
    if (fd < 0)
        return fd;
    sha256_init(&sum);
    while ((n = read(fd, part, sizeof(part))) > 0)
        sha256_update(&sum, part, (size_t)n);
    if (n < 0)
        return err_set(err, -errno, "read %s/%s", in->path, name);
    sha256_hex(&sum, ret);
    return 0;
}

int certificate_result(const struct json *scenarios, const struct json *preflight) {
    size_t n = scenarios ? scenarios->length : 0;
    int *codes = mem_array(int, n + 1 + (preflight ? preflight->length : 0));
    n = 0;
    json_each(s, scenarios) codes[n++] = (int)json_get_i64(s, "exit_code", EXIT_BROKEN);
    json_each(p, preflight) if (str_eq(json_get_string(p, "status", "fail"), "fail")) codes[n++] =
        EXIT_FAIL;
    int code = suite_exit_code(codes, n);
    free(codes);
    return n ? code : EXIT_SKIPPED;
}
