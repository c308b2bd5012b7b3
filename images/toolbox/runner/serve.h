#ifndef BRIG_SERVE_H
#define BRIG_SERVE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * PID 1. With `has_stream` its standard input and output are the first connection of a host, which was attached before the start.
 * Returns the process's exit status: 0 when the lease ran out or the engine asked for the end.
 */
int serve(const uint8_t token_hash[32], uint64_t lease_ms, bool has_stream);

#endif
