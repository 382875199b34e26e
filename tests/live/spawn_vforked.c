/* A process that no signal stops: it waits in the kernel for a child of vfork, which says "ready"
 * and ends with its standard input. Exits 0. */
#include <unistd.h>

int main(void) {
    static const char ready[] = "ready\n";
    pid_t pid = vfork();
    if (pid == 0) {
        char c;
        if (write(1, ready, sizeof(ready) - 1) > 0)
            while (read(0, &c, 1) > 0)
                ;
        _exit(0);
    }
    return pid < 0;
}
