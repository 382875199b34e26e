#include "faults/mechanism/core_file.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/sys/file.h"
#include "base/sys/process.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/procfs.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <unistd.h>

/* Between the first page of a mapping and its last that is used: a file has no more than 16 TiB on ext4. */
static const uint64_t spread_max = (uint64_t)1 << 40;

struct mapping {
    uint64_t from, to, offset, inode;
    uint64_t own;    /* bytes that are not the file's */
    uint64_t used;   /* bytes that are in memory or swapped out */
    bool left_out;   /* the program has asked for that (MADV_DONTDUMP) */
    uint64_t kept;   /* bytes of it that go into the core, from its beginning */
    unsigned rights; /* PF_* */
    char *path;
};

struct core {
    const struct core_of *of;
    int fd, memory, pages;
    size_t page;
    struct mapping *v;
    size_t n;
    struct buf notes;
};

/* ---- what is mapped: /proc/PID/smaps ---- */

static bool take_header(struct core *c, const char *line) {
    unsigned long long from, to, offset, inode;
    char rights[5];
    int path = 0;
    if (sscanf(line, "%llx-%llx %4s %llx %*s %llu %n", &from, &to, rights, &offset, &inode, &path) <
        5)
        return false;
    struct mapping m = {.from = from, .to = to, .offset = offset, .inode = inode};
    m.rights = (rights[0] == 'r' ? PF_R : 0) | (rights[1] == 'w' ? PF_W : 0) |
               (rights[2] == 'x' ? PF_X : 0);
    m.path = mem_strdup(line + path);
    m.path[strcspn(m.path, "\n")] = '\0';
    mem_push(c->v, c->n) = m;
    return true;
}

static void take_detail(struct mapping *m, const char *line) {
    unsigned long long kib;
    if (sscanf(line, "Anonymous: %llu kB", &kib) == 1)
        m->own = (uint64_t)kib << 10;
    else if (sscanf(line, "Rss: %llu kB", &kib) == 1 || sscanf(line, "Swap: %llu kB", &kib) == 1)
        m->used += (uint64_t)kib << 10;
    else if (str_starts(line, "VmFlags:"))
        m->left_out = strstr(line, " dd") != NULL;
}

static int read_mappings(struct core *c, struct err *err) {
    char path[64], line[4352];
    snprintf(path, sizeof(path), "/proc/%d/smaps", (int)c->of->pid);
    FILE *f = fopen(path, "re");
    int code = f ? -ESRCH : -errno;
    while (f && fgets(line, sizeof(line), f))
        if (!take_header(c, line) && c->n)
            take_detail(&c->v[c->n - 1], line);
    if (f)
        fclose(f);
    return c->n ? 0 : err_set(err, code, "read %s", path);
}

/* ---- what is kept of it ---- */

static bool is_kernels(const struct mapping *m) {
    return str_starts(m->path, "[vvar") || str_starts(m->path, "[vsyscall");
}

static bool is_shared_memory(const struct mapping *m) {
    return str_starts(m->path, "/memfd:") || str_starts(m->path, "/SYSV") ||
           str_starts(m->path, "/dev/zero (deleted)");
}

static bool is_vdso(const struct mapping *m) {
    return str_eq(m->path, "[vdso]");
}

/* As the kernel has it for its own cores. */
static uint64_t wanted(const struct core *c, const struct mapping *m) {
    if (is_kernels(m) || !(m->rights & (PF_R | PF_W)) || (m->left_out && !is_vdso(m)))
        return 0;
    if (m->own || !m->inode || is_shared_memory(m))
        return m->to - m->from;
    return m->offset == 0 && !str_starts(m->path, "/dev/") ? c->page : 0;
}

/* Present or swapped out, by /proc/PID/pagemap, which knows nothing of the kernel's own page. */
static bool is_used(const struct mapping *m, uint64_t entry) {
    return entry >> 62 || is_vdso(m);
}

enum { BATCH = 512 };

/* Calls fn for the bytes that are in use, or only counts them. Terabytes may be mapped, and never used:
 * those are not looked through. */
static uint64_t each_used(struct core *c, const struct mapping *m, uint64_t bytes,
                          void (*fn)(struct core *c, uint64_t at, void *arg), void *arg) {
    uint64_t entries[BATCH], used = 0;
    if (!m->used && !is_vdso(m))
        return 0;
    for (uint64_t at = m->from; at < m->from + bytes; at += BATCH * c->page) {
        ssize_t got = pread(c->pages, entries, sizeof(entries), (off_t)(at / c->page * 8));
        for (ssize_t i = 0; i < got / 8 && at + (uint64_t)i * c->page < m->from + bytes; i++)
            if (is_used(m, entries[i])) {
                used += c->page;
                if (fn)
                    fn(c, at + (uint64_t)i * c->page, arg);
            }
    }
    return used;
}

