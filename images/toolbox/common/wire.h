/* Frames and the requests in them, parsed and written. There is no system call in here, so that it can be fuzzed. */
#ifndef BRIG_WIRE_H
#define BRIG_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol.h"

struct frame {
    uint8_t type;
    uint32_t channel;
    const uint8_t *payload;
    uint32_t length;
};

enum parse_result { PARSE_MORE, PARSE_FRAME, PARSE_BAD };

/* Parses the frame at the front of `data`. With PARSE_FRAME `*used` is its size including the header. */
enum parse_result frame_parse(const uint8_t *data, size_t size, size_t max_payload, struct frame *out, size_t *used);
void frame_header(uint8_t *out, uint8_t type, uint32_t channel, uint32_t length);

/* Frames of the session itself are not counted, so they are neither acknowledged nor sent again. */
bool frame_is_counted(uint8_t type);

/* Takes what comes behind its length from the front of what is left. False if it is not all there. */
bool take_bytes(const uint8_t **at, const uint8_t *end, const uint8_t **bytes, uint32_t *length);

struct spawn_request {
    uint8_t flags;
    uint16_t rows, cols;
    uint32_t timeout_ms, grace_ms;
    uint32_t argc, envc;
    const uint8_t *args; /* cwd, argv and env as they came; spawn_parse has checked every length */
};

/* True if every length fits, no string contains NUL, argv is not empty and nothing is left over. */
bool spawn_parse(const uint8_t *data, size_t size, struct spawn_request *out);

/*
 * Copies argv, env and cwd as C strings into `store` and fills the vectors, which end with NULL. `store` needs the size of the
 * request: a terminator takes less room than the length prefix it replaces.
 */
void spawn_strings(const struct spawn_request *request, char *store, char **argv, char **envp, char **cwd);

/* The part of a FILE that PID 1 reads. The program that carries it out reads the rest. */
struct file_head {
    uint8_t operation, flags;
};

/* False for an operation that there is not. */
bool file_head_parse(const uint8_t *data, size_t size, struct file_head *out);

/* Whether the operation has a stream to the host, or one from it. */
bool file_has_output(const struct file_head *head);
bool file_has_input(const struct file_head *head);

struct hello {
    uint32_t version;
    const uint8_t *token;
    uint64_t received;
};

bool hello_parse(const uint8_t *data, size_t size, struct hello *out);

uint16_t get16(const uint8_t *p);
uint32_t get32(const uint8_t *p);
uint64_t get64(const uint8_t *p);
void put16(uint8_t *p, uint16_t v);
void put32(uint8_t *p, uint32_t v);
void put64(uint8_t *p, uint64_t v);

#endif
