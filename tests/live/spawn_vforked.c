/* A process that no signal can stop for SECONDS: it waits in the kernel for a child of vfork, which
 * sleeps for so long. Prints nothing; exits 0. */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv) {
    struct timespec left = {.tv_sec = argc > 1 ? atoi(argv[1]) : 1};
    pid_t pid = vfork(); /* NOLINT: that it waits in the kernel is what it is for */
    if (pid == 0) {
        while (nanosleep(&left, &left) != 0)
            ;
        _exit(0);
    }
    return pid < 0;
}
