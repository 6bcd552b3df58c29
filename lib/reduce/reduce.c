/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Choice of a variant, once for the process, and what all kernels share: the
 * floating-point environment and the edges of streaming stores.
 */
#include <config.h>

#include "reduce/reduce.h"

#include "reduce/fpenv.h"
#include "reduce/settings.h"
#include "reduce/variant.h"
#include "util/arch.h"
#include "util/log.h"
#include "util/math.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>

#define LINE 64 /* bytes of a cache line */

/* Best first. */
static const hce_reduce_variant_t *const variants[] = {
#if defined(__x86_64__)
    &hce_reduce_avx512_bf16,
    &hce_reduce_avx512,
    &hce_reduce_avx2,
#endif
    &hce_reduce_portable,
};

/* Written once under once, read after hce_reduce_init only. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static hce_status_t init_status;
static const hce_reduce_variant_t *chosen = &hce_reduce_portable;

const hce_reduce_variant_t *hce_reduce_variant_usable(int i)
{
    size_t v;

    for (v = 0; v < sizeof(variants) / sizeof(variants[0]); v++) {
        if (variants[v]->is_usable() && i-- == 0)
            return variants[v];
    }
    return NULL;
}

static void variant_choose(void)
{
    static const char *const names[] = {NULL, "portable", "avx2", "avx512",
                                        "avx512-bf16"};
    const char *wanted = names[hce_reduce_choice];
    const hce_reduce_variant_t *variant;
    int i;

    for (i = 0; (variant = hce_reduce_variant_usable(i)) != NULL; i++) {
        if (wanted == NULL || strcmp(variant->name, wanted) == 0)
            break;
    }
    if (variant == NULL) {
        hce_log(ERROR, TUNING,
                "HCE_REDUCE_KERNEL=%s: this CPU has no such instructions",
                wanted);
        init_status = HCE_ERR_CONFIG;
        return;
    }
    chosen = variant;
    hce_log(INFO, TUNING, "reductions with the instructions of %s",
            chosen->name);
}

hce_status_t hce_reduce_init(void)
{
    pthread_once(&once, variant_choose);
    return init_status;
}

const char *hce_reduce_variant_name(void)
{
    return chosen->name;
}

hce_datatype_t hce_reduce_partial_type(hce_datatype_t datatype)
{
    return datatype == HCE_FLOAT8E4M3 || datatype == HCE_FLOAT8E5M2
               ? HCE_FLOAT16
               : datatype;
}

const hce_reduce_row_t *hce_reduce_row_get(const hce_reduce_variant_t *variant,
                                           hce_datatype_t datatype)
{
    if (variant->rows[datatype].round == NULL)
        variant = variant->base;
    return &variant->rows[datatype];
}

hce_reduce_kernel_t hce_reduce_kernel_get(const hce_reduce_variant_t *variant,
                                          hce_redop_t op,
                                          hce_datatype_t datatype)
{
    return (hce_reduce_kernel_t){
        .run = hce_reduce_row_get(variant, datatype)->kernels[op],
        .elem_size = hce_datatype_size(datatype),
        .partial_size = hce_datatype_size(hce_reduce_partial_type(datatype)),
    };
}

hce_status_t hce_reduce_kernel_find(hce_redop_t op, hce_datatype_t datatype,
                                    hce_reduce_kernel_t *kernel_p)
{
    if ((unsigned)op >= HCE_REDOP_LAST ||
        (unsigned)datatype >= HCE_DATATYPE_LAST)
        return HCE_ERR_INVALID_ARG;
    *kernel_p = hce_reduce_kernel_get(chosen, op, datatype);
    return HCE_OK;
}

/* The first element at or after begin where every destination starts a line;
 * end if there is none. */
static size_t aligned_find(const hce_reduce_args_t *args, size_t size)
{
    uintptr_t first = (uintptr_t)args->dsts[0] + args->begin * size;
    size_t skip = (size_t)(-first % LINE);
    int d;

    for (d = 1; d < args->num_dsts; d++) {
        if (((uintptr_t)args->dsts[d] - (uintptr_t)args->dsts[0]) % LINE != 0)
            return args->end;
    }
    if (skip % size != 0 || skip / size >= args->end - args->begin)
        return args->end;
    return args->begin + skip / size;
}

void hce_reduce_run(const hce_reduce_kernel_t *kernel,
                    const hce_reduce_args_t *args)
{
    uint64_t env = hce_reduce_fpenv_get();
    size_t aligned = args->end;

    if (env != HCE_REDUCE_FPENV)
        hce_reduce_fpenv_set(HCE_REDUCE_FPENV);
    if (args->streaming)
        aligned = aligned_find(args, args->to_partial ? kernel->partial_size
                                                      : kernel->elem_size);
    if (args->begin < aligned)
        kernel->run(args, args->begin, aligned, false);
    if (aligned < args->end) {
        kernel->run(args, aligned, args->end, true);
        hce_arch_store_fence();
    }
    if (env != HCE_REDUCE_FPENV)
        hce_reduce_fpenv_set(env);
}
