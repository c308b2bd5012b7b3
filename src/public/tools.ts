// brigbox/tools: the tools of a model, for an agent of one's own.
export type { TruncationPolicy } from "../sandbox/index.js";
export type { ActionReview, ActionToReview, Agents, AgentsWait, AskedUser, Elicit, ElicitAnswer, ElicitQuestion, ExecToolResult, FileChange, FileMatch, FileSearchResult, JsonSchema, McpResult, McpServers, McpTool, NameOfTool, SpawnAgentOptions, SpawnedAgent, Tool, ToolActivity, ToolCallOptions, ToolExit, ToolFiles, ToolGates, ToolName, ToolOf, ToolOutput, ToolProcess, ToolRegistry, ToolRegistryOptions, ToolSandbox, ToolSpawnOptions, ToolSpec, UserQuestion, Verdict } from "../tools/index.js";
export { createToolRegistry } from "../tools/index.js";
