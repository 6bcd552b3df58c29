/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The end of what all ranks do together: either all of them have succeeded,
 * or all fail and know whose fault it was and why.
 */
#include <config.h>

#include "ce/host/host.h"

#include "util/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct verdict {
    int32_t status;
    char text[HCE_CE_REASON_LEN];
} verdict_t;

hce_status_t hce_ce_fail(hce_ce_t *ce, hce_status_t status, const char *format,
                         ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(ce->fail_text, sizeof(ce->fail_text), format, args);
    va_end(args);
    hce_log(ERROR, CE, "%s", ce->fail_text);
    return status;
}

hce_status_t hce_ce_agree(hce_ce_t *ce, hce_status_t status, uint64_t deadline,
                          const char *what)
{
    int size = hce_boot_size(ce->boot), rank;
    verdict_t mine = {.status = status}, *all;

    all = calloc((size_t)size, sizeof(*all));
    if (all == NULL) {
        hce_log(ERROR, CE, "no memory for the verdicts of %d ranks", size);
        return HCE_ERR_NO_MEMORY;
    }
    if (status != HCE_OK)
        memcpy(mine.text, ce->fail_text, sizeof(mine.text));
    status = hce_boot_allgather(ce->boot, &mine, sizeof(mine), all, deadline);
    for (rank = 0; rank < size && status == HCE_OK; rank++) {
        status = (hce_status_t)all[rank].status;
        all[rank].text[sizeof(all[rank].text) - 1] = '\0';
        if (status != HCE_OK && rank != ce->rank)
            hce_log(ERROR, CE, "rank %d cannot %s: %s", rank, what,
                    all[rank].text);
    }
    free(all);
    return status;
}
