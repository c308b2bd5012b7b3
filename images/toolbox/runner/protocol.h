/*
 * The numbers on which the runner and its host agree; PROTOCOL.md explains them. src/sandbox/channel/protocol.ts has the same
 * numbers under the same names, and a unit test compares the two files, so a number is changed or added in both.
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
/* Added to the type of a file that is refused because it is not a regular one. It is larger than any errno. */
#define NOT_REGULAR 4096u

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

enum entry_type {
    ENTRY_UNKNOWN = 0,
    ENTRY_FILE = 1,
    ENTRY_DIRECTORY = 2,
    ENTRY_SYMLINK = 3,
    ENTRY_FIFO = 4,
    ENTRY_SOCKET = 5,
    ENTRY_CHAR_DEVICE = 6,
    ENTRY_BLOCK_DEVICE = 7,
};

/* Operations 1 to 7 take this flag, except list. */
enum path_flag {
    PATH_WITHOUT_LINKS = 128,
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

enum stat_flag {
    STAT_LINK_ITSELF = 1,
};

enum list_flag {
    LIST_INLINE = 1,
};

enum mkdir_flag {
    MKDIR_PARENTS = 1,
};

enum remove_flag {
    REMOVE_RECURSIVE = 1,
    REMOVE_MISSING_IS_FINE = 2,
};

#define READ_RESULT_BYTES 16u
/* Files with their holes, as extents: a head and as many bytes as it says. A head without bytes is the end, at the size of the file. */
#define EXTENT_HEAD_BYTES 12u
#define EXTENT_BYTES_MAX (64u << 10)
#define STAT_RECORD_BYTES 52u
#define LIST_ENTRY_HEAD_BYTES 4u
#define SEQUENCE_RESULT_BYTES 4u
#define REPORT_SECTION_HEAD_BYTES 6u

/* The receipt */
#define RECEIPT_RECORD_BYTES 56u
#define RECEIPT_DIGEST_AT 24u
#define RECEIPT_RECORDS_MAX 500u
#define RECEIPT_RESULT_BYTES 16u
#define RECEIPT_COUNT_BYTES 8u
#define RECEIPT_RULES_MAX 480u

enum receipt_flag {
    RECEIPT_STRIPS = 1,
};

enum receipt_reason {
    RECEIPT_RUNS = 1,
    RECEIPT_SETID = 2,
    RECEIPT_DEVICE = 4,
    RECEIPT_CAPABILITIES = 8,
    RECEIPT_FOREIGN = 16,
    RECEIPT_REPOSITORY = 32,
    RECEIPT_STRIPPED = 64,
    RECEIPT_HASHED = 128,
};

enum receipt_end {
    RECEIPT_FINISHED = 0,
    RECEIPT_NO_TIME = 1,
    RECEIPT_CLOSED = 2,
    RECEIPT_NO_STREAM = 3,
};

/* Changes of a tree */
#define CHANGES_RECORD_BYTES 128u
#define CHANGES_RESULT_BYTES 64u

enum changes_flag {
    CHANGES_COUNT_BELOW = 1,
    CHANGES_LIST_SAME = 2,
};

enum change_kind {
    CHANGE_ADDED = 1,
    CHANGE_MODIFIED = 2,
    CHANGE_DELETED = 3,
    CHANGE_SAME = 4,
};

/* Commits */
#define COMMIT_KEY_BYTES 32u
#define COMMIT_RECORD_BYTES 72u
#define COMMIT_RESULT_BYTES 16u
#define COMMIT_CONFLICT_BYTES 8u
/* Conflicts beyond this number are only counted. */
#define COMMIT_CONFLICTS_MAX 7000u

enum commit_action {
    COMMIT_PUT = 1,
    COMMIT_MKDIR = 2,
    COMMIT_SYMLINK = 3,
    COMMIT_REMOVE = 4,
    COMMIT_CHECK = 5,
};

enum expect_kind {
    EXPECT_ANY = 0,
    EXPECT_ABSENT = 1,
    EXPECT_STATE = 2,
    EXPECT_OLDER = 3,
};

enum conflict_reason {
    CONFLICT_EXISTS = 1,
    CONFLICT_MISSING = 2,
    CONFLICT_TYPE = 3,
    CONFLICT_CHANGED = 4,
    CONFLICT_PARENT = 5,
    CONFLICT_MOUNT = 6,
    CONFLICT_RESERVED = 7,
};

enum commit_flag {
    COMMIT_STAGE_LEFT = 1,
    COMMIT_TORN = 2,
};

/* Copies from another tree */
#define COPY_STATE_BYTES 32u
#define COPY_RESULT_BYTES 16u

enum copy_outcome {
    COPY_DONE = 1,
    COPY_LEFT_OUT = 2,
};

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

/* The process that has a connection */
#define OWNER_QUERY_BYTES 40u
#define OWNER_RECORD_BYTES 24u
#define OWNERS_MAX 1000u

/* The times that threads have waited for a processor */
#define WAIT_RECORD_BYTES 12u
#define WAITS_MAX 5000u

#endif