static void note_end(struct core *c, uint64_t at, void *arg) {
    *(uint64_t *)arg = at + c->page;
}

/* Up to the last page that is used: file systems have no room for the addresses that may lie behind. */
static void choose(struct core *c) {
    uint64_t left = c->of->bytes_max;
    for (size_t i = 0; i < c->n; i++) {
        struct mapping *m = &c->v[i];
        uint64_t end = m->from, used = each_used(c, m, wanted(c, m), note_end, &end);
        bool fits = used <= left && end - m->from <= spread_max;
        m->kept = fits ? end - m->from : 0;
        left -= fits ? used : 0;
    }
}

/* ---- the notes ---- */

static void put_note(struct core *c, unsigned type, const void *data, size_t n) {
    static const char name[8] = "CORE", linux_name[8] = "LINUX";
    bool is_linux = type == NT_X86_XSTATE;
    Elf64_Nhdr head = {
        .n_namesz = is_linux ? 6 : 5, .n_descsz = (Elf64_Word)n, .n_type = (Elf64_Word)type};
    buf_put(&c->notes, &head, sizeof(head));
    buf_put(&c->notes, is_linux ? linux_name : name, 8);
    buf_put(&c->notes, data, n);
    buf_put(&c->notes, (char[4]){0}, -n & 3);
}

static void put_registers(struct core *c, pid_t tid, unsigned type, unsigned set) {
    char data[16384];
    struct iovec v = {data, sizeof(data)};
    if (ptrace(PTRACE_GETREGSET, tid, (void *)(uintptr_t)set, &v) == 0)
        put_note(c, type, data, v.iov_len);
}

static void put_status(struct core *c, pid_t tid) {
    struct elf_prstatus s = {.pr_pid = tid};
    struct iovec v = {&s.pr_reg, sizeof(s.pr_reg)};
    struct process_look look;
    s.pr_cursig = (short)c->of->info.si_signo;
    s.pr_info.si_signo = c->of->info.si_signo;
    s.pr_info.si_code = c->of->info.si_code;
    s.pr_fpvalid = 1;
    if (process_look(c->of->pid, &look) == 0)
        s.pr_ppid = look.parent;
    ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &v);
    put_note(c, NT_PRSTATUS, &s, sizeof(s));
}

static void put_program(struct core *c) {
    struct elf_prpsinfo p = {.pr_sname = 'R', .pr_pid = c->of->pid};
    BUF_FINI struct buf args = {0};
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)c->of->pid);
    process_name(c->of->pid, p.pr_fname, sizeof(p.pr_fname));
    if (file_read(path, 1 << 20, &args, NULL) == 0)
        for (size_t i = 0; i < args.len && i + 1 < sizeof(p.pr_psargs); i++)
            p.pr_psargs[i] = args.data[i] ? args.data[i] : ' ';
    put_note(c, NT_PRPSINFO, &p, sizeof(p));
}

static void put_auxv(struct core *c) {
    BUF_FINI struct buf auxv = {0};
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/auxv", (int)c->of->pid);
    if (file_read(path, 1 << 16, &auxv, NULL) == 0)
        put_note(c, NT_AUXV, auxv.data, auxv.len);
}

static bool is_file(const struct mapping *m) {
    return m->inode && m->path[0] == '/';
}

static void put_files(struct core *c) {
    BUF_FINI struct buf text = {0};
    uint64_t head[2] = {0, c->page};
    for (size_t i = 0; i < c->n; i++)
        head[0] += is_file(&c->v[i]);
    buf_put(&text, head, sizeof(head));
    for (size_t i = 0; i < c->n; i++)
        if (is_file(&c->v[i]))
            buf_put(&text, (uint64_t[3]){c->v[i].from, c->v[i].to, c->v[i].offset / c->page}, 24);
    for (size_t i = 0; i < c->n; i++)
        if (is_file(&c->v[i]))
            buf_put(&text, c->v[i].path, strlen(c->v[i].path) + 1);
    put_note(c, NT_FILE, text.data, text.len);
}

