/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Where log lines go: standard error, or one file for each different name
 * that HCE_LOG_FILE expands to. Part of log.c.
 */
#ifndef HCE_UTIL_LOG_FILE_H
#define HCE_UTIL_LOG_FILE_H

#include <stddef.h>

/* pattern: see hce_log_init(). NULL is standard error. */
void hce_log_file_init(const char *pattern);

/* Appends a line by one write(2). */
void hce_log_file_write(const char *line, size_t len, int rank);

#endif
