/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Status texts and the version of the library.
 */
#include <config.h>

#include <hce/hce.h>

const char *hce_status_string(hce_status_t status)
{
    switch (status) {
    case HCE_OK:
        return "success";
    case HCE_INPROGRESS:
        return "in progress";
    case HCE_ERR_INVALID_ARG:
        return "invalid argument";
    case HCE_ERR_NO_MEMORY:
        return "out of memory or descriptors";
    case HCE_ERR_SYSTEM:
        return "system call failed";
    case HCE_ERR_UNSUPPORTED:
        return "not supported by this build or layout";
    case HCE_ERR_CONFIG:
        return "a setting is malformed or differs between ranks";
    case HCE_ERR_BOOTSTRAP:
        return "ranks could not find each other";
    case HCE_ERR_TIMEOUT:
        return "a rank is absent or stuck";
    case HCE_ERR_GONE:
        return "a rank's process ended";
    case HCE_ERR_SILENT:
        return "a rank's node sends no heartbeat";
    case HCE_ERR_MISMATCH:
        return "ranks made different calls";
    case HCE_ERR_ABORTED:
        return "a rank aborted the communicator";
    case HCE_ERR_TRANSPORT:
        return "the network failed";
    case HCE_ERR_FORKED:
        return "the handle was inherited through fork";
    case HCE_ERR_VERSION:
        return "ranks speak different wire versions";
    case HCE_ERR_NO_RESOURCE:
        return "no resource free now, try again";
    case HCE_ERR_INTERNAL:
        return "defect in the library";
    }
    return "unknown status";
}

void hce_get_version(int *major_p, int *minor_p, int *patch_p)
{
    if (major_p != NULL)
        *major_p = HCE_API_MAJOR;
    if (minor_p != NULL)
        *minor_p = HCE_API_MINOR;
    if (patch_p != NULL)
        *patch_p = HCE_API_PATCH;
}
