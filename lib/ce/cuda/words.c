/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Words of captured launches: a graph is replayed with the values that it was
 * captured with, so its streams know nothing but 0 and 1, in words that only
 * their own rank's proxy shares. They belong to the proxy and to the graph,
 * whichever ends last. The graph says so through a user object, on a thread
 * that may not call the driver: memory stays registered, to be used again.
 */
#include "config.h"

#include "ce/cuda/cuda.h"

#include "util/log.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/mman.h>

#define WORDS_UNIT 64 /* in a page */

/* Whose the words still are. */
enum { OWNER_PROXY = 1, OWNER_GRAPH = 2 };

static size_t words_size(uint32_t num)
{
    return num * sizeof(hce_ce_word_t);
}

static hce_status_t words_create(hce_ce_dev_t *dev, uint32_t num,
                                 hce_ce_words_t **words_p)
{
    hce_ce_words_t *words = calloc(1, sizeof(*words));
    hce_status_t status = HCE_ERR_NO_MEMORY;

    if (words == NULL) {
        hce_log(ERROR, CE, "no memory for words");
        return HCE_ERR_NO_MEMORY;
    }
    words->dev = dev;
    words->max = (num + WORDS_UNIT - 1) / WORDS_UNIT * WORDS_UNIT;
    /* Shared: after fork a private page would be copied under the device. */
    words->words = mmap(NULL, words_size(words->max), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (words->words == MAP_FAILED) {
        hce_log(ERROR, CE, "no memory for %u words: %m", words->max);
        goto err_words;
    }
    status = hce_ce_cuda_host_map(dev, words->words, words_size(words->max),
                                  &words->ptr);
    if (status != HCE_OK)
        goto err_map;
    *words_p = words;
    return HCE_OK;

err_map:
    munmap(words->words, words_size(words->max));
err_words:
    free(words);
    return status;
}

static hce_ce_words_t *words_reuse(hce_ce_dev_t *dev, uint32_t num)
{
    hce_ce_words_t **at = &dev->free_words, *words;

    pthread_mutex_lock(&dev->mem_lock);
    while (*at != NULL && (*at)->max < num)
        at = &(*at)->next;
    words = *at;
    if (words != NULL)
        *at = words->next;
    pthread_mutex_unlock(&dev->mem_lock);
    return words;
}

/* To those that are free, still registered. */
static void words_keep(hce_ce_words_t *words)
{
    hce_ce_dev_t *dev = words->dev;

    pthread_mutex_lock(&dev->mem_lock);
    words->next = dev->free_words;
    dev->free_words = words;
    pthread_mutex_unlock(&dev->mem_lock);
}

static void words_drop(hce_ce_words_t *words, unsigned owner)
{
    hce_ce_dev_t *dev = words->dev;

    /* Acquire and release: whoever is last sees all that the other did. Pairs
     * with words_are_gone(), too. */
    if (atomic_fetch_and_explicit(&words->owners, ~owner,
                                  memory_order_acq_rel) != owner)
        return;
    words_keep(words);
    pthread_mutex_lock(&dev->mem_lock);
    dev->num_words--;
    pthread_mutex_unlock(&dev->mem_lock);
}

/* Called by the driver, after the last graph and its last replay. */
static void graph_gone(void *words)
{
    words_drop(words, OWNER_GRAPH);
}

static hce_status_t graph_give(hce_ce_dev_launch_t *launch,
                               hce_ce_words_t *words)
{
    const hce_drv_t *drv = launch->dev->drv;
    hce_cu_user_object_t object;
    hce_status_t status;

    status =
        hce_drv_check(drv->user_object_create(&object, words, graph_gone, 1,
                                              HCE_CU_USER_OBJECT_NO_SYNC),
                      "cuUserObjectCreate", "words of a graph");
    if (status != HCE_OK) {
        words_drop(words, OWNER_GRAPH);
        return status;
    }
    status = hce_drv_check(
        drv->graph_retain_user_object(launch->graph, object, 1,
                                      HCE_CU_GRAPH_USER_OBJECT_MOVE),
        "cuGraphRetainUserObject", "words of a graph");
    if (status != HCE_OK)
        (void)hce_drv_check(drv->user_object_release(object, 1),
                            "cuUserObjectRelease", "words of a graph");
    return status;
}

hce_status_t hce_ce_cuda_words_get(hce_ce_dev_launch_t *launch, uint32_t num,
                                   hce_ce_words_t **words_p)
{
    hce_ce_dev_t *dev = launch->dev;
    hce_status_t status = HCE_OK;
    hce_ce_words_t *words = words_reuse(dev, num);
    uint32_t i;

    assert(launch->is_captured && num > 0);
    if (words == NULL)
        status = words_create(dev, num, &words);
    if (status != HCE_OK)
        return status;
    for (i = 0; i < words->max; i++)
        hce_ce_word_put(&words->words[i], 0);
    atomic_store(&words->owners, OWNER_PROXY | OWNER_GRAPH);
    pthread_mutex_lock(&dev->mem_lock);
    dev->num_words++;
    pthread_mutex_unlock(&dev->mem_lock);
    status = graph_give(launch, words);
    if (status != HCE_OK) {
        words_drop(words, OWNER_PROXY);
        return status;
    }
    *words_p = words;
    return HCE_OK;
}

hce_ce_word_t *hce_ce_cuda_words_at(hce_ce_words_t *words, uint32_t index)
{
    assert(index < words->max);
    return &words->words[index];
}

bool hce_ce_cuda_words_are_gone(const hce_ce_words_t *words)
{
    return (atomic_load_explicit(&((hce_ce_words_t *)words)->owners,
                                 memory_order_acquire) &
            OWNER_GRAPH) == 0;
}

void hce_ce_cuda_words_put(hce_ce_words_t *words)
{
    words_drop(words, OWNER_PROXY);
}

static hce_ce_dev_memop_t word_memop(const hce_ce_words_t *words,
                                     uint32_t index, uint64_t value)
{
    assert(index < words->max);
    return (hce_ce_dev_memop_t){
        .addr = words->ptr + index * sizeof(hce_ce_word_t), .value = value};
}

hce_status_t hce_ce_cuda_word_wait(hce_ce_dev_launch_t *launch, int queue,
                                   hce_ce_words_t *words, uint32_t index)
{
    hce_ce_dev_memop_t memop = word_memop(words, index, 1);
    hce_status_t status = hce_ce_cuda_wait(launch, queue, &memop, 1);

    /* Cleared by a call of its own, after the wait and before the next
     * replay can begin. */
    memop.value = 0;
    return status == HCE_OK ? hce_ce_cuda_write(launch, queue, &memop, 1)
                            : status;
}

hce_status_t hce_ce_cuda_word_set(hce_ce_dev_launch_t *launch, int queue,
                                  hce_ce_words_t *words, uint32_t index)
{
    hce_ce_dev_memop_t memop = word_memop(words, index, 1);

    return hce_ce_cuda_write(launch, queue, &memop, 1);
}

bool hce_ce_cuda_words_cleanup(hce_ce_dev_t *dev)
{
    hce_ce_words_t *words;

    while ((words = words_reuse(dev, 0)) != NULL) {
        hce_ce_cuda_host_unmap(dev, words->words);
        munmap(words->words, words_size(words->max));
        free(words);
    }
    return dev->num_words == 0;
}
