#ifndef BRIG_SHA256_H
#define BRIG_SHA256_H

#include <stddef.h>
#include <stdint.h>

/* FIPS 180-4, one shot, for inputs of at most 55 bytes: one block, which is all a token needs. */
void sha256_short(const uint8_t *data, size_t size, uint8_t digest[32]);

#endif
