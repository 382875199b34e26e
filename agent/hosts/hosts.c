#include "agent/hosts/hosts.h"

#include "base/str.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

enum { NAME_LONGEST = 300 }; /* of DNS 253, and a user */

/* What ssh could take for an option, or a shell for more than a word, is no name of a host. */
static bool is_name(const char *s) {
    if (strlen(s) > NAME_LONGEST)
        return false;
    if (!isalnum((unsigned char)*s) && *s != '[' && *s != '_' && *s != ':')
        return false;
    for (; *s; s++)
        if (!isalnum((unsigned char)*s) && !strchr("._-@:[]%", *s))
            return false;
    return true;
}

/* "me@[fe80::1]" without its brackets, as ssh and a resolver want it; NULL: they are elsewhere. */
static const char *without_brackets(const char *name, struct arena *a) {
    const char *open = strchr(name, '['), *close = strchr(name, ']');
    if (!open && !close)
        return name;
    if (!open || !close || close[1] || close == open + 1 || (open > name && open[-1] != '@') ||
        strchr(open + 1, '['))
        return NULL;
    return arena_printf(a, "%.*s%.*s", (int)(open - name), name, (int)(close - open - 1), open + 1);
}

static int add(struct hosts *h, const char *typed, int slots, struct arena *a, struct err *err) {
    const char *name = is_name(typed) ? without_brackets(typed, a) : NULL;
    if (!name)
        return err_say(err, -EINVAL, "\"%.100s\" is no host's name", typed);
    for (size_t i = 0; i < h->n; i++)
        if (str_eq(h->list[i].name, name))
            return err_say(err, -EINVAL, "host %s is named twice; give its workers as %s:N", name,
                           name);
    if (h->n == HOSTS_MAX)
        return err_say(err, -EINVAL, "more than %d hosts", HOSTS_MAX);
    h->list[h->n++] = (struct host){arena_strdup(a, name), slots};
    return 0;
}

static int read_slots(const char *text, const char *host, int *ret, struct err *err) {
    int64_t n;
    if (!str_to_i64(text, 1, HOST_SLOTS_MAX, &n))
        return err_say(err, -EINVAL, "host %.100s: \"%.20s\" workers: must be 1 to %d", host, text,
                       HOST_SLOTS_MAX);
    *ret = (int)n;
    return 0;
}

/* "b:2" into its halves; the colons of an address without brackets are its own. */
static int read_word(char *word, int *slots, struct err *err) {
    char *last = strrchr(word, ':'), *close = strchr(word, ']');
    bool address = strchr(word, ':') != last && !close;
    if (!last || address || (close && last < close))
        return 0;
    *last = '\0';
    return read_slots(last + 1, word, slots, err);
}

int hosts_parse_list(const char *text, struct arena *a, struct hosts *ret, struct err *err) {
    size_t n = 0;
    char **words = str_split(a, text, ',', &n);
    struct hosts h = {arena_array(a, struct host, HOSTS_MAX), 0};
    for (size_t i = 0; i < n; i++) {
        int slots = 0, code = read_word(words[i], &slots, err);
        if (!code)
            code = add(&h, words[i], slots, a, err);
        if (code)
            return code;
    }
    *ret = h;
    return 0;
}

/* The next word of a line, ended by a NUL; NULL: there is none. */
static char *next_word(char **at) {
    char *p = *at + strspn(*at, " \t\r");
    size_t n = strcspn(p, " \t\r");
    if (!n)
        return NULL;
    *at = p + n + (p[n] != '\0');
    p[n] = '\0';
    return p;
}

static int read_line(char *line, struct arena *a, struct hosts *h, struct err *err) {
    int slots = 0;
    line[strcspn(line, "#")] = '\0';
    char *name = next_word(&line), *word;
    if (!name)
        return 0;
    int code = read_word(name, &slots, err);
    while (!code && (word = next_word(&line))) {
        if (str_starts(word, "slots="))
            code = read_slots(word + 6, name, &slots, err);
        else
            code = err_say(err, -EINVAL, "\"%.100s\": only slots=N may follow the host", word);
    }
    return code ? code : add(h, name, slots, a, err);
}

int hosts_parse_file(const char *text, size_t len, const char *path, struct arena *a,
                     struct hosts *ret, struct err *err) {
    struct hosts h = {arena_array(a, struct host, HOSTS_MAX), 0};
    int line = 0;
    for (const char *p = text, *end = text + len; p < end; line++) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));
        size_t n = (size_t)((nl ? nl : end) - p);
        int code = memchr(p, '\0', n) ? err_say(err, -EINVAL, "a NUL byte")
                                      : read_line(arena_strndup(a, p, n), a, &h, err);
        if (code)
            return err_wrap(err, "%s:%d: ", path, line + 1), code;
        p += n + 1;
    }
    if (!h.n)
        return err_say(err, -EINVAL, "%s: names no host", path);
    *ret = h;
    return 0;
}
