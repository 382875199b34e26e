#include "agent/workers/console.h"

#include "base/buf.h"
#include "base/str.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

static const char *value_of(const char *name, size_t len, const struct worker_spec *s,
                            int local_rank, struct arena *a) {
    static const char *const names[] = {"role_name", "local_rank", "rank", "hostname"};
    char host[256] = "";
    size_t k = 0;
    while (k < 4 && (strlen(names[k]) != len || memcmp(names[k], name, len) != 0))
        k++;
    switch (k) {
    case 0:
        return s->role;
    case 1:
        return arena_printf(a, "%d", local_rank);
    case 2:
        return arena_printf(a, "%d", s->rank_base + local_rank);
    case 3:
        gethostname(host, sizeof(host) - 1);
        return arena_strdup(a, host);
    default:
        return NULL;
    }
}

/* The header of a line: the prefix with ${role_name}, ${local_rank}, ${rank} and ${hostname} put
 * in; what else begins with $ stays. NULL: torchrun's, [<role><local rank>]: */
static const char *header_of(const char *prefix, const struct worker_spec *s, int local_rank,
                             struct arena *a) {
    BUF_FINI struct buf b = {0};
    const char *p = prefix ? prefix : "[${role_name}${local_rank}]:";
    while (*p) {
        const char *end = p[0] == '$' && p[1] == '{' ? strchr(p, '}') : NULL;
        const char *value = end ? value_of(p + 2, (size_t)(end - p - 2), s, local_rank, a) : NULL;
        if (value)
            buf_puts(&b, value);
        else
            buf_putc(&b, *p);
        p = value ? end + 1 : p + 1;
    }
    return arena_strdup(a, buf_str(&b));
}

static int show(struct tee *t, const struct output *o, const struct worker_spec *s, int local_rank,
                int stream, struct err *err) {
    ARENA_FINI struct arena a = {0};
    struct output_files files;
    char filtered[PATH_MAX];
    bool out = stream == STREAM_OUT;
    output_files(o, local_rank, &files);
    output_filtered_file(o, stream, filtered);
    struct tee_stream ts = {
        .path = out ? files.out : files.err,
        .fd = out ? STDOUT_FILENO : STDERR_FILENO,
        .header = header_of(o->what->prefix, s, local_rank, &a),
        .needles = out ? o->what->out_needles : o->what->err_needles,
        .filtered_path = filtered,
    };
    return tee_follow(t, &ts, err);
}

int console_begin(struct tee **tee, const struct output *o, const struct worker_spec *s,
                  struct err *err) {
    const struct worker_output *w = o->what;
    for (int i = 0; w->tee && i < s->local_world_size; i++)
        for (int stream = STREAM_OUT; stream <= STREAM_ERR; stream++) {
            if (!(w->tee[i] & stream) || (w->hidden && w->hidden[i]))
                continue;
            if (!*tee && !(*tee = tee_new(err)))
                return err->code;
            int code = show(*tee, o, s, i, stream, err);
            if (code)
                return code;
        }
    return 0;
}
