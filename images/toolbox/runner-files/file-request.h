/* The requests for file operations, parsed. There is no system call in here, so that it can be fuzzed. */
#ifndef BRIG_FILE_REQUEST_H
#define BRIG_FILE_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "file-protocol.h"
#include "wire.h"

struct file_request {
    uint8_t operation, flags;
    uint32_t mode;
    uint64_t offset, length;
    const uint8_t *path, *second;
    uint32_t path_length, second_length;
};

/*
 * False if something does not fit, is left over, or is nothing that the operation takes. The second string of an inline write, a sequence,
 * and of every operation from `changes` on is data, which may contain NUL.
 */
bool file_parse(const uint8_t *data, size_t size, struct file_request *out);

/* Parses the next request of a sequence. False at the end, or when a sequence may not contain the request. */
bool sequence_next(const uint8_t **at, const uint8_t *end, struct file_request *out);

#endif
