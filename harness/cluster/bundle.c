#include "harness/cluster/bundle.h"

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/sys/file.h"
#include "base/sys/process.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PROGRAM_MAX = 256 << 20, TRACE_MAX = 1 << 20 };

static const int64_t trace_wait_ns = 10000000000;

/* ---- an ELF file's interpreter, see elf(5) ---- */

static const ElfW(Phdr) * find_interpreter(const struct buf *image) {
    ElfW(Ehdr) head;
    if (image->len < sizeof(head) || memcmp(image->data, ELFMAG, SELFMAG) != 0)
        return NULL;
    memcpy(&head, image->data, sizeof(head));
    if (head.e_phentsize != sizeof(ElfW(Phdr)) || head.e_phoff > image->len ||
        head.e_phnum > (image->len - head.e_phoff) / sizeof(ElfW(Phdr)))
        return NULL;
    const ElfW(Phdr) *segments = (const void *)(image->data + head.e_phoff);
    for (size_t i = 0; i < head.e_phnum; i++)
        if (segments[i].p_type == PT_INTERP && segments[i].p_filesz &&
            segments[i].p_offset < image->len &&
            segments[i].p_filesz <= image->len - segments[i].p_offset)
            return &segments[i];
    return NULL;
}

static bool is_program(const struct buf *image) {
    return image->len >= sizeof(ElfW(Ehdr)) && memcmp(image->data, ELFMAG, SELFMAG) == 0;
}

const char *bundle_interpreter(const struct buf *image) {
    const ElfW(Phdr) *segment = find_interpreter(image);
    if (!segment)
        return is_program(image) ? "" : NULL;
    const char *path = image->data + segment->p_offset;
    return path[segment->p_filesz - 1] == '\0' ? path : NULL;
}

int bundle_set_interpreter(struct buf *image, const char *path, struct err *err) {
    const ElfW(Phdr) *segment = find_interpreter(image);
    if (!segment)
        return err_say(err, -ENOEXEC, "there is no loader to replace by %s", path);
    if (strlen(path) + 1 > segment->p_filesz)
        return err_say(err, -ENAMETOOLONG, "no room for %s where the loader's name stands", path);
    memset(image->data + segment->p_offset, 0, segment->p_filesz);
    memcpy(image->data + segment->p_offset, path, strlen(path));
    return 0;
}

/* ---- what is loaded ---- */

static void add_library(struct bundle *b, const char *name, const char *path) {
    char *real = realpath(path, NULL);
    size_t key = strlen(name);
    bool known = false;
    for (size_t i = 0; i < b->libraries.n && !known; i++)
        known = strncmp(b->libraries.v[i], name, key) == 0 && b->libraries.v[i][key] == '=';
    if (real && !known)
        texts_add(&b->libraries, "%s=%s", name, real);
    free(real);
}

/* "name => path (address)"; what is no file (the vdso), or not found, has no path. One that was
 * named by its path alone ("/usr/lib/x.so (address)") goes by its last part. */
static void add_line(struct bundle *b, char *line) {
    char *arrow = strstr(line, " => "), *end = strstr(line, " (0x");
    if (!end)
        return;
    *end = '\0';
    line += strspn(line, " \t");
    char *path = arrow ? arrow + strlen(" => ") : line;
    if (arrow)
        *arrow = '\0';
    if (*path != '/')
        return;
    const char *slash = strrchr(line, '/');
    add_library(b, slash ? slash + 1 : line, path);
}

void bundle_add_trace(struct bundle *b, const char *trace) {
    ARENA_FINI struct arena a = {0};
    char **lines = str_split(&a, trace, '\n', NULL);
    for (; *lines; lines++)
        add_line(b, *lines);
}

/* The loader itself tells what it would load, and starts nothing (LD_TRACE_LOADED_OBJECTS, ld.so(8)
 * of the GNU C library). What a program opens later is made part of it by preloading; what of that
 * is not on this host is passed over with a line on standard error. */
static int trace(struct bundle *b, const char *program, struct err *err) {
    const char *paths = getenv("LD_LIBRARY_PATH");
    BUF_FINI struct buf text = {0}, search = {0};
    struct process p;
    int status = 0;
    buf_printf(&search, "LD_LIBRARY_PATH=%s", paths ? paths : "");
    const char *const argv[] = {program, NULL};
    const char *const env[] = {"LD_TRACE_LOADED_OBJECTS=1",
                               "LD_PRELOAD=libcurl.so.4:libcurl-gnutls.so.4:libopenblas.so.0",
                               buf_str(&search), NULL};
    FILE_CLOSE int out = memfd_create("rankquake-trace", MFD_CLOEXEC);
    FILE_CLOSE int errors = memfd_create("rankquake-trace-errors", MFD_CLOEXEC);
    struct process_spawn s = {.argv = argv, .envp = env, .fds = (int[]){-1, out, errors}};
    int r = out < 0 || errors < 0 ? err_set(err, -errno, "keep what the loader says of %s", program)
                                  : process_spawn(&s, &p, err);
    if (r == 0) {
        r = process_reap(&p, trace_wait_ns, &status);
        process_close(&p);
        if (r || status)
            r = err_say(err, -ENOEXEC, "the loader does not say which libraries %s needs", program);
    }
    if (r == 0 && lseek(out, 0, SEEK_SET) == 0 &&
        (r = file_read_fd(out, TRACE_MAX, &text, err)) == 0)
        bundle_add_trace(b, buf_str(&text));
    return r;
}

/* ---- the programs ---- */

static int pack_program(struct bundle *b, const char *from, const char *to, struct err *err) {
    BUF_FINI struct buf image = {0};
    const char *loader;
    int r = file_read(from, PROGRAM_MAX, &image, err);
    if (r == 0 && (loader = bundle_interpreter(&image)) && *loader) {
        add_library(b, strrchr(BUNDLE_LOADER, '/') + 1, loader);
        r = bundle_set_interpreter(&image, BUNDLE_LOADER, err);
        if (r == 0)
            r = trace(b, from, err);
    }
    if (r == 0)
        r = file_write(to, image.data, image.len, err);
    if (r == 0 && chmod(to, 0755) != 0)
        r = err_set(err, -errno, "make %s executable", to);
    return r;
}

static int is_ours(const struct dirent *d) {
    return str_starts(d->d_name, "rank") && !str_eq(d->d_name, "rankquake");
}

int bundle_pack(struct bundle *ret, const char *bin, const char *to, struct err *err) {
    struct dirent **names;
    *ret = (struct bundle){.programs = mem_strdup(to)};
    int r = file_make_dirs(to, 0755, err);
    int n = r ? 0 : scandir(bin, &names, is_ours, alphasort);
    if (n < 0)
        return err_set(err, -errno, "read the folder %s", bin);
    for (int i = 0; i < n; i++) {
        BUF_FINI struct buf from = {0}, copy = {0};
        buf_printf(&from, "%s/%s", bin, names[i]->d_name);
        buf_printf(&copy, "%s/%s", to, names[i]->d_name);
        if (r == 0)
            r = pack_program(ret, buf_str(&from), buf_str(&copy), err);
        free(names[i]);
    }
    if (n > 0)
        free(names);
    return r;
}

void bundle_fini(struct bundle *b) {
    texts_fini(&b->libraries);
    free(b->programs);
    *b = (struct bundle){0};
}
