/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Results to statuses, and what surrounds calls made on a user's thread.
 */
#include "config.h"

#include "drv/drv.h"

#include "util/log.h"

#include <stdarg.h>
#include <stdio.h>

static hce_status_t result_status(hce_cu_result_t result)
{
    switch (result) {
    case HCE_CU_OK:
        return HCE_OK;
    case HCE_CU_OUT_OF_MEMORY:
        return HCE_ERR_NO_MEMORY;
    case HCE_CU_NOT_SUPPORTED:
    case HCE_CU_PEER_ACCESS_UNSUPPORTED:
        return HCE_ERR_UNSUPPORTED;
    case HCE_CU_INVALID_VALUE:
        return HCE_ERR_INVALID_ARG;
    default:
        return HCE_ERR_SYSTEM;
    }
}

hce_status_t hce_drv_check(hce_cu_result_t result, const char *call,
                           const char *format, ...)
{
    char what[160], name[HCE_DRV_NAME_LEN];
    va_list args;

    if (result == HCE_CU_OK)
        return HCE_OK;
    va_start(args, format);
    vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    hce_log(ERROR, CE, "%s: %s returns %s", what, call,
            hce_drv_result_name(result, name));
    return result_status(result);
}

hce_status_t hce_drv_enter(const hce_drv_t *drv, hce_cu_ctx_t ctx,
                           hce_drv_scope_t *scope_p)
{
    hce_drv_scope_t scope = {.drv = drv, .mode = HCE_CU_CAPTURE_RELAXED};
    hce_status_t status;

    status = hce_drv_check(drv->ctx_push_current(ctx), "cuCtxPushCurrent",
                           "entering the device's context");
    if (status != HCE_OK)
        return status;
    status = hce_drv_check(drv->thread_exchange_capture_mode(&scope.mode),
                           "cuThreadExchangeStreamCaptureMode",
                           "relaxing the mode of captures");
    if (status != HCE_OK) {
        drv->ctx_pop_current(&ctx);
        return status;
    }
    *scope_p = scope;
    return HCE_OK;
}

void hce_drv_leave(const hce_drv_scope_t *scope)
{
    hce_cu_enum_t mode = scope->mode;
    hce_cu_ctx_t ctx;

    (void)hce_drv_check(scope->drv->thread_exchange_capture_mode(&mode),
                        "cuThreadExchangeStreamCaptureMode",
                        "restoring the mode of captures");
    (void)hce_drv_check(scope->drv->ctx_pop_current(&ctx), "cuCtxPopCurrent",
                        "leaving the device's context");
}
