/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * A rank of boot_launch.sh: creates groups by what the launcher has set,
 * several one after the other, and exchanges data in each. Prints "ok" and
 * the rank. An argument names the bootstrap that must have been used.
 */
#include <config.h>

#include "boot_ranks.h"

#include <string.h>

#define GROUPS 3

int main(int argc, char **argv)
{
    hce_boot_t *boots[GROUPS];
    hce_boot_params_t params = {.bootstrap = HCE_BOOTSTRAP_AUTO,
                                .deadline =
                                    hce_clock_deadline(RANKS_LIMIT_NS)};

    ranks_setup();
    for (int g = 0; g < GROUPS; g++) {
        int me, ranks[1024];

        if (hce_boot_create(&params, &boots[g]) != HCE_OK) {
            return 1;
        }
        if (argc > 1 && strcmp(hce_boot_name(boots[g]), argv[1]) != 0) {
            fprintf(stderr, "bootstrap %s instead of %s\n",
                    hce_boot_name(boots[g]), argv[1]);
            return 1;
        }
        me = hce_boot_rank(boots[g]);
        if (hce_boot_allgather(boots[g], &me, sizeof(int), ranks,
                               params.deadline) != HCE_OK) {
            return 1;
        }
        for (int r = 0; r < hce_boot_size(boots[g]); r++) {
            if (ranks[r] != r) {
                fprintf(stderr, "rank %d has sent %d\n", r, ranks[r]);
                return 1;
            }
        }
    }
    printf("ok %d of %d\n", hce_boot_rank(boots[0]), hce_boot_size(boots[0]));
    for (int g = 0; g < GROUPS; g++) {
        hce_boot_goodbye(boots[g], 10 * HCE_NS_PER_SEC);
        hce_boot_destroy(boots[g]);
    }
    return 0;
}
