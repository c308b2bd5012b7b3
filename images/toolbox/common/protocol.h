/*
 * The numbers on which the runner and its host agree; PROTOCOL.md explains them. src/sandbox/channel/protocol.ts has the same
 * numbers under the same names, and a unit test compares the two files, so a number is changed or added in both. What only file operations
 * know is in file-protocol.h.
 */
#ifndef BRIG_PROTOCOL_H
#define BRIG_PROTOCOL_H

#define PROTOCOL_VERSION 1u

/* Frames */
#define HEADER_BYTES 12u
#define MAX_PAYLOAD_TO_RUNNER (4u << 20)
#define MAX_PAYLOAD_FROM_RUNNER (64u << 10)
#define INITIAL_CREDIT (256u << 10)
/* Each side acknowledges what it has received after this much, if not earlier. */
#define ACK_EVERY_FRAMES 64u
#define ACK_EVERY_BYTES (128u << 10)

enum frame_type {
    FRAME_HELLO = 0x01,
    FRAME_ACK = 0x02,
    FRAME_PING = 0x03,
    FRAME_END = 0x04,
    FRAME_SPAWN = 0x10,
    FRAME_INPUT = 0x11,
    FRAME_SIGNAL = 0x12,
    FRAME_RESIZE = 0x13,
    FRAME_KILL = 0x14,
    FRAME_CREDIT = 0x15,
    FRAME_FILE = 0x20,
    FRAME_LISTEN = 0x21,
    FRAME_ACCEPT = 0x22,
    FRAME_CONNECT = 0x23,
    FRAME_DATAGRAM = 0x24,
    FRAME_WELCOME = 0x81,
    FRAME_ACK_FROM_RUNNER = 0x82,
    FRAME_PONG = 0x83,
    FRAME_STDOUT = 0x90,
    FRAME_STDERR = 0x91,
    FRAME_EXIT = 0x92,
    FRAME_LATE = 0x93,
    FRAME_CREDIT_FROM_RUNNER = 0x95,
    FRAME_BOUND = 0xa1,
    FRAME_CONNECTED = 0xa2,
    FRAME_DATAGRAM_FROM_RUNNER = 0xa4,
};

/* The exit status of the runner when its lease is over. */
#define LEASE_OVER_STATUS 70

/* Its exit status when commands have taken too much of a resource that the machine counts for no container, and the limits. */
enum excess_status {
    EXCESS_LOCKS = 71,
    EXCESS_UNREAD = 72,
    EXCESS_ORPHANS = 73,
    EXCESS_SOCKETS = 74,
};

#define MOST_LOCKS 40000u
#define MOST_UNREAD_BYTES (32u << 20)
#define MOST_ORPHANS 2048u
#define MOST_SOCKET_BYTES (256u << 20)

#define TOKEN_BYTES 32u
#define HELLO_BYTES 44u
#define WELCOME_BYTES 20u

/* SPAWN */
#define SPAWN_HEAD_BYTES 16u

enum spawn_flag {
    SPAWN_PTY = 1,
    SPAWN_NO_STDIN = 2,
    SPAWN_MERGE = 4,
    SPAWN_ENDS_TREE = 8,
};

/* EXIT */
#define EXIT_HEAD_BYTES 44u

enum exit_kind {
    EXIT_EXITED = 0,
    EXIT_SIGNALLED = 1,
    EXIT_NOT_STARTED = 2,
    EXIT_LOST = 3,
    EXIT_FILE = 4,
    EXIT_SOCKET = 5,
};

enum exit_flag {
    EXIT_TIMED_OUT = 1,
    EXIT_KILLED = 2,
    EXIT_OUT_OF_MEMORY = 4,
    EXIT_PIPE_HELD = 8,
    EXIT_TREE_LEFT = 16,
    EXIT_TREE_ENDED = 32,
    EXIT_LEFTOVERS_ENDED = 64,
};

/* The known causes of a failed command, behind the head of its EXIT. */
#define CAUSE_HEAD_BYTES 14u

enum cause_kind { CAUSE_MEMORY = 1, CAUSE_PROCESSES = 2, CAUSE_FULL_MEMORY = 3, CAUSE_FULL_DISK = 4, CAUSE_CPU = 5 };

enum cause_flag { CAUSE_OUTSIDE = 1, CAUSE_FILES = 2, CAUSE_BEFORE = 4 };

/* The step that failed when a command could not be started. */
enum stage {
    STAGE_NONE = 0,
    STAGE_FORK = 1,
    STAGE_CWD = 2,
    STAGE_EXEC = 3,
    STAGE_STREAMS = 4,
    STAGE_REQUEST = 5,
};

/* FILE */
#define FILE_HEAD_BYTES 24u
/* The most data that may travel inside a request or inside its EXIT, which must still fit into one frame. */
#define INLINE_BYTES (60u << 10)

enum file_operation {
    FILE_READ = 1,
    FILE_WRITE = 2,
    FILE_STAT = 3,
    FILE_LIST = 4,
    FILE_MKDIR = 5,
    FILE_RENAME = 6,
    FILE_REMOVE = 7,
    FILE_REPORT = 8,
    FILE_SEQUENCE = 9,
    FILE_RECEIPT = 10,
    FILE_CHANGES = 11,
    FILE_COMMIT = 12,
    FILE_RECOVER = 13,
    FILE_COPY = 14,
    FILE_OWNERS = 15,
    FILE_WAITS = 16,
};

enum read_flag {
    READ_ALL_OR_NONE = 1,
    READ_INLINE = 2,
    READ_SKIP_HOLE = 4,
    READ_EXTENTS = 8,
};

enum write_flag {
    WRITE_NEW = 1,
    WRITE_INLINE = 2,
    WRITE_EXTENTS = 4,
};

enum list_flag {
    LIST_INLINE = 1,
};

#define READ_RESULT_BYTES 16u
/* Connections and datagrams on the sandbox's loopback interface */
#define ADDRESS_BYTES 20u
#define LISTEN_BYTES 24u
#define CONNECTED_BYTES 40u

enum listen_kind {
    LISTEN_STREAM = 1,
    LISTEN_DATAGRAMS = 2,
};

enum address_family {
    ADDRESS_IPV4 = 4,
    ADDRESS_IPV6 = 6,
};

#endif
