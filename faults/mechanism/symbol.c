#include "faults/mechanism/symbol.h"

#include "base/buf.h"
#include "base/sys/file.h"

#include <elf.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- one file, mapped into our memory; whatever it says may be wrong ---- */

struct elf_image {
    const unsigned char *data;
    size_t n;
};

static const void *at(const struct elf_image *i, uint64_t offset, uint64_t bytes) {
    return offset <= i->n && bytes <= i->n - offset ? i->data + offset : NULL;
}

static const Elf64_Ehdr *head_of(const struct elf_image *i) {
    const Elf64_Ehdr *h = at(i, 0, sizeof(*h));
    bool good = h && memcmp(h->e_ident, ELFMAG, SELFMAG) == 0 &&
                h->e_ident[EI_CLASS] == ELFCLASS64 && h->e_shentsize == sizeof(Elf64_Shdr) &&
                h->e_phentsize == sizeof(Elf64_Phdr);
    return good ? h : NULL;
}

static bool is_named(const struct elf_image *i, const Elf64_Shdr *names, uint64_t offset,
                     const char *name) {
    size_t n = strlen(name) + 1;
    const char *own = offset < names->sh_size ? at(i, names->sh_offset + offset, n) : NULL;
    return own && memcmp(own, name, n) == 0;
}

/* Its address as the file has it; 0: not in this table. */
static uint64_t find_in(const struct elf_image *i, const Elf64_Shdr *sections, size_t n,
                        const Elf64_Shdr *table, const char *name) {
    const Elf64_Sym *v = at(i, table->sh_offset, table->sh_size);
    if (!v || table->sh_link >= n)
        return 0;
    for (size_t s = 0; s < table->sh_size / sizeof(*v); s++)
        if (v[s].st_value && v[s].st_shndx != SHN_UNDEF &&
            ELF64_ST_TYPE(v[s].st_info) == STT_FUNC &&
            is_named(i, &sections[table->sh_link], v[s].st_name, name))
            return v[s].st_value;
    return 0;
}

/* The address less the place in the file: of the segment that holds it. */
static uint64_t in_file(const struct elf_image *i, const Elf64_Ehdr *h, uint64_t address) {
    const Elf64_Phdr *v = at(i, h->e_phoff, (uint64_t)h->e_phnum * sizeof(*v));
    for (size_t s = 0; v && s < h->e_phnum; s++)
        if (v[s].p_type == PT_LOAD && address >= v[s].p_vaddr &&
            address - v[s].p_vaddr < v[s].p_filesz)
            return address - v[s].p_vaddr + v[s].p_offset;
    return 0;
}

/* Where in the file the function is. */
static uint64_t find(const struct elf_image *i, const char *name) {
    const Elf64_Ehdr *h = head_of(i);
    const Elf64_Shdr *v = h ? at(i, h->e_shoff, (uint64_t)h->e_shnum * sizeof(*v)) : NULL;
    uint64_t found = 0;
    for (size_t s = 0; v && s < h->e_shnum && !found; s++)
        if (v[s].sh_type == SHT_DYNSYM || v[s].sh_type == SHT_SYMTAB)
            found = find_in(i, v, h->e_shnum, &v[s], name);
    return found ? in_file(i, h, found) : 0;
}

static uint64_t find_in_file(const char *path, const char *name) {
    FILE_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size <= 0)
        return 0;
    struct elf_image i = {.n = (size_t)st.st_size};
    void *data = mmap(NULL, i.n, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED)
        return 0;
    i.data = data;
    uint64_t found = find(&i, name);
    munmap(data, i.n);
    return found;
}

/* ---- the process ---- */

/* By its name as the process sees it; the kernel's own link to it is for root alone. */
static uint64_t find_in_mapped(pid_t pid, const char *name, const char *file, const char *range) {
    BUF_FINI struct buf path = {0};
    buf_printf(&path, "/proc/%d/root%.*s", (int)pid, (int)strcspn(file, "\n"), file);
    uint64_t found = find_in_file(buf_str(&path), name);
    if (found)
        return found;
    buf_clear(&path);
    buf_printf(&path, "/proc/%d/map_files/%.*s", (int)pid, (int)strcspn(range, " "), range);
    return find_in_file(buf_str(&path), name);
}

/* What it executes is mapped piece by piece: of each file only the piece with code counts, and the
 * file is asked when that is met. */
uint64_t symbol_find(pid_t pid, const char *name) {
    char maps[64], line[4352];
    uint64_t found = 0;
    snprintf(maps, sizeof(maps), "/proc/%d/maps", (int)pid);
    FILE *f = fopen(maps, "re");
    while (f && !found && fgets(line, sizeof(line), f)) {
        unsigned long long from, to, offset, inode;
        char rights[5];
        int file = 0;
        if (sscanf(line, "%llx-%llx %4s %llx %*s %llu %n", &from, &to, rights, &offset, &inode,
                   &file) < 5 ||
            !inode || rights[2] != 'x')
            continue;
        uint64_t place = find_in_mapped(pid, name, line + file, line);
        if (place && place >= offset && place - offset < to - from)
            found = from + (place - offset);
    }
    if (f)
        fclose(f);
    return found;
}
