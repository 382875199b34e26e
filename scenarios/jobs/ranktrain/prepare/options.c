/* The words of `ranktrain prepare`. */
#include "scenarios/jobs/ranktrain/prepare/prepare.h"
#include "scenarios/jobs/ranktrain/data/dataset.h"

#include "base/str.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *value, *about;
} table[] = {
    {"dataset", "NAME", "what it is; fashion-mnist unless said"},
    {"from", "DIR|URL", "where its files are; where they usually are unless said"},
    {"to", "DIR", "where it goes, made if need be: what --data-dir of ranktrain names then"},
    {"image-size", "N", "folder: images are made N pixels wide and high; 32 unless said"},
    {"split", "K/N|node",
     "only every Nth image, from number K on (from 0); node: as GROUP_RANK and "
     "GROUP_WORLD_SIZE say"},
    {"as", "images|folders",
     "images: as ranktrain maps them, unless said; folders: train/CLASS/ and val/CLASS/ with a PNG "
     "for each image"},
    {"samples", "N", "of folders: the first N images of each set; all unless said"},
    {"cacert", "FILE", "https: who signs the server's certificate; $CURL_CA_BUNDLE unless said"},
    {"no-verify", NULL, "take other files than those whose SHA-256 is known"},
    {"help", NULL, "print this"},
};
enum { OPTIONS = sizeof(table) / sizeof(*table) };

void prepare_help(void) {
    char names[128];
    dataset_names(names, sizeof(names));
    printf(
        "usage: ranktrain prepare --to=DIR [OPTION...]\n\n"
        "Fetches a dataset, verifies it, splits it, makes its images one size and writes it as it "
        "is\ntrained on, once: %s.\n\n",
        names);
    for (size_t i = 0; i < OPTIONS; i++) {
        char left[64];
        snprintf(left, sizeof(left), "--%s%s%s", table[i].name, table[i].value ? "=" : "",
                 table[i].value ? table[i].value : "");
        printf("  %-20s %s\n", left, table[i].about);
    }
}

static int whole(const char *name, const char *s, long min, long max, long *ret, struct err *err) {
    char *end;
    errno = 0;
    long v = s ? strtol(s, &end, 10) : min - 1;
    if (!s || end == s || *end || errno || v < min || v > max)
        return err_say(err, -EINVAL, "%s=%s: expected a whole number from %ld to %ld", name,
                       s ? s : "", min, max);
    *ret = v;
    return 0;
}

static int take_split(const char *value, struct prepare *p, struct err *err) {
    char text[32];
    const char *slash = strchr(value, '/');
    long part = 0, parts = 0;
    bool node = strcmp(value, "node") == 0;
    snprintf(text, sizeof(text), "%.*s", slash ? (int)(slash - value) : 0, value);
    if (!node && !slash)
        return err_say(err, -EINVAL, "--split=%s: expected K/N, as 0/4, or node", value);
    int r = whole(node ? "GROUP_WORLD_SIZE" : "N of --split",
                  node ? getenv("GROUP_WORLD_SIZE") : slash + 1, 1, 65536, &parts, err);
    if (r == 0)
        r = whole(node ? "GROUP_RANK" : "K of --split", node ? getenv("GROUP_RANK") : text, 0,
                  parts - 1, &part, err);
    p->part = (uint32_t)part;
    p->parts = (uint32_t)parts;
    return r;
}

static int take_form(const char *value, struct prepare *p, struct err *err) {
    p->folders = strcmp(value, "folders") == 0;
    if (p->folders || strcmp(value, "images") == 0)
        return 0;
    return err_say(err, -EINVAL, "--as=%s: expected images or folders", value);
}

static int take_value(const char *name, const char *value, struct prepare *p, struct err *err) {
    long side = 0, samples = 0;
    if (strcmp(name, "dataset") == 0)
        p->dataset = value;
    else if (strcmp(name, "from") == 0)
        p->from = value;
    else if (strcmp(name, "to") == 0)
        p->to = value;
    else if (strcmp(name, "split") == 0)
        return take_split(value, p, err);
    else if (strcmp(name, "as") == 0)
        return take_form(value, p, err);
    else if (strcmp(name, "cacert") == 0)
        p->cacert = value;
    else if (strcmp(name, "samples") == 0 &&
             whole("--samples", value, 1, 1 << 30, &samples, err) < 0)
        return -EINVAL;
    else if (strcmp(name, "image-size") == 0 &&
             whole("--image-size", value, 8, 1024, &side, err) < 0)
        return -EINVAL;
    p->side = side ? (int)side : p->side;
    p->samples = samples ? (uint32_t)samples : p->samples;
    return 0;
}

static int say_unknown(const char *arg, const char *name, struct err *err) {
    const char *names[OPTIONS + 1] = {0};
    for (size_t i = 0; i < OPTIONS; i++)
        names[i] = table[i].name;
    const char *near = str_nearest(name, names);
    return err_say(err, -EINVAL,
                   near ? "unknown option '%s': did you mean --%s?"
                        : "unknown option '%s': see ranktrain prepare --help",
                   arg, near);
}

static int take(int argc, char **argv, int *i, struct prepare *p, struct err *err) {
    const char *arg = argv[*i], *value = strchr(arg, '=');
    char name[32];
    size_t o = 0;
    if (strncmp(arg, "--", 2) != 0)
        return err_say(err, -EINVAL, "unexpected argument '%s': see ranktrain prepare --help", arg);
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(arg + 2, "="), arg + 2);
    while (o < OPTIONS && strcmp(table[o].name, name) != 0)
        o++;
    if (o == OPTIONS)
        return say_unknown(arg, name, err);
    if (!table[o].value && value)
        return err_say(err, -EINVAL, "--%s takes no value", name);
    p->help = p->help || strcmp(name, "help") == 0;
    p->unverified = p->unverified || strcmp(name, "no-verify") == 0;
    if (!table[o].value)
        return 0;
    value = value ? value + 1 : *i + 1 < argc ? argv[++*i] : "";
    if (!*value)
        return err_say(err, -EINVAL, "--%s needs a value: %s", name, table[o].value);
    return take_value(name, value, p, err);
}

int prepare_parse(int argc, char **argv, struct prepare *ret, struct err *err) {
    struct prepare p = {.dataset = "fashion-mnist", .cacert = getenv("CURL_CA_BUNDLE"), .parts = 1};
    for (int i = 1; i < argc; i++) {
        int r = take(argc, argv, &i, &p, err);
        if (r < 0)
            return r;
    }
    if (!p.help && !dataset_find(p.dataset, err))
        return -EINVAL;
    if (!p.help && !p.to)
        return err_say(err, -EINVAL, "--to=DIR is needed: where it goes");
    if (p.samples && !p.folders)
        return err_say(
            err, -EINVAL,
            "--samples=%u: only with --as=folders; ranktrain --samples takes the first of "
            "what is prepared",
            p.samples);
    *ret = p;
    return 0;
}
