/* The frame format and the requests it carries: pure parsing, no system calls, so that it can be fuzzed. */
#ifndef BRIG_WIRE_H
#define BRIG_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol.h"

struct frame {
    uint8_t type;
    uint8_t flags;
    uint32_t channel;
    const uint8_t *payload;
    uint32_t length;
};

enum parse_result { PARSE_MORE, PARSE_FRAME, PARSE_BAD };

/* Takes one frame from the front of `data`; on PARSE_FRAME `*used` is its size including the header. */
enum parse_result frame_parse(const uint8_t *data, size_t size, size_t max_payload, struct frame *out, size_t *used);
void frame_header(uint8_t *out, uint8_t type, uint32_t channel, uint32_t length);

/* Frames of the session itself are not counted, acknowledged or sent again. */
bool frame_is_counted(uint8_t type);

struct spawn_request {
    uint8_t flags;
    uint16_t rows, cols;
    uint32_t timeout_ms, grace_ms;
    uint32_t argc, envc;
    const uint8_t *args; /* cwd, argv and env as they came, every length checked by spawn_parse */
};

/* True only if every length fits, no string holds a NUL, argv is not empty and nothing is left over. */
bool spawn_parse(const uint8_t *data, size_t size, struct spawn_request *out);

/* Copies argv, env and cwd into `store` (the request's size is always enough: each length prefix makes room for a terminator) as C strings and fills the NULL-ended vectors. */
void spawn_strings(const struct spawn_request *request, char *store, char **argv, char **envp, char **cwd);

struct file_request {
    uint8_t operation, flags;
    uint32_t mode;
    uint64_t offset, length;
    const uint8_t *path, *second;
    uint32_t path_length, second_length;
};

/* The second string of an inline write or a sequence is data, and may hold anything. */
bool file_parse(const uint8_t *data, size_t size, struct file_request *out);

/* Whether the operation has a stream of its own to the host, or from it. */
bool file_has_output(const struct file_request *request);
bool file_has_input(const struct file_request *request);

/* Takes the next request of a sequence from its data; false at the end, or where it is none that may be in one. */
bool sequence_next(const uint8_t **at, const uint8_t *end, struct file_request *out);

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
