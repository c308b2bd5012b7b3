/**
 * The numbers of the runner's protocol, version 1; images/toolbox/runner/PROTOCOL.md explains them. The
 * runner has the same numbers under the same names in images/toolbox/common/protocol.h, and a unit test
 * compares the two files.
 */
export const PROTOCOL_VERSION = 1;

export const HEADER_BYTES = 12;
export const MAX_PAYLOAD_TO_RUNNER = 4 * 1024 * 1024;
/** The most the runner may put in one frame towards the host. */
export const MAX_PAYLOAD_FROM_RUNNER = 64 * 1024;
export const INITIAL_CREDIT = 256 * 1024;
/** Each side acknowledges what it has received after this many frames or bytes, or earlier. */
export const ACK_EVERY_FRAMES = 64;
export const ACK_EVERY_BYTES = 128 * 1024;

export const FrameType = {
  hello: 0x01,
  ack: 0x02,
  ping: 0x03,
  end: 0x04,
  spawn: 0x10,
  input: 0x11,
  signal: 0x12,
  resize: 0x13,
  kill: 0x14,
  credit: 0x15,
  file: 0x20,
  listen: 0x21,
  accept: 0x22,
  connect: 0x23,
  datagram: 0x24,
  welcome: 0x81,
  ackFromRunner: 0x82,
  pong: 0x83,
  stdout: 0x90,
  stderr: 0x91,
  exit: 0x92,
  late: 0x93,
  creditFromRunner: 0x95,
  bound: 0xa1,
  connected: 0xa2,
  datagramFromRunner: 0xa4,
} as const;

/** The exit status of the runner when its lease is over. */
export const LEASE_OVER_STATUS = 70;

/** The runner's exit statuses when commands have taken too much of the machine that counts for no container. The limits follow. */
export const ExcessStatus = { locks: 71, unread: 72, orphans: 73, sockets: 74 } as const;

export const MOST_LOCKS = 40_000;
export const MOST_UNREAD_BYTES = 32 * 1024 * 1024;
export const MOST_ORPHANS = 2048;
export const MOST_SOCKET_BYTES = 256 * 1024 * 1024;

export const TOKEN_BYTES = 32;
export const HELLO_BYTES = 44;
export const WELCOME_BYTES = 20;

export const SPAWN_HEAD_BYTES = 16;

export const SpawnFlag = { pty: 1, noStdin: 2, merge: 4, endsTree: 8 } as const;

export const EXIT_HEAD_BYTES = 44;

export const ExitKind = { exited: 0, signalled: 1, "not-started": 2, lost: 3, file: 4, socket: 5 } as const;

export const ExitFlag = {
  timedOut: 1,
  killed: 2,
  outOfMemory: 4,
  pipeHeld: 8,
  treeLeft: 16,
  treeEnded: 32,
  leftoversEnded: 64,
} as const;

/** Behind the head of a failed command's EXIT: what is known of why it failed. */
export const CAUSE_HEAD_BYTES = 14;

export const CauseKind = { memory: 1, processes: 2, fullMemory: 3, fullDisk: 4, cpu: 5 } as const;

export const CauseFlag = { outside: 1, files: 2, before: 4 } as const;

/** The step that failed when a command could not be started. */
export const Stage = { none: 0, fork: 1, cwd: 2, exec: 3, streams: 4, request: 5 } as const;

export const FILE_HEAD_BYTES = 24;
/** The most data inside a request or its EXIT frame; more data is streamed in frames of its own. */
export const INLINE_BYTES = 60 * 1024;
/** Reported in place of an errno for a file that is not regular: this plus its `EntryType`. */
export const NOT_REGULAR = 4096;

export const FileOperation = {
  read: 1,
  write: 2,
  stat: 3,
  list: 4,
  mkdir: 5,
  rename: 6,
  remove: 7,
  report: 8,
  sequence: 9,
  receipt: 10,
  changes: 11,
  commit: 12,
  recover: 13,
  copy: 14,
  owners: 15,
  waits: 16,
} as const;

