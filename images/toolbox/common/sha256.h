#ifndef BRIG_SHA256_H
#define BRIG_SHA256_H

#include <stddef.h>
#include <stdint.h>

/* FIPS 180-4. */
struct sha256 {
    uint32_t state[8];
    uint64_t size;
    uint8_t block[64];
};

void sha256_begin(struct sha256 *hash);
void sha256_add(struct sha256 *hash, const uint8_t *data, size_t size);
void sha256_end(struct sha256 *hash, uint8_t digest[32]);

#endif
