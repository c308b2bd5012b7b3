export type {
  AgentSandbox,
  AppliedFork,
  ForkedChanges,
  ForkedPathOptions,
  ForkedSandbox,
  ForkedTree,
  SandboxSource,
} from "./agent/agent-sandbox.js";
export type { AgentLabel, AgentPlacement } from "./agent/agents/agent-label.js";
export type { AgentModelChoice, AgentRole, AgentsOptions } from "./agent/agents/agents-options.js";
export type { ApprovalAnswer, ApprovalRequest, Approver } from "./agent/approvals/approvals.js";
export type { CompactionOptions, CompactionOutcome } from "./agent/compaction/compactor.js";
export type { ContextOptions } from "./agent/context/context-messages.js";
export type { ProjectDocsOptions } from "./agent/context/project-docs.js";
export { openConversation } from "./agent/conversation.js";
export type {
  CompactionResult,
  Conversation,
  ConversationOptions,
  SettingChange,
  TurnInput,
  TurnResult,
} from "./agent/conversation-options.js";
export type { AgentResult, RunAgentOptions } from "./agent/run-agent.js";
export { runAgent } from "./agent/run-agent.js";
export type { McpSession } from "./agent/session-servers.js";
export type { EndedSetup, SessionSetup } from "./agent/setup/setup-options.js";
export type { AgentEvent, AgentListener, CompactionReason } from "./agent/turn/events.js";
export type { WebSearch } from "./agent/turn/web-search-event.js";
export { runBatch } from "./batch/run-batch.js";
export type { BatchAgent, RunBatchOptions, RunBatchResult } from "./batch/run-batch-options.js";
export type { EngineConnection } from "./docker/engine-types.js";
export type { AskAboutHost, AskedHost, HostAnswer } from "./egress/ask-about-host.js";
export type { EgressAttempt, EgressOutcome, EgressPhase, EgressWay } from "./egress/attempt.js";
export type { ConnectionOwner } from "./egress/inside-network.js";
export type { EgressEntry } from "./egress/log/egress-entry.js";
export type { AddressScope } from "./egress/rules/address-scope.js";
export type { Denial } from "./egress/rules/denial.js";
export type { SigningProblem } from "./egress/rules/signing-problem.js";
export type { BrigErrorOptions, ErrorCode, FullDisk, GoneReason } from "./errors.js";
export { BrigError, isBrigError } from "./errors.js";
export type { ClientProvider, OwnClientOptions } from "./model/create-model-client.js";
export { createModelClient } from "./model/create-model-client.js";
export type { ConnectionOptions } from "./model/endpoint/connection.js";
export type { ModelClientOptions } from "./model/endpoint/endpoint-client.js";
export type { OpenAIClient, RequestSender } from "./model/endpoint/openai-client.js";
export type { OpaqueItem, ResponseItem } from "./model/items.js";
export type {
  BrokenResponse,
  ModelClient,
  ModelEvent,
  ModelRequest,
  TokenUsage,
  ToolDeclaration,
} from "./model/model-client.js";
export type { ModelSettings } from "./model/model-settings.js";
export type { Credentials, ModelProvider, WireApi } from "./model/provider.js";
export type { Script, ScriptOptions, ScriptStep } from "./model/script/script.js";
export { loadScript } from "./model/script/script.js";
export { createScriptedClient } from "./model/script/scripted-client.js";
export { bearerKey, noCredentials } from "./model/static-credentials.js";
export type { CallCause, FullPlace } from "./output/call-cause.js";
export type { OutputPart } from "./output/output-part.js";
export type { TruncationPolicy } from "./output/truncation.js";
export type { ApprovalPolicy, GranularPolicy } from "./policy/approval-policy.js";
export type { EgressSettings } from "./policy/egress/egress-schema.js";
export type { SandboxMode } from "./policy/modes.js";
export type { NetworkScope } from "./policy/network.js";
export type { SandboxLimits } from "./policy/policy.js";
export type { SandboxDenial } from "./policy/sandbox-denial.js";
export type { SessionAuthority } from "./policy/session-authority.js";
export type { Summary } from "./report/summary/summary.js";
export type { BatchWait } from "./runs/admission/attempt-admission.js";
export type { CostOf } from "./runs/agents/budgeted-model.js";
export type { AttemptLimits, AttemptStage } from "./runs/attempt/attempt.js";
export type { BatchEvent, BatchListener, BatchStop } from "./runs/batch/batch-events.js";
export type { RunLimits } from "./runs/batch/run-budget.js";
export type { TaskSelection } from "./runs/batch/select-tasks.js";
export type { AttemptOutcome, PassKind } from "./runs/results/attempt-outcome.js";
export type { AttemptFailure, AttemptResult } from "./runs/results/attempt-result.js";
export type { AttemptPlace } from "./runs/results/run-files.js";
export type {
  ApplyOptions,
  ApplyResult,
  DiffOptions,
  FileVersion,
  ForkApplied,
  ForkChange,
  ForkDiff,
  ForkOptions,
  ForkPathOptions,
  ObeyedPath,
  PathReason,
  Snapshot,
  SnapshotOptions,
  WorkspaceChange,
  WorkspaceDiff,
} from "./sandbox/changes/workspace-change.js";
export type { EgressInForce } from "./sandbox/egress/in-force.js";
export type { EgressListener, WatchEgressOptions } from "./sandbox/egress/sandbox-egress.js";
export type {
  RestorePoint,
  RestorePointChange,
  RestorePointOptions,
  UndoneCall,
} from "./sandbox/points/restore-point.js";
export { createPool } from "./sandbox/pool/pool.js";
export type { AcquireOptions, PoolOptions, SandboxPool } from "./sandbox/pool/pool-options.js";
export type { Assertion, Difference } from "./sandbox/proof/difference.js";
export type { NotProvable, Proof } from "./sandbox/proof/proof.js";
export type {
  BranchArrival,
  Finding,
  FindingCount,
  FindingReason,
  KeptChanges,
  Receipt,
} from "./sandbox/receipt/receipt.js";
export { Sandbox } from "./sandbox/sandbox.js";
export type { GitAccess, SandboxOptions, WorkspaceKind } from "./sandbox/sandbox-options.js";
export type {
  DirectoryEntry,
  ExecOptions,
  ExecResult,
  ExitStatus,
  FilePart,
  FileStat,
  FileType,
  FileWrite,
  ForwardedPort,
  ForwardOptions,
  ListOptions,
  PathOptions,
  PtySize,
  ReadOptions,
  SandboxFiles,
  SandboxProcess,
  SpawnOptions,
  StartFailure,
  WritesDone,
} from "./sandbox/sandbox-types.js";
export type { BrigClientOptions, ServedTask } from "./serve/client/brig-client.js";
export { BrigClient } from "./serve/client/brig-client.js";
export type {
  RemoteCallOptions,
  RemoteEntry,
  RemoteExecOptions,
  RemoteExecResult,
  RemoteFiles,
  RemoteOutputOptions,
  RemoteSandbox,
  RemoteStreamOptions,
} from "./serve/client/client-types.js";
export type { Episode, EpisodeOptions, ServiceHealth } from "./serve/wire/episode-schemas.js";
export type {
  RemoteExecRecord,
  RemoteExit,
  RemoteSandboxOptions,
  RemoteSandboxRecord,
} from "./serve/wire/sandbox-schemas.js";
export type { ReceiptFinding, SessionBranchArrival, SessionReceipt } from "./session/receipts.js";
export type { PointChange, SessionRestorePoint, UndoneChanges } from "./session/restore-point.js";
export type { SentContext, SessionSetting } from "./session/setting.js";
export type { SessionFileOptions, SessionLog, SessionRecord } from "./session/write/session-file.js";
export { openSessionFile } from "./session/write/session-file.js";
export type {
  AgentCallOptions,
  AgentChanges,
  AgentFileChange,
  AgentMessage,
  AgentPathOptions,
  AgentRoleName,
  AgentState,
  Agents,
  AgentsWait,
  AppliedChanges,
  ChangeConflict,
  SendOptions,
  SpawnAgentOptions,
  SpawnedAgent,
  WaitOptions,
} from "./tools/agents/agents.js";
export type { NameOfTool, ToolName, ToolOf } from "./tools/catalogue.js";
export type { ExecText, ExecToolResult } from "./tools/command/exec-tool.js";
export type { FileMatch, FileSearchResult } from "./tools/files/file-search.js";
export type { JsonSchema } from "./tools/json-schema.js";
export type {
  Elicit,
  ElicitAnswer,
  ElicitChoice,
  ElicitField,
  ElicitQuestion,
  ElicitValueKind,
  McpApproval,
  McpCallOptions,
  McpContentBlock,
  McpPageOptions,
  McpProgress,
  McpResource,
  McpResourceContents,
  McpResourcePage,
  McpResourceTemplate,
  McpResourceTemplatePage,
  McpResult,
  McpServerState,
  McpServers,
  McpTool,
  McpToolAnnotations,
} from "./tools/mcp/mcp-servers.js";
export type { PatchFiles, PatchPathOptions, PatchWrite, PatchWritesDone } from "./tools/patch/patch-files.js";
export type { ToolRegistry, ToolRegistryOptions } from "./tools/registry.js";
export { createToolRegistry } from "./tools/registry.js";
export type {
  ActionToReview,
  CommandToReview,
  EscalationRequest,
  FileChange,
  FileDiff,
  McpCallToReview,
  PatchToReview,
  SandboxPlace,
} from "./tools/review/action.js";
export type {
  ActionReview,
  DeniedAttempt,
  RefusalReason,
  SecondVerdict,
  Verdict,
} from "./tools/review/approval.js";
export type { AskedUser, UserQuestion } from "./tools/session/request-user-input.js";
export type {
  AgentCallEnd,
  AgentCallName,
  AgentCallStart,
  AnsweredApproval,
  ApprovalQuestion,
  CallOrigin,
  CustomToolSpec,
  FunctionToolSpec,
  LocalShellSpec,
  McpCallEnd,
  McpCallStart,
  NamespaceToolSpec,
  PlanStep,
  Tool,
  ToolActivity,
  ToolCallOptions,
  ToolOutput,
  ToolSpec,
  WebSearchSpec,
} from "./tools/tool.js";
export type { ShellKind, ToolGates } from "./tools/tool-gates.js";
export type {
  ResourceUsage,
  ToolDirectoryEntry,
  ToolExit,
  ToolFileStat,
  ToolFiles,
  ToolListOptions,
  ToolProcess,
  ToolReadOptions,
  ToolSandbox,
  ToolSpawnOptions,
  ToolStartFailure,
} from "./tools/tool-sandbox.js";
