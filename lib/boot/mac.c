/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * SipHash-2-4 with 128 bits of output, after "SipHash: a fast short-input
 * PRF" by J.-P. Aumasson and D. J. Bernstein (2012) and the authors' longer
 * variant. No state.
 */
#include <config.h>

#include "boot/mac.h"
#include "util/log.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

typedef struct sip {
    uint64_t v0, v1, v2, v3;
} sip_t;

static uint64_t rotate(uint64_t x, int bits)
{
    return (x << bits) | (x >> (64 - bits));
}

static void rounds(sip_t *s, int count)
{
    for (int i = 0; i < count; i++) {
        s->v0 += s->v1;
        s->v1 = rotate(s->v1, 13) ^ s->v0;
        s->v0 = rotate(s->v0, 32);
        s->v2 += s->v3;
        s->v3 = rotate(s->v3, 16) ^ s->v2;
        s->v0 += s->v3;
        s->v3 = rotate(s->v3, 21) ^ s->v0;
        s->v2 += s->v1;
        s->v1 = rotate(s->v1, 17) ^ s->v2;
        s->v2 = rotate(s->v2, 32);
    }
}

static void word_absorb(sip_t *s, uint64_t word)
{
    s->v3 ^= word;
    rounds(s, 2);
    s->v0 ^= word;
}

static uint64_t word_squeeze(sip_t *s)
{
    rounds(s, 4);
    return s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
}

void hce_boot_mac(const uint8_t key[HCE_BOOT_KEY_LEN], const void *data,
                  size_t len, uint8_t mac[HCE_BOOT_KEY_LEN])
{
    const uint8_t *bytes = data;
    size_t whole = len / 8 * 8;
    uint64_t k[2], word, out[2];
    sip_t s;

    memcpy(k, key, sizeof(k));
    s.v0 = k[0] ^ 0x736f6d6570736575ull;
    s.v1 = k[1] ^ 0x646f72616e646f6dull ^ 0xee;
    s.v2 = k[0] ^ 0x6c7967656e657261ull;
    s.v3 = k[1] ^ 0x7465646279746573ull;
    for (size_t i = 0; i < whole; i += 8) {
        memcpy(&word, bytes + i, 8);
        word_absorb(&s, word);
    }
    word = (uint64_t)len << 56;
    for (size_t i = whole; i < len; i++)
        word |= (uint64_t)bytes[i] << 8 * (i - whole);
    word_absorb(&s, word);
    s.v2 ^= 0xee;
    out[0] = word_squeeze(&s);
    s.v1 ^= 0xdd;
    out[1] = word_squeeze(&s);
    memcpy(mac, out, sizeof(out));
}

uint64_t hce_boot_hash(const void *data, size_t len)
{
    static const uint8_t key[HCE_BOOT_KEY_LEN] = "libhce job name";
    uint8_t mac[HCE_BOOT_KEY_LEN];
    uint64_t hash;

    hce_boot_mac(key, data, len, mac);
    memcpy(&hash, mac, sizeof(hash));
    return hash;
}

bool hce_boot_mac_equal(const uint8_t a[HCE_BOOT_KEY_LEN],
                        const uint8_t b[HCE_BOOT_KEY_LEN])
{
    uint8_t differ = 0;

    for (int i = 0; i < HCE_BOOT_KEY_LEN; i++)
        differ |= a[i] ^ b[i];
    return differ == 0;
}

hce_status_t hce_boot_random(void *buf, size_t len)
{
    ssize_t got;

    do {
        got = getrandom(buf, len, 0);
    } while (got < 0 && errno == EINTR);
    if (got != (ssize_t)len) {
        hce_log(ERROR, BOOT, "getrandom(%zu): %m", len);
        return HCE_ERR_SYSTEM;
    }
    return HCE_OK;
}
