/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Groups. Jobs that block (creations, registrations) run side by side, a
 * thread for each communicator that they are on, so that one thread can drive
 * several ranks; then collectives are enqueued in order.
 */
#include "config.h"

#include "core/group.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/coll.h"
#include "core/comm.h"
#include "core/create.h"
#include "util/log.h"

typedef struct group {
    int depth;
    hce_group_job_t *jobs;
    unsigned num_jobs;
    unsigned size;
    hce_status_t failed; /* first bad argument */
    const char *culprit; /* the call that had it */
} group_t;

static _Thread_local group_t group;

/* Jobs of one communicator, in order; each creation is alone. */
typedef struct strand {
    pthread_t thread;
    hce_comm_h comm;
    unsigned first; /* job; later ones are found by comm */
    group_t *group;
    hce_status_t status;
} strand_t;

static bool is_blocking(const hce_group_job_t *job)
{
    return job->kind != HCE_GROUP_COLL;
}

static hce_status_t run(hce_group_job_t *job)
{
    switch (job->kind) {
    case HCE_GROUP_CREATE:
        return hce_comm_open(&job->create.params, job->create.comm_p);
    case HCE_GROUP_SPLIT:
        return hce_comm_open_split(job->comm, job->create.color,
                                   job->create.key, &job->create.params,
                                   job->create.comm_p);
    case HCE_GROUP_WINDOW:
        return hce_window_open(job->comm, job->window.buf, job->window.size,
                               job->window.win_p);
    case HCE_GROUP_COLL:
        return hce_coll_enqueue(job);
    }
    return HCE_ERR_INTERNAL;
}

bool hce_group_is_open(void)
{
    return group.depth > 0;
}

static hce_status_t append(const hce_group_job_t *job)
{
    unsigned size = group.size == 0 ? 16 : 2 * group.size;
    hce_group_job_t *jobs;

    if (group.num_jobs == group.size) {
        jobs = realloc(group.jobs, size * sizeof(*jobs));
        if (jobs == NULL) {
            hce_log(ERROR, CORE, "no memory for a group of %u calls", size);
            return HCE_ERR_NO_MEMORY;
        }
        group.jobs = jobs;
        group.size = size;
    }
    group.jobs[group.num_jobs] = *job;
    if (job->kind == HCE_GROUP_CREATE &&
        (job->create.params.field_mask & HCE_COMM_PARAM_RANK))
        group.jobs[group.num_jobs].create.id = *job->create.params.unique_id;
    group.num_jobs++;
    return HCE_OK;
}

hce_status_t hce_group_submit(hce_group_job_t *job, hce_status_t check,
                              const char *call)
{
    if (group.depth == 0)
        return check == HCE_OK ? run(job) : check;
    if (check == HCE_OK)
        check = append(job);
    if (check != HCE_OK && group.failed == HCE_OK) {
        group.failed = check;
        group.culprit = call;
    }
    return check;
}

hce_status_t hce_group_start(void)
{
    group.depth++;
    return HCE_OK;
}

static void *strand_main(void *arg)
{
    strand_t *strand = arg;
    hce_group_job_t *job;
    unsigned i;

    for (i = strand->first; i < strand->group->num_jobs; i++) {
        job = &strand->group->jobs[i];
        if (!is_blocking(job) || job->comm != strand->comm ||
            (strand->comm == NULL && i != strand->first))
            continue;
        if (strand->status == HCE_OK)
            strand->status = run(job);
    }
    return NULL;
}

/* One strand for each creation and for each communicator with blocking jobs. */
static unsigned make_strands(group_t *of, strand_t *strands)
{
    unsigned i, k, n = 0;

    for (i = 0; i < of->num_jobs; i++) {
        if (!is_blocking(&of->jobs[i]))
            continue;
        for (k = 0; k < n && of->jobs[i].comm != NULL; k++)
            if (strands[k].comm == of->jobs[i].comm)
                break;
        if (of->jobs[i].comm == NULL || k == n)
            strands[n++] = (strand_t){
                .comm = of->jobs[i].comm, .first = i, .group = of};
    }
    return n;
}

static hce_status_t run_blocking(group_t *of)
{
    strand_t *strands = calloc(of->num_jobs, sizeof(*strands));
    hce_status_t status = HCE_OK;
    unsigned i, n, started;
    int error = 0;

    if (strands == NULL)
        return HCE_ERR_NO_MEMORY;
    n = make_strands(of, strands);
    /* The last one runs here. */
    for (started = 0; started + 1 < n && error == 0; started += error == 0)
        error = pthread_create(&strands[started].thread, NULL, strand_main,
                               &strands[started]);
    if (error == 0 && n > 0)
        strand_main(&strands[n - 1]);
    for (i = 0; i < started; i++)
        pthread_join(strands[i].thread, NULL);
    if (error != 0) {
        errno = error;
        hce_log(ERROR, CORE, "cannot start a thread for a group: %m");
        status = HCE_ERR_SYSTEM;
    }
    for (i = 0; i < n && status == HCE_OK; i++)
        status = strands[i].status;
    free(strands);
    return status;
}

static hce_status_t run_all(group_t *of)
{
    hce_status_t status = HCE_OK;
    unsigned i;

    if (of->num_jobs == 0)
        return HCE_OK;
    for (i = 0; i < of->num_jobs; i++) /* ids were copied; jobs have moved */
        if (of->jobs[i].kind == HCE_GROUP_CREATE)
            of->jobs[i].create.params.unique_id = &of->jobs[i].create.id;
    status = run_blocking(of);
    for (i = 0; i < of->num_jobs && status == HCE_OK; i++)
        if (!is_blocking(&of->jobs[i]))
            status = run(&of->jobs[i]);
    return status;
}

hce_status_t hce_group_end(void)
{
    hce_status_t status;
    group_t mine;

    if (group.depth == 0) {
        hce_log(ERROR, CORE, "hce_group_end without hce_group_start");
        return HCE_ERR_INVALID_ARG;
    }
    if (--group.depth > 0)
        return HCE_OK;
    mine = group; /* what runs now is outside of the group */
    memset(&group, 0, sizeof(group));
    if (mine.failed != HCE_OK) {
        hce_log(ERROR, CORE, "nothing of the group was started: %s failed",
                mine.culprit);
        status = mine.failed;
    } else {
        status = run_all(&mine);
    }
    free(mine.jobs);
    return status;
}
