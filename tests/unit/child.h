/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Runs a function in a child process and keeps what it writes to standard
 * error, one entry for each write(2): standard error is a packet socket.
 * For what happens once in a process, and for what it prints. Failures of
 * the child are told by its exit status, since cmocka lives in the parent.
 */
#ifndef HCE_TESTS_UNIT_CHILD_H
#define HCE_TESTS_UNIT_CHILD_H

#define CHILD_MAX_LINES 64
#define CHILD_LINE_SIZE 4096

typedef struct child {
    int exit_status; /* as returned by the function; -1: did not exit */
    int num_lines;
    char lines[CHILD_MAX_LINES][CHILD_LINE_SIZE];
} child_t;

typedef int (*child_fn_t)(void *arg);

/* Ends the test where the machinery itself fails. The child writes at most
 * CHILD_MAX_LINES packets. */
void child_run(child_fn_t fn, void *arg, child_t *child);

/* Removes HCE_* from the environment: settings of whoever runs the tests
 * would be warned of, or change what is logged. */
void child_clean_env(void);

#endif
