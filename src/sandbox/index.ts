// The door of the sandbox: containers and the stream to the runner in them, the engine's API, images, policies, the ways out to the network, and the
// outputs of commands. Other parts import from here only.

export type { AttackedPolicy } from "./attack/attack.js";
export { attack } from "./attack/attack.js";
export { attemptGroups } from "./attack/attempts.js";
export type { Judgement, Verdict } from "./attack/judge.js";
export { removeLeftQuarantines } from "./branch/arrival.js";
export type { CopiedChanges, OnCopied } from "./changes/copied-changes.js";
export type { PatchSide } from "./changes/patch.js";
export { isRefusedByGit, unifiedText } from "./changes/patch.js";
export { undoKilledApplies } from "./changes/sandbox-changes.js";
export type {
  ApplyOptions,
  ApplyResult,
  CloseOptions,
  DiffOptions,
  ForkApplied,
  ForkDiff,
  ForkOptions,
  ForkPathOptions,
  PathReason,
  Snapshot,
  SnapshotOptions,
  WorkspaceChange,
  WorkspaceDiff,
} from "./changes/workspace-change.js";
export { INITIAL_CREDIT } from "./channel/protocol.js";
export { connectAndOpen } from "./connect-and-open.js";
export { provideConnect } from "./create-sandbox.js";
export { diagnoseOverlay, diagnoseRuntimes } from "./diagnose-runtimes.js";
export type { PulledBytes } from "./docker/calls/pull-bytes.js";
export type { ReceivedEntry, TarEntry } from "./docker/calls/tar.js";
export { readTar, streamTar, tarBytes } from "./docker/calls/tar.js";
export { connectEngine } from "./docker/connect.js";
export type { Check } from "./docker/diagnosis/check.js";
export { check } from "./docker/diagnosis/check.js";
export { diagnose } from "./docker/diagnosis/diagnose.js";
export { FULL_DISK_BYTES } from "./docker/disk/full-disk.js";
export { freeSpace, isThisMachine, readMeminfo } from "./docker/disk/this-machine.js";
export type { DockerClient } from "./docker/dockerode.js";
export { isDefiniteFailure } from "./docker/engine-failure.js";
export { probeEngine } from "./docker/engine-probe.js";
export type {
  ContainerBody,
  ContainerChange,
  ContainerState,
  Engine,
  EngineConnection,
  ImageSummary,
  PullProgress,
} from "./docker/engine-types.js";
export { memoryLabel } from "./docker/podman/memory-volumes.js";
export type { AskAboutHost, AskedHost, EgressAttempt, HostAnswer } from "./egress/attempt.js";
export { ownAddresses } from "./egress/dial.js";
export { join } from "./egress/join.js";
export type { EgressEntry } from "./egress/log/egress-entry.js";
export { EgressLog, mergedEntries } from "./egress/log/egress-log.js";
export type { Proposal } from "./egress/log/propose-hosts.js";
export { proposeHosts } from "./egress/log/propose-hosts.js";
export { scopeOf } from "./egress/rules/target.js";
export { SecretMask } from "./egress/secrets/secret-mask.js";
export type { SentHeaders } from "./egress/secrets/sent-headers.js";
export { openWatch } from "./files/file-watch.js";
export type { ImageName } from "./images/definition.js";
export { imageDefinitions } from "./images/definition.js";
export { diagnoseImages } from "./images/diagnose-images.js";
export type { BuildingEngine } from "./images/dockerfile/build-plan.js";
export { basesOf, faultsOf } from "./images/dockerfile/build-plan.js";
export { BuiltImageStore, buildsHold, isHeld } from "./images/dockerfile/built-image-store.js";
export type { ContextLimits } from "./images/dockerfile/context-files.js";
export { parseDockerfile, readInstructions } from "./images/dockerfile/dockerfile.js";
export type { ImageProgress, ReadyImage } from "./images/dockerfile/image-builds.js";
export {
  ImageActivity,
  ImageBuilds,
  ImageReferences,
  missingOffline,
} from "./images/dockerfile/image-builds.js";
export { ensureImages } from "./images/ensure.js";
export { findImage, findImages } from "./images/find-image.js";
export { listImages } from "./images/list.js";
export { isLocked } from "./images/lock.js";
export type { ProjectBuild } from "./images/project-image.js";
export { buildOfDockerfile, provideProjectImage } from "./images/project-image.js";
export type { PrunedObject, PruneReport } from "./images/prune.js";
export { pruneImages } from "./images/prune.js";
export {
  ensureToolboxVolume,
  homeId,
  homeLabel,
  toolboxLabel,
  volumeContainer,
} from "./images/toolbox-volume.js";
export type { UnfinishedLabel } from "./images/unfinished.js";
export { removeUnfinished, unfinishedImages } from "./images/unfinished.js";
export {
  aboutOf,
  allowListOf,
  applyKeptChanges,
  connectToPort,
  containerOf,
  disposeFirst,
  endLasting,
  forgetLasting,
  forkLasting,
  lastingDirectoryOf,
  letGoOfLasting,
  onEndOf,
  pauseSandbox,
  planOf,
  resumeLasting,
  sealKeyOf,
  secretsOf,
  sendingHeaders,
  setSentHeaders,
  settingsOf,
  spawnLasting,
  startFromSnapshot,
  startSandbox,
  unpauseSandbox,
} from "./inside.js";
export { LABELS, sessionLabels } from "./labels.js";
export type { ResumedCommand } from "./lasting/resume-sandbox.js";
export { readableSecrets } from "./network/egress/read-egress.js";
export type { EgressListener, WatchEgressOptions } from "./network/egress/sandbox-egress.js";
export { openPorts, recordPort } from "./network/port-records.js";
export type { SecondSandbox } from "./open-beside.js";
export { openBeside } from "./open-beside.js";
export type { StartOptions } from "./open-sandbox.js";
export { openSandbox } from "./open-sandbox.js";
export type { CallCause } from "./output/call-cause.js";
export { causeSentences } from "./output/call-cause.js";
export type { CapturedOutput, OutputPart, TruncationPolicy } from "./output/captured-output.js";
export {
  BYTES_PER_TOKEN,
  captured,
  countLines,
  HeadAndTail,
  KEPT_OUTPUT_BYTES,
  keptBytes,
  OutputCapture,
  renderOutput,
  shrinkOutput,
  tokenBudget,
  tokensOfBytes,
  total,
  truncateOutput,
  truncateParts,
  truncateText,
  truncateWithLineCount,
} from "./output/captured-output.js";
export type { CommandEnd, ResourceUsage, StartFailure } from "./output/command-end.js";
export { clipped, cutText, textEnd } from "./output/cut-text.js";
export type { LineFold } from "./output/line-fold.js";
export { appendOutput, emptyFold, foldOf, keptLines, lastLines, lineCountOf } from "./output/line-fold.js";
export { treeLabel } from "./overlay/tree-volumes.js";
export { loadsCode } from "./plan/image-settings.js";
export { DEFAULT_IMAGE, missingImage, requireImage } from "./plan/missing-image.js";
export { isAtOrBelow, isBelow } from "./plan/paths.js";
export { refuseUnknownRuntime } from "./plan/unknown-runtime.js";
export type { RestorePoint, RestorePointOptions, UndoneCall } from "./points/restore-point.js";
export type { CommandRisk, CommandSituation } from "./policy/approval-decision.js";
export {
  decideAfterDenial,
  decideCommand,
  decideMcpCall,
  decidePatch,
  escalationRefusal,
  RETRY_REASON,
  refusalText,
} from "./policy/approval-decision.js";
export type { ApprovalPolicy, GranularPolicy } from "./policy/approval-policy.js";
export {
  APPROVAL_POLICIES,
  granularSchema,
  nameOfPolicy,
  parseApprovalPolicy,
} from "./policy/approval-policy.js";
export type { EgressSettings } from "./policy/egress-schema.js";
export { egressSchema } from "./policy/egress-schema.js";
export type { HostPattern, PatternParse } from "./policy/hosts.js";
export { HOST_NAME, normalPattern, PUBLIC, patternsOf } from "./policy/hosts.js";
export { LIMIT_BOUNDS } from "./policy/limit-bounds.js";
export { loadPolicy, readPolicyFile, readPolicyText } from "./policy/load-policy.js";
export type { SandboxMode } from "./policy/modes.js";
export { DEFAULT_MODE, isSandboxMode, SANDBOX_MODES } from "./policy/modes.js";
export type { NetworkScope } from "./policy/network.js";
export { describeNetwork, isWithinNetwork, parseNetwork } from "./policy/network.js";
export type { PolicyReading } from "./policy/parse-policy.js";
export { parsePolicy, readPolicy } from "./policy/parse-policy.js";
export type { LoadedPolicy, Policy, SandboxLimits } from "./policy/policy.js";
export type { SandboxDenial } from "./policy/sandbox-denial.js";
export { findDenial } from "./policy/sandbox-denial.js";
export type { SessionAuthority } from "./policy/session-authority.js";
export { excessOver } from "./policy/session-authority.js";
export type { Strictness } from "./policy/strictness.js";
export { compareApprovals, compareModes, compareNetworks, isNoLooser } from "./policy/strictness.js";
export type { AcquireOptions, PoolOptions, SandboxPool } from "./pool.js";
export { createPool, startPool } from "./pool.js";
export type {
  CommandOptions,
  CommandResult,
  ConnectedSandbox,
  FileType,
  FileWatch,
  PortableAccount,
  PortableFiles,
  PortableProcess,
  PortableProof,
  PortableReceipt,
  PortableSandbox,
  PortableSpawnOptions,
  PortableStat,
  PortableWorkspace,
  PtySize,
  WatchedChange,
} from "./portable-sandbox.js";
export { FILE_TYPES } from "./portable-sandbox.js";
export { threadWaits } from "./process/thread-waits.js";
export { MAX_TIMEOUT_MS } from "./process/timeouts.js";
export type { Proof } from "./proof/proof.js";
export type { Receipt } from "./receipt/receipt.js";
export { inTime } from "./removal.js";
export { Sandbox } from "./sandbox.js";
export type { ConnectOptions, GitAccess, SandboxOptions, WorkspaceKind } from "./sandbox-options.js";
export { GIT_ACCESSES, WORKSPACE_KINDS } from "./sandbox-options.js";
export type { SandboxAbout, SandboxRecord } from "./sandbox-records.js";
export { reclaimPlaceholders, recordedNow, removeRecord, writeRecord } from "./sandbox-records.js";
export type {
  DirectoryEntry,
  ExecOptions,
  ExecResult,
  ExitStatus,
  FileStat,
  FileWrite,
  ForwardedPort,
  ForwardOptions,
  ListOptions,
  PathOptions,
  ReadOptions,
  SandboxFiles,
  SandboxProcess,
  SpawnOptions,
} from "./sandbox-types.js";
export { checkedLimits } from "./settings/checked-limits.js";
export type { PolicyChoice } from "./settings/chosen-policy.js";
export { loadChosenPolicy } from "./settings/chosen-policy.js";
export type { UnresolvedSettings } from "./settings/resolve-settings.js";
export {
  checkedSettings,
  holdTree,
  resolvedSetup,
  resolveSettings,
  withFullAccess,
  withReadOnly,
} from "./settings/resolve-settings.js";
export type { SandboxSettings } from "./settings/sandbox-settings.js";
export { hasAllowList } from "./setup/has-allow-list.js";
export type { SetupEnd } from "./setup/run-setup.js";
export { runSetup, setupFailure } from "./setup/run-setup.js";
export type { PointHead } from "./snapshots/point-log.js";
export { readRescues, removeOldSnapshots, removeUnfinishedContents } from "./snapshots/rescued.js";
export {
  describeSnapshot,
  listSnapshots,
  openSnapshot,
  removeSnapshot,
  removeUnfinishedSnapshots,
} from "./snapshots/snapshot-store.js";
export type { StoppedSandbox, StoppedSandboxFiles } from "./stopped-sandbox.js";
export { stopSandbox } from "./stopped-sandbox.js";
export type { SweepReport, SweepVerdict, SweptObject } from "./sweep.js";
export { REMOVABLE, sweep } from "./sweep.js";
export { holeBytes } from "./tree/hole-bytes.js";
export { cacheLabel, cacheVolumeName, ensureCacheVolume } from "./volumes/cache-volume.js";
export type { HostMount } from "./volumes/host-mount.js";
export { warner } from "./warnings.js";
