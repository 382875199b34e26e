/* Prints the schema of scenarios or of histories, or fills the manual. */
#include "harness/verbs.h"

#include "base/str.h"
#include "base/sys/file.h"
#include "harness/history/history_kinds.h"
#include "harness/verbs/language/language.h"

/* What others read and write of ours, each in a form that they can check it by. */
static const struct described {
    const char *name;
    void (*put)(struct buf *out);
} all[] = {
    {"history", history_schema},
    {"scenario", schema_put_scenario},
};

static int print(const char *name) {
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        BUF_FINI struct buf out = {0};
        if (!str_eq(all[i].name, name))
            continue;
        all[i].put(&out);
        fputs(buf_str(&out), stdout);
        return EXIT_PASS;
    }
    return verb_usage_error(
        &verb_schema, "there is no schema of \"%s\"; write schema scenario, or schema history",
        name);
}

static int fill(const char *file) {
    struct buf page = {0}, out = {0};
    struct err err = {0};
    int r = file_read_plain(file, 1 << 20, &page, &err);
    if (r == 0)
        r = manual_fill(buf_str(&page), &out, &err);
    bool same = r == 0 && str_eq(buf_str(&page), buf_str(&out));
    if (r == 0 && !same)
        r = file_write_atomic(file, out.data, out.len, &err);
    if (r == 0)
        printf("%s: %s\n", file, same ? "is what the tables say" : "filled from the tables");
    buf_fini(&page);
    buf_fini(&out);
    return r < 0 ? verb_usage_error(&verb_schema, "--fill %s: %s", file, err.msg) : EXIT_PASS;
}

static int schema(const struct arguments *a) {
    const char *page = arguments_value(a, "--fill");
    if (page && !a->files_n)
        return fill(page);
    if (a->files_n == 1 && !page)
        return print(a->files[0]);
    return verb_usage_error(a->verb, "schema of what? Write schema scenario, or schema history");
}

const struct verb verb_schema = {
    .name = "schema",
    .usage = "schema scenario|history",
    .summary = "print the JSON Schema of scenarios and suites, or of a line of a history",
    .example = "schema scenario",
    .operands = "scenario|history",
    .options =
        (const struct verb_option[]){
            {"--fill", "PAGE",
             "write the tables of all words into this Markdown page, between its marks"},
            {0}},
    .run = schema,
};
