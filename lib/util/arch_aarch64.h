/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * aarch64. Include util/arch.h instead.
 */
#ifndef HCE_UTIL_ARCH_AARCH64_H
#define HCE_UTIL_ARCH_AARCH64_H

/* isb waits for the pipeline to drain, tens of cycles as pause does on
 * x86-64; yield does nothing on cores without hardware threads. */
static inline void hce_arch_pause(void)
{
    __asm__ __volatile__("isb" ::: "memory");
}

/* Orders all earlier stores, stnp included, before all later ones. */
static inline void hce_arch_store_fence(void)
{
    __asm__ __volatile__("dmb ishst" ::: "memory");
}

#endif
