/* The frame format and the requests it carries: pure parsing, no system calls, so that it can be fuzzed. */
#ifndef BRIG_WIRE_H
#define BRIG_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROTOCOL_VERSION 1u
#define HEADER_SIZE 12u
#define MAX_PAYLOAD_IN (4u << 20)
#define MAX_PAYLOAD_OUT (64u << 10)
#define TOKEN_SIZE 32u
#define INITIAL_CREDIT (256u << 10)
/* So much of a file may come back in EXIT itself, which then still fits a frame. */
#define INLINE_MAX (60u << 10)

enum frame_type {
    F_HELLO = 0x01,
    F_ACK = 0x02,
    F_PING = 0x03,
    F_END = 0x04,
    F_SPAWN = 0x10,
    F_INPUT = 0x11,
    F_SIGNAL = 0x12,
    F_RESIZE = 0x13,
    F_KILL = 0x14,
    F_CREDIT = 0x15,
    F_FILE = 0x20,
    F_WELCOME = 0x81,
    F_ACK_OUT = 0x82,
    F_PONG = 0x83,
    F_STDOUT = 0x90,
    F_STDERR = 0x91,
    F_EXIT = 0x92,
    F_LATE = 0x93,
    F_CREDIT_OUT = 0x95,
};

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

enum spawn_flags { SPAWN_PTY = 1, SPAWN_NO_STDIN = 2, SPAWN_MERGE = 4, SPAWN_ENDS_TREE = 8 };

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

enum file_operation {
    FILE_READ = 1,
    FILE_WRITE,
    FILE_STAT,
    FILE_LIST,
    FILE_MKDIR,
    FILE_RENAME,
    FILE_REMOVE,
    FILE_REPORT,
    FILE_SEQUENCE,
    FILE_RECEIPT,
};

enum read_flags { READ_ALL_OR_NONE = 1, READ_INLINE = 2, READ_SKIP_HOLE = 4 };
enum list_flags { LIST_INLINE = 1 };
enum write_flags { WRITE_NEW = 1, WRITE_INLINE = 2 };
/* Of every operation on a path but list. */
enum path_flags { PATH_WITHOUT_LINKS = 128 };

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
