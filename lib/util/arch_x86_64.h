/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * x86-64. Include util/arch.h instead.
 */
#ifndef HCE_UTIL_ARCH_X86_64_H
#define HCE_UTIL_ARCH_X86_64_H

static inline void hce_arch_pause(void)
{
    __asm__ __volatile__("pause" ::: "memory");
}

/* Non-temporal stores are outside of the total store order: a release store
 * alone does not keep them before it. After the fence it does. */
static inline void hce_arch_store_fence(void)
{
    __asm__ __volatile__("sfence" ::: "memory");
}

#endif
