#include "harness/ci/secrets.h"

#include "base/buf.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/sys/file.h"
#include "reports/escape.h"
#include "reports/markdown.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK = 1 << 20, LINE_MIN = 8 };

/* ---- whose values ---- */

bool secrets_is_name(const char *name) {
    static const char *const parts[] = {"TOKEN",  "SECRET",     "PASSWORD",
                                        "PASSWD", "PASSPHRASE", "CREDENTIAL"};
    char upper[256];
    size_t n = 0;
    for (; name[n] && n + 1 < sizeof(upper); n++)
        upper[n] = (char)toupper((unsigned char)name[n]);
    upper[n] = '\0';
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
        if (strstr(upper, parts[i]))
            return true;
    for (char *save, *word = strtok_r(upper, "_", &save); word; word = strtok_r(NULL, "_", &save))
        if (str_ends(word, "KEY") || str_ends(word, "KEYS"))
            return true;
    return false;
}

static void add_json(struct hidden *h, const char *value) {
    BUF_FINI struct buf text = {0};
    struct json_writer w = {.out = &text};
    json_put_string(&w, NULL, value);
    char *inside = mem_strdup(buf_str(&text) + 1); /* without its quotes */
    inside[text.len - 2] = '\0';
    hidden_add(h, inside);
    free(inside);
}

/* As it is, and as JSON, XML and Markdown spell it. */
static void add_forms(struct hidden *h, const char *value) {
    BUF_FINI struct buf xml = {0}, markdown = {0};
    if (strlen(value) < HIDDEN_MIN)
        return;
    escape_put(&xml, value);
    markdown_put_words(&markdown, value);
    hidden_add(h, value);
    hidden_add(h, buf_str(&xml));
    hidden_add(h, buf_str(&markdown));
    add_json(h, value);
}

/* A private key of many lines is printed line by line. */
static void add_lines(struct hidden *h, const char *value) {
    char *text = mem_strdup(value), *save;
    for (char *line = strtok_r(text, "\r\n", &save); line; line = strtok_r(NULL, "\r\n", &save))
        if (strlen(line) >= LINE_MIN)
            add_forms(h, line);
    free(text);
}

void secrets_take(struct hidden *ret, struct texts *names) {
    for (char **e = environ; e && *e; e++) {
        const char *equals = strchr(*e, '=');
        char name[256];
        if (!equals || (size_t)(equals - *e) >= sizeof(name))
            continue;
        str_copy(name, (size_t)(equals - *e) + 1, *e);
        if (!secrets_is_name(name) || strlen(equals + 1) < HIDDEN_MIN)
            continue;
        add_forms(ret, equals + 1);
        if (strpbrk(equals + 1, "\r\n"))
            add_lines(ret, equals + 1);
        texts_add(names, "%s", name);
    }
}

/* ---- files ---- */

static int write_back(int fd, const char *data, size_t n, off_t at) {
    while (n > 0) {
        ssize_t k = pwrite(fd, data, n, at);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return k < 0 ? -errno : -EIO;
        data += k;
        n -= (size_t)k;
        at += k;
    }
    return 0;
}

/* Blocks overlap by the longest text, so that one that lies across two is seen whole. */
static int cover_fd(const struct hidden *h, int fd) {
    char *block = mem_array(char, BLOCK + h->longest);
    int code = 0;
    for (off_t at = 0; code == 0; at += BLOCK) {
        ssize_t n = pread(fd, block, BLOCK + h->longest, at);
        if (n <= 0) {
            code = n < 0 ? -errno : 0;
            break;
        }
        if (hidden_cover(h, block, (size_t)n))
            code = write_back(fd, block, (size_t)n, at);
    }
    free(block);
    return code;
}

static int cover_file(const struct hidden *h, const struct folder *dir, const char *name,
                      struct err *err) {
    FILE_CLOSE int fd = folder_open_growing(dir, name, err);
    int code = fd < 0 ? fd : cover_fd(h, fd);
    if (fd >= 0 && code)
        err_set(err, code, "cover the values of secret variables in %s/%s", dir->path, name);
    return code;
}

static int any_name(const struct dirent *e) {
    return !str_eq(e->d_name, ".") && !str_eq(e->d_name, "..");
}

static bool is_plain(const struct folder *dir, const char *name) {
    struct stat st;
    return fstatat(dir->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode);
}

int secrets_cover_tree(const struct hidden *h, const struct folder *dir, struct err *err) {
    TEXTS_FINI struct texts names = {0};
    int first = h->texts.n ? folder_list(dir, ".", any_name, &names, err) : 0;
    for (size_t i = 0; i < names.n; i++) {
        struct folder below = FOLDER_NONE;
        struct err *say = first ? NULL : err;
        int code = 0;
        if (folder_has_directory(dir, names.v[i])) {
            code = folder_enter(&below, dir, names.v[i], say);
            if (code == 0)
                code = secrets_cover_tree(h, &below, say);
            folder_close(&below);
        } else if (is_plain(dir, names.v[i])) {
            code = cover_file(h, dir, names.v[i], say);
        }
        first = first ? first : code;
    }
    return first;
}
