// The door of the tools: what a model can call, what is asked before a call runs, and what each says. Other parts import from here only.

export { AGENT_NAMESPACE, agentToolAliases, agentToolNames } from "./agents/agent-namespace.js";
export { wireStatus } from "./agents/agent-state.js";
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
} from "./agents/agents.js";
export { isDone } from "./agents/agents.js";
export type { CallOutcome, ToolCall } from "./call-scheduler.js";
export { CallScheduler } from "./call-scheduler.js";
export type { NameOfTool, ToolName, ToolOf } from "./catalogue.js";
export type { ExecText, ExecToolResult } from "./command/exec-tool.js";
export { ADVICE_START } from "./command/missing-programs.js";
export { shellQuote, shellScript } from "./command/shell-quote.js";
export type { FileMatch, FileSearchResult } from "./files/file-search.js";
export type { JsonSchema } from "./json-schema.js";
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
} from "./mcp/mcp-servers.js";
export type { OsError } from "./os-error.js";
export { describeOsError, isFileError, osErrors, osErrorText } from "./os-error.js";
export { parsePatch } from "./patch/format/parse-patch.js";
export type { Chunk, Hunk } from "./patch/format/patch.js";
export type { PatchFiles, PatchPathOptions, PatchWrite, PatchWritesDone } from "./patch/patch-files.js";
export { pathsOf } from "./patch/patcher.js";
export { ImageResizer } from "./picture/image-resizer.js";
export type { ToolRegistry, ToolRegistryOptions } from "./registry.js";
export { createToolRegistry } from "./registry.js";
export type {
  ActionToReview,
  CommandToReview,
  EscalationRequest,
  FileChange,
  FileDiff,
  McpCallToReview,
  PatchToReview,
  SandboxPlace,
} from "./review/action.js";
export type {
  ActionReview,
  DeniedAttempt,
  RefusalReason,
  SecondVerdict,
  Verdict,
} from "./review/approval.js";
export type { AskedUser, UserQuestion } from "./session/request-user-input.js";
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
} from "./tool.js";
export { failure } from "./tool-failure.js";
export type { GateLayer, ShellKind, ToolGates } from "./tool-gates.js";
export {
  defaultGates,
  explainGate,
  mergeGates,
  noAgents,
  nobodyToAsk,
  noForks,
  noMcpServers,
} from "./tool-gates.js";
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
} from "./tool-sandbox.js";
