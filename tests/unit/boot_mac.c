/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The keyed hash, by the vectors of its authors.
 */
#include <config.h>

#include "boot/mac.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* Key and input 00 01 ..; the results are also OpenSSL's SIPHASH's. */
static void test_mac(void **state)
{
    static const uint8_t empty[16] = {0xa3, 0x81, 0x7f, 0x04, 0xba, 0x25,
                                      0xa8, 0xe6, 0x6d, 0xf6, 0x72, 0x14,
                                      0xc7, 0x55, 0x02, 0x93};
    static const uint8_t fifteen[16] = {0x54, 0x93, 0xe9, 0x99, 0x33, 0xb0,
                                        0xa8, 0x11, 0x7e, 0x08, 0xec, 0x0f,
                                        0x97, 0xcf, 0xc3, 0xd9};
    uint8_t key[16], mac[16];

    for (uint8_t i = 0; i < 16; i++) {
        key[i] = i;
    }
    hce_boot_mac(key, key, 0, mac);
    assert_memory_equal(mac, empty, 16);
    hce_boot_mac(key, key, 15, mac);
    assert_memory_equal(mac, fifteen, 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mac),
    };

    return cmocka_run_group_tests_name("boot_mac", tests, NULL, NULL);
}
