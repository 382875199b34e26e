#include "harness/carrier/given.h"

#include "base/sha256.h"
#include "base/str.h"
#include "base/sys/file.h"
#include "base/sys/random.h"
#include "base/utf8.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* More would make a record longer than a history takes, and the reading slow. */
enum { VARIABLES_MAX = 1000, DESCRIPTORS_MAX = 256, FILE_MAX = 2 << 20, NAME_MAX_LEN = 255 };

void given_key_draw(struct given_key *k) {
    uint64_t halves[2] = {random_u64(), random_u64()};
    memcpy(k->bytes, halves, sizeof(k->bytes));
}

void given_key_put(const struct given_key *k, char ret[GIVEN_KEY_TEXT]) {
    for (size_t i = 0; i < sizeof(k->bytes); i++)
        snprintf(ret + 2 * i, 3, "%02x", k->bytes[i]);
}

bool given_key_take(struct given_key *ret, const char *text) {
    struct given_key k;
    if (strlen(text) != GIVEN_KEY_TEXT - 1 ||
        strspn(text, "0123456789abcdef") != GIVEN_KEY_TEXT - 1)
        return false;
    for (size_t i = 0; i < sizeof(k.bytes); i++) {
        const char two[3] = {text[2 * i], text[2 * i + 1], '\0'};
        k.bytes[i] = (unsigned char)strtoul(two, NULL, 16);
    }
    *ret = k;
    return true;
}

/* Returns 0 or a -errno; the text is in *out. */
static int read_of(pid_t pid, const char *what, struct buf *out) {
    char path[128];
    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, what);
    buf_clear(out);
    return file_read(path, FILE_MAX, out, NULL);
}

/* What stands behind a word at the beginning of a line, or NULL. */
static const char *field_of(const char *text, const char *word) {
    for (const char *line = text; line; line = strchr(line, '\n'), line += line != NULL)
        if (str_starts(line, word))
            return line + strlen(word);
    return NULL;
}

/* ---- variables ---- */

static void put_variable(struct json_writer *w, const struct given_key *k, const char *entry) {
    char name[NAME_MAX_LEN + 1], digest[65];
    size_t n = strcspn(entry, "=");
    struct sha256 s;
    if (!entry[n] || n == 0 || n > NAME_MAX_LEN)
        return;
    memcpy(name, entry, n);
    name[n] = '\0';
    sha256_init(&s);
    sha256_update(&s, k->bytes, sizeof(k->bytes));
    sha256_update(&s, entry, strlen(entry));
    sha256_hex(&s, digest);
    json_put_stringn(w, name, digest, 12);
}

/* Of two of one name the first counts, as for getenv(3). */
static bool stands_before(const char *const *env, size_t at) {
    size_t n = strcspn(env[at], "=") + 1;
    for (size_t i = 0; i < at; i++)
        if (strncmp(env[i], env[at], n) == 0)
            return true;
    return false;
}

/* What the harness gives a node is sent to it as text: where it is none, other bytes come there. */
static bool is_text(const char *s) {
    int n;
    for (size_t left = strlen(s); left; s += n, left -= (size_t)n)
        if ((n = utf8_read(s, left, NULL)) <= 0)
            return false;
    return true;
}

static void put_variables(struct json_writer *w, const struct given_key *k,
                          const char *const *env) {
    json_object(w, "env");
    for (size_t i = 0; env[i] && i < VARIABLES_MAX; i++)
        if (is_text(env[i]) && !stands_before(env, i))
            put_variable(w, k, env[i]);
    json_end_object(w);
}

static void put_environ(struct json_writer *w, const struct given_key *k, const struct buf *text) {
    const char *env[VARIABLES_MAX + 1];
    size_t n = 0;
    for (size_t at = 0; at < text->len && n < VARIABLES_MAX; at += strlen(text->data + at) + 1)
        env[n++] = text->data + at;
    env[n] = NULL;
    put_variables(w, k, env);
}

/* ---- descriptors ---- */

static bool closes_on_exec(pid_t pid, const char *number) {
    BUF_FINI struct buf text = {0};
    char what[64];
    snprintf(what, sizeof(what), "fdinfo/%.20s", number);
    const char *flags = read_of(pid, what, &text) == 0 ? field_of(buf_str(&text), "flags:") : NULL;
    return flags && strtoul(flags, NULL, 8) & O_CLOEXEC;
}

/* The number of an inode says nothing to anybody: "socket", "pipe", "/dev/null". */
static void put_descriptor(struct json_writer *w, int dir, const char *number) {
    char link[256];
    ssize_t n = readlinkat(dir, number, link, sizeof(link) - 1);
    if (n < 0)
        return;
    link[n] = '\0';
    char *inode = strstr(link, ":[");
    if (inode && isdigit((unsigned char)inode[2]))
        *inode = '\0';
    json_array(w, NULL);
    json_put_i64(w, NULL, strtol(number, NULL, 10));
    json_put_string(w, NULL, link);
    json_end_array(w);
}

static void put_descriptors(struct json_writer *w, pid_t pid) {
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    FILE_CLOSE_DIR DIR *dir = opendir(path);
    if (!dir)
        return;
    int n = 0;
    json_array(w, "fds");
    for (struct dirent *d; n < DESCRIPTORS_MAX && (d = readdir(dir));)
        if (isdigit((unsigned char)d->d_name[0]) && !closes_on_exec(pid, d->d_name)) {
            put_descriptor(w, dirfd(dir), d->d_name);
            n++;
        }
    json_end_array(w);
}

