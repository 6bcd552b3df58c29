/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Memory that the library was not told of may be unmapped between calls, and
 * other pages may come to lie at its address: what is received must be in
 * those. A registration that outlived the call would write into the old ones.
 */
#include "config.h"

#include "job.h"

#include <stdlib.h>
#include <sys/mman.h>

#define SIZE   2
#define ROUNDS 1000
#define LEN    40001
#define BYTES  ((size_t)LEN * (SIZE + 1))

/* Other pages each time: a registration would still hold the old ones. */
static unsigned char *map_again(unsigned char *old)
{
    unsigned char *pages;

    if (old != NULL)
        JOB_CHECK(munmap(old, BYTES) == 0);
    pages = mmap(old, BYTES, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | (old != NULL ? MAP_FIXED : 0),
                 -1, 0);
    JOB_CHECK(pages != MAP_FAILED);
    return pages;
}

static int rank_main(job_t *job)
{
    unsigned char *buf = NULL;
    hce_comm_h comm;

    JOB_CHECK(job_comm(job, &comm) == HCE_OK);
    for (unsigned i = 0; i < ROUNDS; i++) {
        buf = map_again(buf);
        job_fill(buf, LEN, job->rank, i);
        JOB_CHECK(hce_allgather(buf, buf + LEN, LEN, HCE_UINT8, comm, NULL,
                                NULL) == HCE_OK);
        JOB_CHECK(hce_stream_synchronize(comm, NULL) == HCE_OK);
        JOB_CHECK(job_check(buf + LEN, LEN, SIZE, i) == 0);
    }
    JOB_CHECK(hce_comm_destroy(comm) == HCE_OK);
    munmap(buf, BYTES);
    return 0;
}

int main(void)
{
    job_t job;

    job_start(&job, SIZE, SIZE, rank_main);
    return job_end(&job, -1) != 0;
}
