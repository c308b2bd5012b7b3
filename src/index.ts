// The package's main entry: sandboxes, and every function of the sub-paths. Each type has one place: what concerns sandboxes is here, the rest is in
// the sub-path of its subject. A type that is missing in all of them only occurs within others, such as `Receipt["findings"]`.
import { provideConnect } from "./sandbox/index.js";

export {
  bearerKey,
  createModelClient,
  createScriptedClient,
  loadScript,
  noCredentials,
  openConversation,
  openSessionFile,
  runAgent,
} from "./agent/index.js";
export { runBatch } from "./batch/index.js";
export type { ErrorCode, GoneReason } from "./errors.js";
export { BrigError, isBrigError } from "./errors.js";
export type {
  AcquireOptions,
  ApplyOptions,
  ApplyResult,
  CallCause,
  CommandOptions,
  CommandResult,
  ConnectedSandbox,
  ConnectOptions,
  CopiedChanges,
  DiffOptions,
  DirectoryEntry,
  DockerClient,
  EgressAttempt,
  EgressListener,
  EgressSettings,
  EngineConnection,
  ExecOptions,
  ExecResult,
  ExitStatus,
  FileStat,
  FileType,
  FileWatch,
  FileWrite,
  ForkApplied,
  ForkDiff,
  ForkOptions,
  ForkPathOptions,
  ForwardedPort,
  ForwardOptions,
  GitAccess,
  ListOptions,
  PathOptions,
  PoolOptions,
  PortableAccount,
  PortableFiles,
  PortableProcess,
  PortableProof,
  PortableReceipt,
  PortableSandbox,
  PortableSpawnOptions,
  PortableStat,
  PortableWorkspace,
  Proof,
  PtySize,
  ReadOptions,
  Receipt,
  RestorePoint,
  RestorePointOptions,
  SandboxFiles,
  SandboxLimits,
  SandboxMode,
  SandboxOptions,
  SandboxPool,
  SandboxProcess,
  Snapshot,
  SnapshotOptions,
  SpawnOptions,
  UndoneCall,
  WatchEgressOptions,
  WatchedChange,
  WorkspaceChange,
  WorkspaceDiff,
  WorkspaceKind,
} from "./sandbox/index.js";
export { createPool, Sandbox } from "./sandbox/index.js";
export { BrigClient } from "./services/index.js";
export { createToolRegistry } from "./tools/index.js";

// What reaches lasting sandboxes is built on sandboxes, so these are told of it here; it is loaded when it is first used.
provideConnect(async (...call) => await (await import("./services/index.js")).connectSandbox(...call));
