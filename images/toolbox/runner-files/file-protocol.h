/* The numbers of file operations that PID 1 passes on without reading them: the flags of some, and what they answer. */
#ifndef BRIG_FILE_PROTOCOL_H
#define BRIG_FILE_PROTOCOL_H

#include "protocol.h"

/* Added to the type of a file that is refused because it is not a regular one. It is larger than any errno. */
#define NOT_REGULAR 4096u

/* Operations 1 to 7 take this flag, except list. */
enum path_flag {
    PATH_WITHOUT_LINKS = 128,
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

/* Files with their holes, as extents: a head and as many bytes as it says. A head without bytes is the end, at the size of the file. */
#define EXTENT_HEAD_BYTES 12u
#define EXTENT_BYTES_MAX (64u << 10)
#define STAT_RECORD_BYTES 52u
#define LIST_ENTRY_HEAD_BYTES 4u
#define SEQUENCE_RESULT_BYTES 4u
#define REPORT_SECTION_HEAD_BYTES 6u

enum stat_flag {
    STAT_LINK_ITSELF = 1,
};

enum mkdir_flag {
    MKDIR_PARENTS = 1,
};

enum remove_flag {
    REMOVE_RECURSIVE = 1,
    REMOVE_MISSING_IS_FINE = 2,
};

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

/* The process that has a connection */
#define OWNER_QUERY_BYTES 40u
#define OWNER_RECORD_BYTES 24u
#define OWNERS_MAX 1000u

/* The times that threads have waited for a processor */
#define WAIT_RECORD_BYTES 12u
#define WAITS_MAX 5000u

#endif
