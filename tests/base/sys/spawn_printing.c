/* Prints what somebody else wrote by every way that the C library has, as our programs do. argv[1]:
 * what is done. */
#include "base/hidden.h"
#include "base/sys/printing.h"

#include <string.h>
#include <unistd.h>

static const char hostile[] = "\033[2J \302\233 \342\200\256 \377 \a\r";

static int each_way(void) {
    printf("%s %d\n", hostile, 1);
    fprintf(stdout, "%s\n", hostile);
    fputs(hostile, stdout);
    puts(hostile);
    putchar('\033');
    fputc(0x7f, stdout);
    fwrite(hostile, 1, sizeof(hostile) - 1, stdout);
    fprintf(stderr, "%s\n", hostile);
    fputs(hostile, stderr);
    putc('\033', stderr);
    return 0;
}

/* A character lies across every border there is, of blocks and of calls. */
static int in_pieces(void) {
    for (int i = 0; i < 5000; i++)
        fputs("\342\202\254", stdout);
    for (const char *at = "\342\202\254\n"; *at; at++) {
        fputc(*at, stdout);
        fflush(stdout);
    }
    for (const char *at = "\342\200\256\n"; *at; at++)
        fputc(*at, stderr);
    return 0;
}

static int as_it_is(void) {
    static const char own[] = "\033[32mgood\033[0m\n";
    printf("%s|", hostile);
    printing_put(stdout, own, strlen(own));
    printing_line(stdout, "%s\n%s", "two", "lines");
    return printing_fd(stdout) != STDOUT_FILENO || printing_fd(stderr) != STDERR_FILENO;
}

/* What cannot be written is known, as without us. */
static int full(void) {
    FILE *out = fopen("/dev/full", "w");
    bool reopened = out && dup2(fileno(out), STDOUT_FILENO) >= 0;
    printf("lost\n");
    bool flushed = fflush(stdout) == 0 && !ferror(stdout);
    clearerr(stdout);
    bool put = printing_put(stdout, "lost", 4);
    return !reopened || flushed || put;
}

/* In pieces, whole, around it, and one that only begins. */
static int hidden(void) {
    static struct hidden h;
    hidden_add(&h, "hunter-22");
    printing_hide(&h);
    for (const char *at = "a hunter-22 b "; *at; at++) {
        fputc(*at, stdout);
        fflush(stdout);
    }
    fputs("hunter-2", stdout);
    printing_put(stdout, "[hunter-22]", 11);
    fputs("hunter-22 hunt", stdout);
    return 0;
}

int main(int argc, char **argv) {
    printing_begin();
    const char *what = argc > 1 ? argv[1] : "";
    return strcmp(what, "each-way") == 0    ? each_way()
           : strcmp(what, "in-pieces") == 0 ? in_pieces()
           : strcmp(what, "as-it-is") == 0  ? as_it_is()
           : strcmp(what, "hidden") == 0    ? hidden()
           : strcmp(what, "cut-off") == 0   ? fputs("a\342\202", stdout) < 0
                                            : full();
}
