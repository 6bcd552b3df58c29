/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The CUDA driver, loaded at run time: a table of pointers, made once for a
 * process. Thread-safe. After fork the child must not use it; hce_drv_get
 * refuses there.
 */
#ifndef HCE_DRV_DRV_H
#define HCE_DRV_DRV_H

#include "drv/calls.h"
#include "drv/types.h"

#include <hce/hce.h>
#include <stdbool.h>

#define HCE_DRV_MIN_VERSION 12000 /* 1000 * major + 10 * minor */

#define HCE_DRV_MEMBER(_need, _member, _name, _version, _params)              \
    hce_cu_result_t(*_member) _params;

typedef struct hce_drv {
    int version; /* of the driver: 1000 * major + 10 * minor */
    int num_devices;
    HCE_DRV_CALLS(HCE_DRV_MEMBER)
} hce_drv_t;

/* Loads the driver and initialises it at the first call; later ones return
 * the first one's answer. HCE_ERR_UNSUPPORTED: there is none or none that
 * will do; hce_drv_reason has the text. HCE_ERR_FORKED in a child of a
 * process that had it. Logs nothing: whoever needs the driver does. */
hce_status_t hce_drv_get(const hce_drv_t **drv_p);

/* Why hce_drv_get failed, or "". Never changes after the first hce_drv_get. */
const char *hce_drv_reason(void);

/* Name of a driver's result, never NULL: "CUDA_ERROR_NOT_READY" or "result
 * 1234"; text is used for the latter. */
#define HCE_DRV_NAME_LEN 64
const char *hce_drv_result_name(hce_cu_result_t result,
                                char text[HCE_DRV_NAME_LEN]);

/* The one way from a driver's result to a status: 0 is HCE_OK; all others are
 * logged with the call's name and what it was about. */
hce_status_t hce_drv_check(hce_cu_result_t result, const char *call,
                           const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Brackets calls of a user's thread: makes ctx current, and lets calls that
 * are not allowed while some stream is captured pass (they are ours, not the
 * capture's). hce_drv_leave undoes both. */
typedef struct hce_drv_scope {
    const hce_drv_t *drv;
    hce_cu_enum_t mode; /* of captures, of this thread, before */
} hce_drv_scope_t;
hce_status_t hce_drv_enter(const hce_drv_t *drv, hce_cu_ctx_t ctx,
                           hce_drv_scope_t *scope_p);
void hce_drv_leave(const hce_drv_scope_t *scope);

#endif
