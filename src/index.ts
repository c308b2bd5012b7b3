// The package's main entry: sandboxes, and every function of the sub-paths. Each type has one place: what concerns sandboxes is here, the rest is in
// the sub-path of its subject. A type that is missing in all of them only occurs within others, such as `Receipt["findings"]`.
export { bearerKey, createModelClient, createScriptedClient, loadScript, noCredentials, openConversation, openSessionFile, runAgent } from "./agent/index.js";
export { runBatch } from "./batch/index.js";
export type { AcquireOptions, ApplyOptions, ApplyResult, CallCause, CommandOptions, CommandResult, DiffOptions, DirectoryEntry, EgressAttempt, EgressListener, EgressSettings, EngineConnection, ExecOptions, ExecResult, ExitStatus, FileStat, FileType, FileWrite, ForkApplied, ForkDiff, ForkOptions, ForkPathOptions, ForwardedPort, ForwardOptions, GitAccess, ListOptions, PathOptions, PoolOptions, PortableFiles, PortableSandbox, Proof, PtySize, ReadOptions, Receipt, RestorePoint, RestorePointOptions, SandboxFiles, SandboxLimits, SandboxMode, SandboxOptions, SandboxPool, SandboxProcess, Snapshot, SnapshotOptions, SpawnOptions, UndoneCall, WatchEgressOptions, WorkspaceChange, WorkspaceDiff, WorkspaceKind } from "./sandbox/index.js";
export { createPool, Sandbox } from "./sandbox/index.js";
export { BrigClient } from "./services/index.js";
export { createToolRegistry } from "./tools/index.js";
export type { ErrorCode, GoneReason } from "./errors.js";
export { BrigError, isBrigError } from "./errors.js";
