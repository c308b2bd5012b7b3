/** Which tools a model is offered and may call. An unset key leaves the decision to the next layer. */
export interface ToolGates {
  /** Tools for commands. Unset: offers `exec_command` and `write_stdin`; accepts the others when called. */
  shell?: ShellKind | undefined;
  /** Freeform (also `true`): the input is text that follows a grammar. "function": a JSON argument. */
  apply_patch?: boolean | "freeform" | "function" | undefined;
  read_file?: boolean | undefined;
  list_dir?: boolean | undefined;
  grep_files?: boolean | undefined;
  view_image?: boolean | undefined;
  update_plan?: boolean | undefined;
  request_user_input?: boolean | undefined;
  /** Also decides about `js_repl_reset`. */
  js_repl?: boolean | undefined;
  /** The provider's own search, in its cache of pages or live. */
  web_search?: "cached" | "live" | "disabled" | undefined;
}

/** Which tools for commands a model is offered. */
export type ShellKind = "unified_exec" | "shell_command" | "default" | "local" | "disabled";

/** The settings of one source, e.g. of a configuration file. */
export interface GateLayer {
  /** Shown to people. */
  source: string;
  gates: ToolGates;
}

export const defaultGates: GateLayer = {
  source: "default",
  gates: {
    apply_patch: true,
    read_file: true,
    list_dir: true,
    grep_files: true,
    view_image: true,
    update_plan: true,
    request_user_input: true,
    js_repl: false,
    web_search: "disabled",
  },
};

/** Overrides all other layers if no user can answer questions. */
export const nobodyToAsk: GateLayer = {
  source: "nobody can answer here",
  gates: { request_user_input: false },
};

const shellTools: Record<ShellKind, readonly string[]> = {
  unified_exec: ["exec_command", "write_stdin"],
  shell_command: ["shell_command"],
  default: ["shell"],
  local: ["local_shell"],
  disabled: [],
};

const shellToolNames: ReadonlySet<string> = new Set(Object.values(shellTools).flat());

/** Tools for programs that use the registry. They are never offered to a model. */
const toolsForPrograms: ReadonlySet<string> = new Set([
  "applyPatch",
  "readFile",
  "listDir",
  "grepFiles",
  "exec",
  "fileSearch",
]);

/** Later layers win, key by key. */
export function mergeGates(layers: readonly GateLayer[]): ToolGates {
  const settings = layers.flatMap(({ gates }) => Object.entries(gates));
  return Object.fromEntries(settings.filter(([, setting]) => setting !== undefined));
}

export function isOffered(name: string, gates: ToolGates): boolean {
  if (shellToolNames.has(name)) return shellTools[gates.shell ?? "unified_exec"].includes(name);
  const gate = gateOf(name);
  if (gate === null) return !toolsForPrograms.has(name);
  const setting = gates[gate];
  return setting !== undefined && setting !== false && setting !== "disabled";
}

/**
 * The answer to a model that calls a tool which is off; null for a tool that it may call. If no setting
 * chooses a tool for commands, a model may call any of them, since its prompt may be written for another one.
 */
export function refusalOf(name: string, gates: ToolGates): string | null {
  if (isOffered(name, gates)) return null;
  if (shellToolNames.has(name) && gates.shell === undefined) return null;
  const gate = gateOf(name);
  if (gate === null) return `unsupported call: ${name}`;
  return `${name} is disabled in this session (${settingText(gate, gates)}): use another tool`;
}

/** Whether a tool is on, and which setting of which source decides that. Later layers win. */
export function explainGate(name: string, layers: readonly GateLayer[]): { isOn: boolean; why: string } {
  const gates = mergeGates(layers);
  const isOn = isOffered(name, gates);
  const gate = gateOf(name);
  if (gate === null) return { isOn, why: isOn ? "always on" : "for programs, not for models" };
  const source = layers.findLast((layer) => layer.gates[gate] !== undefined)?.source ?? "default";
  const isAccepted = !isOn && refusalOf(name, gates) === null;
  const why = `${settingText(gate, gates)} (${source})`;
  return { isOn, why: isAccepted ? `${why}; accepted when called` : why };
}

function settingText(gate: keyof ToolGates, gates: ToolGates): string {
  return `tools.${gate} = ${gates[gate] ?? "unified_exec"}`;
}

function gateOf(name: string): keyof ToolGates | null {
  if (shellToolNames.has(name)) return "shell";
  if (name === "js_repl_reset") return "js_repl";
  return Object.hasOwn(defaultGates.gates, name) ? (name as keyof ToolGates) : null;
}
