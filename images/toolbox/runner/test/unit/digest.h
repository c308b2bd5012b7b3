/* The digest of something that is there as a whole. */
#ifndef BRIG_TEST_DIGEST_H
#define BRIG_TEST_DIGEST_H

#include "../../../common/sha256.h"

static inline void digest_of(const void *data, size_t size, uint8_t digest[32]) {
    struct sha256 hash;
    sha256_begin(&hash);
    sha256_add(&hash, data, size);
    sha256_end(&hash, digest);
}

#endif
