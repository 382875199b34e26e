/* Loads NCCL as the environment says. Prints what nccl_api_load answers, the version and the path,
 * and in a second line the sentence when it failed. */
#include "scenarios/jobs/ranktrain/gpu/nccl_api.h"

#include <stdio.h>

int main(void) {
    struct nccl_api api = {0};
    struct err err = {0};
    int r = nccl_api_load(&api, &err);
    printf("%d %d %s\n%s\n", r, api.version, api.path, err.msg);
    return 0;
}
