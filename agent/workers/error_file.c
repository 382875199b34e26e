#include "agent/workers/error_file.h"

#include "base/json.h"
#include "base/str.h"
#include "base/sys/file.h"

#include <errno.h>
#include <stdio.h>

enum { ERROR_FILE_MAX = 1 << 20 };

static const char *message_of(const struct json *root) {
    const struct json *message = json_get(root, "message");
    const char *text = json_string(message, NULL);
    return text ? text : json_get_string(message, "message", NULL);
}

void error_file_text(const char *path, char *ret, size_t size) {
    BUF_FINI struct buf b = {0};
    ARENA_FINI struct arena a = {0};
    struct err err = {0};
    int code = file_read(path, ERROR_FILE_MAX, &b, &err);
    const char *text = code ? err.msg : message_of(json_parse(&a, buf_str(&b), b.len, NULL));
    if (text)
        snprintf(ret, size, "%s", code == -ENOENT ? "" : text);
    else
        snprintf(ret, size, "%s holds no error message", path);
}

static void put_message(struct json_writer *w, const struct json *message, int code) {
    if (message->type != JSON_OBJECT) {
        json_put_tree(w, "message", message);
        return;
    }
    json_object(w, "message");
    json_each(m, message) {
        if (!str_eq(m->key, "errorCode"))
            json_put_tree(w, m->key, m);
    }
    json_put_i64(w, "errorCode", code);
    json_end_object(w);
}

int error_file_pass_on(const char *path, const char *to, int code, struct err *err) {
    BUF_FINI struct buf in = {0}, out = {0};
    ARENA_FINI struct arena a = {0};
    struct json_writer w = {.out = &out};
    int rc = file_read(path, ERROR_FILE_MAX, &in, err);
    const struct json *root = rc ? NULL : json_parse(&a, buf_str(&in), in.len, NULL);
    if (rc == 0 && (!root || root->type != JSON_OBJECT))
        rc = err_say(err, -EBADMSG, "%s holds no JSON object", path);
    if (rc == 0) {
        json_object(&w, NULL);
        json_each(m, root) {
            if (str_eq(m->key, "message"))
                put_message(&w, m, code);
            else
                json_put_tree(&w, m->key, m);
        }
        json_end_object(&w);
        rc = file_write_atomic(to, out.data, out.len, err);
    }
    return rc == -ENOENT && !file_exists(path) ? 1 : rc;
}
