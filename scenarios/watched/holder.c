/* holder: stands in the PATH in place of PROGRAM, and becomes it with what SETS says of the environment: what is to be
 * loaded before all others. No shell: who starts it may have limits under which none begins.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv) {
    (void)argc;
    SETS execv(PROGRAM, argv);
    perror(PROGRAM);
    return 127;
}
