/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Every rank contributes a million numbers and gets those of all ranks.
 *
 *   cc allgather.c $(pkg-config --cflags --libs hce) -o allgather
 *   mpirun.openmpi -n 4 ./allgather
 *   torchrun-style: RANK=r WORLD_SIZE=n MASTER_ADDR=... MASTER_PORT=...
 *   ./allgather alone
 */
#include <hce/hce.h>
#include <stdio.h>
#include <string.h>

#define COUNT 1000003

static float element(int rank, size_t i)
{
    return (float)(rank * 31 + (int)(i % 1009));
}

/* Ranks find each other through their launcher; a single process needs none:
 * it is rank 0 of 1 of a group that it names itself. */
static hce_status_t create(int alone, hce_comm_h *comm_p)
{
    hce_unique_id_t id;
    hce_comm_params_t params = {
        .field_mask = HCE_COMM_PARAM_BOOTSTRAP | HCE_COMM_PARAM_RANK,
        .bootstrap = HCE_BOOTSTRAP_TCP,
        .rank = 0,
        .size = 1,
        .unique_id = &id,
    };
    hce_status_t status;

    if (!alone)
        return hce_comm_create(NULL, comm_p);
    status = hce_get_unique_id(&id);
    if (status != HCE_OK)
        return status;
    return hce_comm_create(&params, comm_p);
}

static size_t count_wrong(const float *recv, int size)
{
    size_t wrong = 0;

    for (int r = 0; r < size; r++)
        for (size_t i = 0; i < COUNT; i++)
            wrong += recv[(size_t)r * COUNT + i] != element(r, i);
    return wrong;
}

/* In place: the own part is written where the result wants it. */
static hce_status_t gather(hce_comm_h comm, const hce_comm_attr_t *attr,
                           float *recv, size_t *wrong_p)
{
    float *mine = recv + (size_t)attr->rank * COUNT;
    hce_window_h window;
    hce_status_t status;

    status = hce_window_register(
        comm, recv, (size_t)attr->size * COUNT * sizeof(float), &window);
    if (status != HCE_OK)
        return status;
    for (size_t i = 0; i < COUNT; i++)
        mine[i] = element(attr->rank, i);

    /* Returns at once; the buffers are ours again after the wait. */
    status = hce_allgather(mine, recv, COUNT, HCE_FLOAT32, comm, NULL, NULL);
    if (status == HCE_OK)
        status = hce_stream_synchronize(comm, NULL);
    if (status == HCE_OK)
        *wrong_p = count_wrong(recv, attr->size);
    /* The window goes with the communicator: a peer may still read it. */
    return status;
}

int main(int argc, char **argv)
{
    int alone = argc > 1 && strcmp(argv[1], "alone") == 0;
    hce_comm_attr_t attr;
    size_t wrong = 0;
    void *recv = NULL;
    hce_comm_h comm;
    hce_status_t status;

    status = create(alone, &comm);
    if (status != HCE_OK)
        goto out;
    status = hce_comm_query(comm, &attr);
    if (status == HCE_OK)
        status = hce_mem_alloc(
            HCE_DEVICE_HOST, (size_t)attr.size * COUNT * sizeof(float), &recv);
    if (status == HCE_OK)
        status = gather(comm, &attr, recv, &wrong);
    hce_comm_destroy(comm);
    hce_mem_free(recv);
out:
    if (status != HCE_OK) {
        fprintf(stderr, "allgather: %s\n", hce_status_string(status));
        return 1;
    }
    printf("rank %d of %d on node %d: %zu wrong\n", attr.rank, attr.size,
           attr.node, wrong);
    return wrong != 0;
}
