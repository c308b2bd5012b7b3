/** Which shell tools a model is offered. */
type ShellKind = "unified_exec" | "shell_command" | "default" | "disabled";

export interface ToolGates {
  /** `default` is the argument-list tool `shell`. Default: unified_exec. */
  shell?: ShellKind | undefined;
}

const shellTools: Record<ShellKind, readonly string[]> = {
  unified_exec: ["exec_command", "write_stdin"],
  shell_command: ["shell_command"],
  default: ["shell"],
  disabled: [],
};

/** Whether a model is told of the tool. One that is off can still be called by name, as older prompts do. */
export function isOffered(name: string, gates: ToolGates = {}): boolean {
  return !isShellTool(name) || shellTools[gates.shell ?? "unified_exec"].includes(name);
}

/** Why the tool is on or off, for people. */
export function describeGate(name: string, gates: ToolGates = {}): string {
  return isShellTool(name) ? `tools.shell = ${gates.shell ?? "unified_exec"}` : "always on";
}

function isShellTool(name: string): boolean {
  return Object.values(shellTools).some((names) => names.includes(name));
}
