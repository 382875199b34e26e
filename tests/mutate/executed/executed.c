/* executed: linked into programs built with -finstrument-functions, it notes which of their functions have run: a byte for
 * each address of the code, in a file of the program's name in the directory that MUTATE_EXECUTED names. The file is mapped
 * and shared, so that what a killed process has run is there too, and no descriptor stays open. Who was started
 * with an empty environment finds the variable in that of an ancestor. Without it, or where the file cannot be had, nothing is noted.
 * ci/mutate reads it with nm's addresses. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

extern char __executable_start[], etext[];
void __cyg_profile_func_enter(void *function, void *caller);
void __cyg_profile_func_exit(void *function, void *caller);

static _Atomic(unsigned char *) ran;
static atomic_flag is_asked = ATOMIC_FLAG_INIT;

/* The folder that a process was told, out of its environment: true if it was. */
__attribute__((no_instrument_function)) static int was_told(int pid, char folder[PATH_MAX]) {
    static const char name[] = "MUTATE_EXECUTED=";
    char path[64];
    size_t n = 0, size = 0;
    char *text = NULL;
    snprintf(path, sizeof(path), "/proc/%d/environ", pid);
    FILE *f = fopen(path, "re");
    while (f && !n && getdelim(&text, &size, '\0', f) > 0)
        if (strncmp(text, name, strlen(name)) == 0)
            n = strlen(strncpy(folder, text + strlen(name), PATH_MAX - 1));
    free(text);
    if (f)
        fclose(f);
    return n > 0;
}

/* 0: it has none, or none that is seen here. */
__attribute__((no_instrument_function)) static int parent_of(int pid) {
    char path[64], text[512];
    int parent = 0;
    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
    text[n] = '\0';
    if (f)
        fclose(f);
    const char *end = strrchr(text, ')');
    return end && sscanf(end, ") %*c %d", &parent) == 1 ? parent : 0;
}

__attribute__((no_instrument_function)) static int find_folder(char folder[PATH_MAX]) {
    const char *told = getenv("MUTATE_EXECUTED");
    folder[0] = folder[PATH_MAX - 1] = '\0';
    if (told)
        return snprintf(folder, PATH_MAX, "%s", told) < PATH_MAX;
    for (int pid = getppid(); pid > 0; pid = parent_of(pid))
        if (was_told(pid, folder))
            return 1;
    return 0;
}

__attribute__((no_instrument_function)) static void map_file(size_t size) {
    char folder[PATH_MAX], path[2 * PATH_MAX];
    if (!find_folder(folder) ||
        snprintf(path, sizeof(path), "%s/%s", folder, program_invocation_short_name) >= PATH_MAX)
        return;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0)
        return;
    void *p = MAP_FAILED;
    if (ftruncate(fd, (off_t)size) == 0)
        p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (p != MAP_FAILED)
        ran = p;
}

/* May be called in a handler, or by a child of vfork: it changes no errno. */
__attribute__((no_instrument_function)) void __cyg_profile_func_enter(void *function,
                                                                      void *caller) {
    size_t place = (size_t)((char *)function - __executable_start);
    size_t size = (size_t)(etext - __executable_start);
    int saved = errno;
    if (!ran && !atomic_flag_test_and_set(&is_asked))
        map_file(size);
    if (ran && place < size)
        ran[place] = 1;
    errno = saved;
}

__attribute__((no_instrument_function)) void __cyg_profile_func_exit(void *function, void *caller) {
}
