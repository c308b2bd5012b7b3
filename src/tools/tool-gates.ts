/** Which tools a model is told of, and may call. Unset means that nothing is said about it. */
export interface ToolGates {
  /** Which tools for commands. Unset: `exec_command` and `write_stdin`, the others being understood when called. */
  shell?: ShellKind | undefined;
  /** `true` is freeform: text of a grammar. "function" is a JSON argument. */
  apply_patch?: boolean | "freeform" | "function" | undefined;
  read_file?: boolean | undefined;
  list_dir?: boolean | undefined;
  grep_files?: boolean | undefined;
  view_image?: boolean | undefined;
  update_plan?: boolean | undefined;
  request_user_input?: boolean | undefined;
  /** `js_repl_reset` with it. */
  js_repl?: boolean | undefined;
  /** The provider's own search: in its store of pages, or live. */
  web_search?: "cached" | "live" | "disabled" | undefined;
}

/** Which tools for commands a model is offered. */
export type ShellKind = "unified_exec" | "shell_command" | "default" | "local" | "disabled";

/** What one source says, e.g. a configuration file. */
export interface GateLayer {
  /** For people. */
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

/** Goes above all others where there is nobody to ask. */
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

/** Names for programs that use the registry. No model is told of them. */
const programmaticNames: ReadonlySet<string> = new Set([
  "applyPatch",
  "readFile",
  "listDir",
  "grepFiles",
  "exec",
  "fileSearch",
]);

/** Later layers win, key by key. */
export function mergeGates(layers: readonly GateLayer[]): ToolGates {
  return Object.assign({}, ...layers.map(({ gates }) => setGates(gates)));
}

/** Whether a model is told of the tool. */
export function isOffered(name: string, gates: ToolGates): boolean {
  if (shellToolNames.has(name)) return shellTools[gates.shell ?? "unified_exec"].includes(name);
  const gate = gateOf(name);
  if (gate === null) return !programmaticNames.has(name);
  const setting = gates[gate];
  return setting !== undefined && setting !== false && setting !== "disabled";
}

/**
 * Why a model that calls the tool is refused; null where it is not. Where nobody has chosen among the tools for commands, all of them
 * are understood, as prompts written for another one expect.
 */
export function refusalOf(name: string, gates: ToolGates): string | null {
  if (isOffered(name, gates)) return null;
  if (shellToolNames.has(name) && gates.shell === undefined) return null;
  const gate = gateOf(name);
  if (gate === null) return `unsupported call: ${name}`;
  return `${name} is disabled in this session (${settingText(gate, gates)}): use another tool`;
}

/** Whether the tool is on and which setting of which source decides, for people. Layers are weakest first. */
export function explainGate(name: string, layers: readonly GateLayer[]): { isOn: boolean; why: string } {
  const gates = mergeGates(layers);
  const isOn = isOffered(name, gates);
  const gate = gateOf(name);
  if (gate === null) return { isOn, why: isOn ? "always on" : "for programs, not for models" };
  const source = layers.findLast((layer) => layer.gates[gate] !== undefined)?.source ?? "default";
  const isUnderstood = !isOn && refusalOf(name, gates) === null;
  const why = `${settingText(gate, gates)} (${source})`;
  return { isOn, why: isUnderstood ? `${why}; understood when called` : why };
}

function settingText(gate: keyof ToolGates, gates: ToolGates): string {
  return `tools.${gate} = ${gates[gate] ?? "unified_exec"}`;
}

/** The setting that decides about a tool. */
function gateOf(name: string): keyof ToolGates | null {
  if (shellToolNames.has(name)) return "shell";
  if (name === "js_repl_reset") return "js_repl";
  return isGate(name) ? name : null;
}

function isGate(name: string): name is keyof ToolGates {
  return Object.hasOwn(defaultGates.gates, name);
}

function setGates(gates: ToolGates): ToolGates {
  return Object.fromEntries(Object.entries(gates).filter(([, setting]) => setting !== undefined));
}
