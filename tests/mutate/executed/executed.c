/* executed: linked into programs built with -finstrument-functions, it notes which of their functions have run: a byte for
 * each address of the code, in a file of the program's name in the directory that MUTATE_EXECUTED names. The file is mapped
 * and shared, so that what a killed process has run is there too, and no descriptor stays open. Without the variable, or
 * where the file cannot be had, nothing is noted. ci/mutate reads it with nm's addresses. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

extern char __executable_start[], etext[];
void __cyg_profile_func_enter(void *function, void *caller);
void __cyg_profile_func_exit(void *function, void *caller);

static _Atomic(unsigned char *) ran;
static atomic_flag is_asked = ATOMIC_FLAG_INIT;

__attribute__((no_instrument_function)) static void map_file(size_t size) {
    const char *folder = getenv("MUTATE_EXECUTED");
    char path[PATH_MAX];
    if (!folder ||
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
