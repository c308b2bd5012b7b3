import type { OptionNames } from "../known-options.js";
import type {
  ApplyOptions,
  CloseOptions,
  DiffOptions,
  ForkOptions,
  ForkPathOptions,
  SnapshotOptions,
} from "./changes/workspace-change.js";
import type { RestorePointOptions } from "./points/restore-point.js";
import type { ConnectOptions, SandboxOptions } from "./sandbox-options.js";
import type {
  ExecOptions,
  ForwardOptions,
  ListOptions,
  PathOptions,
  ReadOptions,
  SpawnOptions,
} from "./sandbox-types.js";

/** The options of `Sandbox.connect`. */
export const connectOptionNames: OptionNames<ConnectOptions> = { signal: true };

/** The options of `Sandbox.create`. */
export const sandboxOptionNames: OptionNames<SandboxOptions> = {
  workspace: true,
  workspaceKind: true,
  mode: true,
  git: true,
  from: true,
  at: true,
  policyFile: true,
  protectsLike: true,
  unprotected: true,
  user: true,
  image: true,
  dockerfile: true,
  gpus: true,
  runtime: true,
  limits: true,
  network: true,
  egressProxy: true,
  egress: true,
  addDirs: true,
  writableRoots: true,
  leaseSeconds: true,
  keep: true,
  env: true,
  docker: true,
  engine: true,
  signal: true,
  maxStartsAtOnce: true,
  onProgress: true,
  onWarning: true,
  onLateOutput: true,
  onEgress: true,
};

/** The right names for those that callers may know from other sandboxes or the command line. */
export const sandboxOptionsMeant = {
  sandbox: "mode",
  sandboxMode: "mode",
  cwd: "workspace",
  policy: "policyFile",
  memoryMb: "limits",
  memory: "limits",
  cpus: "limits",
  pids: "limits",
};

export const execOptionNames: OptionNames<ExecOptions> = {
  cwd: true,
  env: true,
  timeoutMs: true,
  stdin: true,
  signal: true,
  onStdout: true,
  onStderr: true,
  maxOutputBytes: true,
  endsTree: true,
  callId: true,
  encoding: true,
};

export const forwardOptionNames: OptionNames<ForwardOptions> = {
  hostPort: true,
  waitForServerMs: true,
};

export const spawnOptionNames: OptionNames<SpawnOptions> = {
  cwd: true,
  env: true,
  timeoutMs: true,
  signal: true,
  pty: true,
  stdin: true,
  mergeOutput: true,
  endsTree: true,
  callId: true,
};

export const diffOptionNames: OptionNames<DiffOptions> = {
  paths: true,
  patches: true,
  maxFileBytes: true,
  maxPatchBytes: true,
  onChange: true,
  signal: true,
};

export const applyOptionNames: OptionNames<ApplyOptions> = {
  paths: true,
  dryRun: true,
  signal: true,
  onCopied: true,
};
export const forkOptionNames: OptionNames<ForkOptions> = {
  signal: true,
  onProgress: true,
  onCopied: true,
};
export const closeOptionNames: OptionNames<CloseOptions> = { onCopied: true };
export const forkPathOptionNames: OptionNames<ForkPathOptions> = { paths: true, signal: true };
export const restorePointOptionNames: OptionNames<RestorePointOptions> = { signal: true, onCopied: true };
export const snapshotOptionNames: OptionNames<SnapshotOptions> = {
  id: true,
  maxBytes: true,
  signal: true,
  onCopied: true,
};

const pathOptionNames: OptionNames<PathOptions> = { refuseSymlinks: true, signal: true };
const readOptionNames: OptionNames<ReadOptions> = {
  ...pathOptionNames,
  offsetBytes: true,
  lengthBytes: true,
  maxBytes: true,
};
const listOptionNames: OptionNames<ListOptions> = { onEntries: true, signal: true };

/** The options of each method of `sandbox.files`. */
export const fileOptionNames = {
  read: readOptionNames,
  readStream: { ...pathOptionNames, offsetBytes: true, lengthBytes: true },
  readPastHole: { offsetBytes: true, lengthBytes: true, signal: true },
  write: { ...pathOptionNames, mode: true },
  writeStream: { ...pathOptionNames, mode: true },
  writeEach: pathOptionNames,
  stat: { ...pathOptionNames, followSymlinks: true },
  list: listOptionNames,
  mkdir: { ...pathOptionNames, recursive: true, mode: true },
  rename: pathOptionNames,
  remove: { ...pathOptionNames, recursive: true, force: true },
  watch: { recursive: true, signal: true },
} as const;