export const EntryType = {
  unknown: 0,
  file: 1,
  directory: 2,
  symlink: 3,
  fifo: 4,
  socket: 5,
  "char-device": 6,
  "block-device": 7,
} as const;

/** Flags for operations 1 to 7, except list. */
export const PathFlag = { withoutLinks: 128 } as const;
export const ReadFlag = { allOrNone: 1, inline: 2, skipHole: 4, extents: 8 } as const;
export const WriteFlag = { new: 1, inline: 2, extents: 4 } as const;
export const StatFlag = { linkItself: 1 } as const;
export const ListFlag = { inline: 1 } as const;
export const MkdirFlag = { parents: 1 } as const;
export const RemoveFlag = { recursive: 1, missingIsFine: 2 } as const;

export const READ_RESULT_BYTES = 16;
export const EXTENT_HEAD_BYTES = 12;
export const EXTENT_BYTES_MAX = 64 * 1024;
export const STAT_RECORD_BYTES = 52;
export const LIST_ENTRY_HEAD_BYTES = 4;
export const SEQUENCE_RESULT_BYTES = 4;
export const REPORT_SECTION_HEAD_BYTES = 6;

export const RECEIPT_RECORD_BYTES = 56;
export const RECEIPT_DIGEST_AT = 24;
export const RECEIPT_RECORDS_MAX = 500;
export const RECEIPT_RESULT_BYTES = 16;
export const RECEIPT_COUNT_BYTES = 8;
export const RECEIPT_RULES_MAX = 480;

export const ReceiptFlag = { strips: 1 } as const;

export const ReceiptReason = {
  runs: 1,
  setid: 2,
  device: 4,
  capabilities: 8,
  foreign: 16,
  repository: 32,
  stripped: 64,
  hashed: 128,
} as const;

export const ReceiptEnd = { finished: 0, noTime: 1, closed: 2, noStream: 3 } as const;

export const CHANGES_RECORD_BYTES = 128;
export const CHANGES_RESULT_BYTES = 64;

export const ChangesFlag = { countBelow: 1, listSame: 2 } as const;

export const ChangeKind = { added: 1, modified: 2, deleted: 3, same: 4 } as const;

export const COMMIT_KEY_BYTES = 32;
export const COMMIT_RECORD_BYTES = 72;
export const COMMIT_RESULT_BYTES = 16;
export const COMMIT_CONFLICT_BYTES = 8;
/** Conflicts beyond this number are only counted. */
export const COMMIT_CONFLICTS_MAX = 7000;

export const CommitAction = { put: 1, mkdir: 2, symlink: 3, remove: 4, check: 5 } as const;
export const ExpectKind = { any: 0, absent: 1, state: 2, older: 3 } as const;

export const ConflictReason = {
  exists: 1,
  missing: 2,
  type: 3,
  changed: 4,
  parent: 5,
  mount: 6,
  reserved: 7,
} as const;

export const CommitFlag = { stageLeft: 1, torn: 2 } as const;

export const COPY_STATE_BYTES = 32;
export const COPY_RESULT_BYTES = 16;

export const CopyOutcome = { done: 1, leftOut: 2 } as const;

/** Connections and datagrams on the sandbox's loopback interface. */
export const ADDRESS_BYTES = 20;
export const LISTEN_BYTES = 24;
export const CONNECTED_BYTES = 40;

export const ListenKind = { stream: 1, datagrams: 2 } as const;
export const AddressFamily = { ipv4: 4, ipv6: 6 } as const;

export const OWNER_QUERY_BYTES = 40;
export const OWNER_RECORD_BYTES = 24;
export const OWNERS_MAX = 1000;

export const WAIT_RECORD_BYTES = 12;
export const WAITS_MAX = 5000;
