#include "harness/verbs/probe_wishes.h"

#include "base/buf.h"
#include "base/json.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

static int read_ports(const struct arguments *a, struct probe_wishes *ret) {
    ARENA_FINI struct arena words = {0};
    const char *text = arguments_value(a, "--ports");
    char **v = text ? str_split(&words, text, ',', NULL) : NULL;
    int64_t port;
    for (; v && *v; v++) {
        if (!str_to_i64(*v, 1, 65535, &port) || ret->ports_n == PROBE_PORTS_MAX)
            return verb_usage_error(a->verb, "--ports %s: write numbers: 29400,29500, at most %d",
                                    text, PROBE_PORTS_MAX);
        ret->ports[ret->ports_n++] = port;
    }
    return 0;
}

static const char **scripts_of(const struct arguments *a, struct arena *arena) {
    const char **given = arguments_all(a, "--script");
    size_t n = 0;
    while (given[n])
        n++;
    const char **v = arena_array(arena, const char *, n + 1);
    memcpy(v, given, n * sizeof(*v));
    free(given);
    return v;
}

int probe_wishes_read(const struct arguments *a, struct arena *arena, struct probe_wishes *ret) {
    *ret = (struct probe_wishes){.space_mb = 1024, .grace_s = 30, .scripts = scripts_of(a, arena)};
    int code = arguments_number(a, "--space", 0, 1 << 30, &ret->space_mb);
    code = code ? code : arguments_number(a, "--floor", 0, 1 << 30, &ret->floor_mb_s);
    code = code ? code : arguments_number(a, "--grace", 0, 86400, &ret->grace_s);
    return code ? code : read_ports(a, ret);
}

const char *probe_wishes_text(const struct probe_wishes *wishes, struct arena *a) {
    BUF_FINI struct buf text = {0};
    struct json_writer w = {.out = &text};
    json_object(&w, NULL);
    if (wishes->shared)
        json_put_string(&w, "shared", wishes->shared);
    json_put_i64(&w, "space_mb", wishes->space_mb);
    json_put_i64(&w, "floor_mb_s", wishes->floor_mb_s);
    json_put_i64(&w, "grace_s", wishes->grace_s);
    if (wishes->ports_n)
        json_array(&w, "ports");
    for (size_t i = 0; i < wishes->ports_n; i++)
        json_put_i64(&w, NULL, wishes->ports[i]);
    if (wishes->ports_n)
        json_end_array(&w);
    json_put_strings(&w, "scripts", wishes->scripts);
    json_end_object(&w);
    return arena_strdup(a, buf_str(&text));
}
