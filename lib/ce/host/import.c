/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Memory of peers that is mapped here, once for the process: communicators
 * that register the same buffer share the mapping.
 */
#include <config.h>

#include "ce/host/mem.h"

#include "util/log.h"
#include "util/shm.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Protects imports and the reference counts. Held while mapping, so that two
 * threads do not map the same memory twice. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static hce_ce_import_t *imports;

/* Caller holds lock. */
static hce_ce_import_t *import_find(const hce_ce_mem_id_t *id)
{
    hce_ce_import_t *import;

    for (import = imports; import != NULL; import = import->next) {
        if (memcmp(&import->id, id, sizeof(*id)) == 0)
            return import;
    }
    return NULL;
}

/* Caller holds lock. */
static hce_status_t import_create(const hce_ce_mem_id_t *id, int fd,
                                  size_t size, hce_ce_import_t **import_p)
{
    hce_ce_import_t *import;
    hce_shm_t shm;
    hce_status_t status;

    import = malloc(sizeof(*import));
    if (import == NULL) {
        hce_log(ERROR, CE, "no memory to import a window");
        return HCE_ERR_NO_MEMORY;
    }
    status = hce_shm_map(fd, size, &shm);
    if (status != HCE_OK) {
        free(import);
        return status;
    }
    close(shm.fd); /* the mapping stays */
    *import = (hce_ce_import_t){
        .next = imports, .id = *id, .addr = shm.addr, .size = shm.size};
    imports = import;
    *import_p = import;
    return HCE_OK;
}

hce_status_t hce_ce_import_get(const hce_ce_mem_id_t *id, int fd, size_t size,
                               hce_ce_import_t **import_p)
{
    hce_status_t status = HCE_OK;
    hce_ce_import_t *import;

    pthread_mutex_lock(&lock);
    import = import_find(id);
    if (import == NULL) {
        status = import_create(id, fd, size, &import);
    } else if (import->size < size) {
        hce_log(ERROR, CE, "memory of %zu bytes is said to have %zu",
                import->size, size);
        status = HCE_ERR_INTERNAL;
    } else {
        close(fd);
    }
    if (status == HCE_OK) {
        import->refs++;
        *import_p = import;
    }
    pthread_mutex_unlock(&lock);
    return status;
}

void hce_ce_import_put(hce_ce_import_t *import)
{
    hce_ce_import_t **link;

    pthread_mutex_lock(&lock);
    if (--import->refs == 0) {
        for (link = &imports; *link != import; link = &(*link)->next)
            ;
        *link = import->next;
        munmap(import->addr, import->size);
        free(import);
    }
    pthread_mutex_unlock(&lock);
}
