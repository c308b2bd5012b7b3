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
export { ADVICE_START } from "./command/command-output.js";
export type { CommandPrefix, CommandSafety } from "./command/command-safety.js";
export type { ExecToolResult } from "./command/exec-tool.js";
export { ReadCommand } from "./command/read-command.js";
export { commandForPeople, shellScript } from "./command/shell.js";
export { runUserCommand } from "./command/user-command.js";
export { faultsOf } from "./define-tool.js";
export type { FileMatch, FileSearchResult } from "./files/file-search.js";
export { listFiles } from "./files/file-search.js";
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
  McpPageOptions,
  McpProgress,
  McpResourceContents,
  McpResourcePage,
  McpResourceTemplatePage,
  McpResult,
  McpServerState,
  McpServers,
  McpTool,
  McpToolAnnotations,
} from "./mcp/mcp-servers.js";
export type { OsError } from "./os-error.js";
export { describeOsError, isFileError, osErrors, osErrorText } from "./os-error.js";
export type { Chunk, Hunk } from "./patch/patch-format.js";
export { parsePatch } from "./patch/patch-format.js";
export { pathsOf } from "./patch/patcher.js";
export { ImageResizer } from "./picture/image-resizer.js";
export { type ImageSize, imageSize } from "./picture/image-size.js";
export type { ToolRegistry, ToolRegistryOptions } from "./registry.js";
export { createToolRegistry } from "./registry.js";
export type { ActionToReview, FileChange, FileDiff, McpCallToReview, SandboxPlace } from "./review/action.js";
export type { ActionReview, DeniedAttempt, ReviewedCall, SecondVerdict, Verdict } from "./review/approval.js";
export type { AskedUser, UserQuestion } from "./session/request-user-input.js";
export type {
  AnsweredApproval,
  ApprovalQuestion,
  FunctionToolSpec,
  McpCallEnd,
  McpCallStart,
  PlanStep,
  Tool,
  ToolActivity,
  ToolCallOptions,
  ToolOutput,
  ToolSpec,
} from "./tool.js";
export { failure } from "./tool.js";
export type { GateLayer, ToolGates } from "./tool-gates.js";
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
  ToolExit,
  ToolFiles,
  ToolProcess,
  ToolSandbox,
  ToolSpawnOptions,
} from "./tool-sandbox.js";