static void put_notes(struct core *c) {
    for (size_t i = 0; i < c->of->n; i++) {
        put_status(c, c->of->tids[i]);
        if (i == 0) {
            put_program(c);
            put_note(c, NT_SIGINFO, &c->of->info, sizeof(c->of->info));
            put_auxv(c);
            put_files(c);
        }
        put_registers(c, c->of->tids[i], NT_FPREGSET, NT_PRFPREG);
#if defined(__x86_64__)
        put_registers(c, c->of->tids[i], NT_X86_XSTATE, NT_X86_XSTATE);
#endif
    }
}

/* ---- the file ---- */

#if defined(__aarch64__)
enum { MACHINE = EM_AARCH64 };
#else
enum { MACHINE = EM_X86_64 };
#endif

static uint64_t align(const struct core *c, uint64_t at) {
    return (at + c->page - 1) / c->page * c->page;
}

/* Behind the headers and the notes, at a page. */
static uint64_t memory_at(const struct core *c) {
    return align(c, sizeof(Elf64_Ehdr) + (c->n + 1) * sizeof(Elf64_Phdr) + c->notes.len);
}

static void put_headers(const struct core *c, struct buf *out) {
    const Elf64_Ehdr e = {
        .e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
        .e_type = ET_CORE,
        .e_machine = MACHINE,
        .e_version = EV_CURRENT,
        .e_phoff = sizeof(e),
        .e_ehsize = sizeof(e),
        .e_phentsize = sizeof(Elf64_Phdr),
        .e_phnum = (Elf64_Half)(c->n + 1),
    };
    const Elf64_Phdr notes = {.p_type = PT_NOTE,
                              .p_offset = sizeof(e) + (c->n + 1) * sizeof(Elf64_Phdr),
                              .p_filesz = c->notes.len,
                              .p_align = 4};
    uint64_t at = memory_at(c);
    buf_put(out, &e, sizeof(e));
    buf_put(out, &notes, sizeof(notes));
    for (size_t i = 0; i < c->n; at += c->v[i++].kept) {
        const struct mapping *m = &c->v[i];
        const Elf64_Phdr p = {.p_type = PT_LOAD,
                              .p_flags = m->rights,
                              .p_offset = at,
                              .p_vaddr = m->from,
                              .p_filesz = m->kept,
                              .p_memsz = m->to - m->from,
                              .p_align = c->page};
        buf_put(out, &p, sizeof(p));
    }
    buf_put(out, c->notes.data, c->notes.len);
}

struct core_copy {
    uint64_t offset; /* of the file, less the address */
    int code;
};

/* What cannot be read, as a device's, stays a hole. */
static void copy_page(struct core *c, uint64_t at, void *arg) {
    struct core_copy *to = arg;
    char page[1 << 16];
    ssize_t got = pread(c->memory, page, c->page, (off_t)at);
    if (got > 0 && pwrite(c->fd, page, (size_t)got, (off_t)(at + to->offset)) != got)
        to->code = errno ? -errno : -EIO;
}

static int write_all(struct core *c) {
    BUF_FINI struct buf head = {0};
    struct core_copy to = {0};
    put_headers(c, &head);
    if (pwrite(c->fd, head.data, head.len, 0) != (ssize_t)head.len)
        return errno ? -errno : -EIO;
    uint64_t at = memory_at(c);
    for (size_t i = 0; i < c->n && to.code == 0; at += c->v[i++].kept) {
        to.offset = at - c->v[i].from;
        each_used(c, &c->v[i], c->v[i].kept, copy_page, &to);
    }
    return to.code ? to.code : ftruncate(c->fd, (off_t)at) == 0 ? 0 : -errno;
}

static int open_of(pid_t pid, const char *what) {
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, what);
    return open(path, O_RDONLY | O_CLOEXEC);
}

static void core_fini(struct core *c) {
    for (size_t i = 0; i < c->n; i++)
        free(c->v[i].path);
    free(c->v);
    buf_fini(&c->notes);
    file_close(&c->memory);
    file_close(&c->pages);
}

int core_file_write(int fd, const struct core_of *of, struct err *err) {
    struct core c = {.of = of, .fd = fd, .page = (size_t)sysconf(_SC_PAGESIZE)};
    c.memory = open_of(of->pid, "mem");
    c.pages = open_of(of->pid, "pagemap");
    int r = c.memory < 0 || c.pages < 0
                ? err_set(err, -errno, "read the memory of process %d", (int)of->pid)
                : read_mappings(&c, err);
    if (r == 0) {
        choose(&c);
        put_notes(&c);
        r = write_all(&c);
        if (r)
            err_set(err, r, "write a core of process %d", (int)of->pid);
    }
    core_fini(&c);
    return r;
}
