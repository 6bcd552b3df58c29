/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Chooses how ranks start, and runs them as threads. A thread of this process
 * is a rank of its own, with its own communicator. Processes: procs.c.
 */
#include <config.h>

#include "launch.h"

#include "boot/local.h"
#include "procs.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

typedef struct thread {
    const hce_perf_opts_t *opts;
    hce_perf_body_t body;
    hce_perf_entry_t entry;
    pthread_t id;
    int rc;
} thread_t;

static void *thread_main(void *arg)
{
    thread_t *thread = arg;

    thread->rc = thread->body(thread->opts, &thread->entry);
    return NULL;
}

/* A rank that cannot be started leaves the others waiting for it: they give
 * up after HCE_BOOTSTRAP_TIMEOUT. */
static int run_threads(const hce_perf_opts_t *opts, hce_perf_body_t body,
                       const hce_perf_entry_t *entries)
{
    thread_t *threads = calloc((size_t)opts->ranks, sizeof(*threads));
    int r, started, err = 0, rc = 0;

    if (threads == NULL) {
        fprintf(stderr, "hce_perf: no memory for %d ranks\n", opts->ranks);
        return 1;
    }
    for (r = 0; r < opts->ranks && err == 0; r++) {
        threads[r] =
            (thread_t){.opts = opts, .body = body, .entry = entries[r]};
        err = pthread_create(&threads[r].id, NULL, thread_main, &threads[r]);
    }
    started = err == 0 ? r : r - 1;
    if (err != 0) {
        fprintf(stderr, "hce_perf: cannot start rank %d as a thread: %s\n",
                started, strerror(err));
        rc = 1;
    }
    for (r = 0; r < started; r++) {
        pthread_join(threads[r].id, NULL);
        rc = threads[r].rc != 0 ? threads[r].rc : rc;
    }
    free(threads);
    return rc;
}

/* One entry a rank; nodes as --nodes lays them out, else left to the
 * library. */
static hce_perf_entry_t *create_entries(const hce_perf_opts_t *opts,
                                        const hce_unique_id_t *unique_id)
{
    hce_perf_entry_t *entries = calloc((size_t)opts->ranks, sizeof(*entries));
    int *color = calloc((size_t)opts->ranks, sizeof(*color));
    const char *why;
    int r;

    if (entries == NULL || color == NULL) {
        fprintf(stderr, "hce_perf: no memory for %d ranks\n", opts->ranks);
        goto err_free;
    }
    if (opts->nodes != NULL &&
        hce_layout_parse(opts->nodes, opts->map, opts->ranks, color, &why) !=
            HCE_OK) {
        fprintf(stderr, "hce_perf: --nodes: %s\n", why);
        goto err_free;
    }
    for (r = 0; r < opts->ranks; r++)
        entries[r] = (hce_perf_entry_t){
            .rank = r,
            .size = opts->ranks,
            .unique_id = unique_id,
            .node = opts->nodes != NULL ? color[r] : -1,
        };
    free(color);
    return entries;

err_free:
    free(color);
    free(entries);
    return NULL;
}

/* Ranks that are threads share one process' descriptors; the soft limit is
 * often far below what is allowed. */
static void raise_descriptors(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

int hce_perf_launch(const hce_perf_opts_t *opts, hce_perf_body_t body)
{
    static const hce_perf_entry_t launched = {-1, -1, NULL, -1};
    hce_unique_id_t unique_id;
    hce_perf_entry_t *entries;
    hce_status_t status;
    int rc = 1;

    raise_descriptors();
    if (opts->ranks == 0)
        return body(opts, &launched);

    status = hce_boot_local_prepare(&unique_id);
    if (status != HCE_OK) {
        fprintf(stderr, "hce_perf: cannot prepare %d ranks: %s\n", opts->ranks,
                hce_status_string(status));
        return 1;
    }
    entries = create_entries(opts, &unique_id);
    if (entries != NULL)
        rc = opts->threads ? run_threads(opts, body, entries)
                           : hce_perf_procs_run(opts, body, entries);
    hce_boot_local_release(&unique_id); /* if rank 0 has not come for it */
    free(entries);
    return rc;
}
