#ifndef BRIG_SERVE_H
#define BRIG_SERVE_H

#include <stdint.h>

/* PID 1. Returns the process's exit status: 0 when the lease ran out or the engine asked for the end. */
int serve(const uint8_t token_hash[32], uint64_t lease_ms);

#endif