static void put_directory(struct json_writer *w, pid_t pid) {
    char path[64], link[4096];
    snprintf(path, sizeof(path), "/proc/%d/cwd", (int)pid);
    ssize_t n = readlink(path, link, sizeof(link));
    if (n > 0)
        json_put_stringn(w, "cwd", link, (size_t)n);
}

/* ---- what is inherited ---- */

/* The numbers of the signals of a set in hexadecimal digits, but those of `without`. */
static void put_signals(struct json_writer *w, const char *key, const char *set, uint64_t without) {
    uint64_t bits = strtoull(set, NULL, 16) & ~without;
    json_array(w, key);
    for (int signo = 1; signo <= 64; signo++)
        if (bits >> (signo - 1) & 1)
            json_put_i64(w, NULL, signo);
    json_end_array(w);
}

static void put_status(struct json_writer *w, pid_t pid, bool planned) {
    BUF_FINI struct buf text = {0};
    uint64_t writes = (uint64_t)1 << (SIGPIPE - 1) | (uint64_t)1 << (SIGXFSZ - 1);
    if (read_of(pid, "status", &text))
        return;
    const char *mask = field_of(buf_str(&text), "Umask:");
    const char *blocked = field_of(buf_str(&text), "SigBlk:");
    const char *ignored = field_of(buf_str(&text), "SigIgn:");
    if (mask)
        json_put_i64(w, "umask", strtol(mask, NULL, 8));
    if (blocked)
        put_signals(w, "blocked", blocked, planned ? UINT64_MAX : 0);
    if (ignored)
        put_signals(w, "ignored", ignored, planned ? writes : 0);
}

/* "Max open files            1024                 4096                 files": -1 is unlimited. */
static void put_limit(struct json_writer *w, const char *line) {
    enum { NAME_COLUMNS = 26 };
    char name[NAME_COLUMNS + 1], soft[24], hard[24];
    if (!str_starts(line, "Max ") || strcspn(line, "\n") < NAME_COLUMNS ||
        sscanf(line + NAME_COLUMNS, "%23s %23s", soft, hard) != 2)
        return;
    snprintf(name, sizeof(name), "%.*s", NAME_COLUMNS - 4, line + 4);
    for (size_t n = strlen(name); n && name[n - 1] == ' '; n--)
        name[n - 1] = '\0';
    json_array(w, name);
    json_put_i64(w, NULL, isdigit((unsigned char)*soft) ? strtoll(soft, NULL, 10) : -1);
    json_put_i64(w, NULL, isdigit((unsigned char)*hard) ? strtoll(hard, NULL, 10) : -1);
    json_end_array(w);
}

static void put_limits(struct json_writer *w, pid_t pid) {
    BUF_FINI struct buf text = {0};
    if (read_of(pid, "limits", &text))
        return;
    json_object(w, "limits");
    for (const char *line = buf_str(&text); line; line = strchr(line, '\n'), line += line != NULL)
        put_limit(w, line);
    json_end_object(w);
}

/* The fields of /proc/PID/stat behind the command's name, which is the second: 5 is the process
 * group, 6 the session, 7 the terminal, 19 the nice value, 41 how it is scheduled. */
static void put_stat(struct json_writer *w, pid_t pid, bool planned) {
    BUF_FINI struct buf text = {0};
    int64_t fields[42] = {0};
    int n = 3;
    char *save = NULL;
    char *at = read_of(pid, "stat", &text) || !text.len ? NULL : strrchr(text.data, ')');
    if (!at)
        return;
    for (char *word = strtok_r(at + 1, " \n", &save); word && n < 42;
         word = strtok_r(NULL, " \n", &save))
        fields[n++] = strtoll(word, NULL, 10);
    if (n < 42)
        return;
    json_put_i64(w, "nice", fields[19]);
    json_put_i64(w, "policy", fields[41]);
    if (planned)
        return;
    json_put_bool(w, "leads_group", fields[5] == pid);
    json_put_bool(w, "leads_session", fields[6] == pid);
    json_put_bool(w, "terminal", fields[7] != 0);
}

static void put_number(struct json_writer *w, pid_t pid, const char *file, const char *key) {
    BUF_FINI struct buf text = {0};
    if (read_of(pid, file, &text) == 0)
        json_put_i64(w, key, strtoll(buf_str(&text), NULL, 10));
}

/* Of the hierarchy that all controllers are in, "0::/path". */
static void put_cgroup(struct json_writer *w, pid_t pid) {
    BUF_FINI struct buf text = {0};
    const char *path = read_of(pid, "cgroup", &text) ? NULL : field_of(buf_str(&text), "0::");
    if (path)
        json_put_stringn(w, "cgroup", path, strcspn(path, "\n"));
}

static void put_inherited(struct json_writer *w, pid_t pid, bool planned) {
    put_status(w, pid, planned);
    put_limits(w, pid);
    put_stat(w, pid, planned);
    put_number(w, pid, "oom_score_adj", "oom_score_adj");
    put_cgroup(w, pid);
}

void given_put(struct json_writer *w, const struct given_key *k, pid_t pid) {
    BUF_FINI struct buf text = {0};
    int r = read_of(pid, "environ", &text);
    if (r) {
        json_put_string(w, "error", strerror(-r));
        return;
    }
    put_environ(w, k, &text);
    put_directory(w, pid);
    put_descriptors(w, pid);
    put_inherited(w, pid, false);
}

void given_put_planned(struct json_writer *w, const struct given_key *k, pid_t parent,
                       const char *const *env, const char *cwd) {
    put_variables(w, k, env);
    json_put_string(w, "cwd", cwd);
    put_inherited(w, parent, true);
}
