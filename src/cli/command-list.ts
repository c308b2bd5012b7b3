import type { DefineCommand } from "./context.js";

export interface CommandEntry {
  name: string;
  summary: string;
  load: () => Promise<DefineCommand>;
  /** The exit code is the one of the program inside, so that every failure of brig's own is 125: bad usage too. */
  passesExitCodeOn?: boolean;
  /** With `--json` it prints events, one to a line: what went wrong is one too. */
  printsEvents?: boolean;
}

/** Every command in the order of the help. Only the one that is asked for is loaded. */
export const commands: CommandEntry[] = [
  {
    name: "run",
    summary: "let a model do a task with its tools in a sandbox",
    load: async () => (await import("./commands/run.js")).defineRun,
    printsEvents: true,
  },
  {
    name: "resume",
    summary: "go on with a session",
    load: async () => (await import("./commands/resume.js")).defineResume,
    printsEvents: true,
  },
  {
    name: "exec",
    summary: "run one command in a sandbox",
    load: async () => (await import("./commands/exec.js")).defineExec,
    passesExitCodeOn: true,
  },
  {
    name: "shell",
    summary: "open an interactive shell in a sandbox",
    load: async () => (await import("./commands/shell.js")).defineShell,
    passesExitCodeOn: true,
  },
  {
    name: "tool",
    summary: "make one tool call",
    load: async () => (await import("./commands/tool.js")).defineTool,
  },
  {
    name: "tools",
    summary: "list the tools, and why each is on or off",
    load: async () => (await import("./commands/tools.js")).defineTools,
  },
  {
    name: "login",
    summary: "log in to the model's provider",
    load: async () => (await import("./commands/login.js")).defineLogin,
  },
  {
    name: "logout",
    summary: "forget the login",
    load: async () => (await import("./commands/logout.js")).defineLogout,
  },
  {
    name: "config",
    summary: "print the configuration and where each value comes from",
    load: async () => (await import("./commands/config.js")).defineConfig,
  },
  {
    name: "sessions",
    summary: "list, show, fork, export or delete sessions",
    load: async () => (await import("./commands/sessions.js")).defineSessions,
  },
  {
    name: "replay",
    summary: "run a session's tool calls again, and say what comes out different",
    load: async () => (await import("./commands/replay.js")).defineReplay,
  },
  {
    name: "doctor",
    summary: "say whether this machine is fit for brig, and what to do about it",
    load: async () => (await import("./commands/doctor.js")).defineDoctor,
  },
  {
    name: "image",
    summary: "build, list or prune brig's images",
    load: async () => (await import("./commands/image.js")).defineImage,
  },
  {
    name: "gc",
    summary: "remove what dead sessions left behind",
    load: async () => (await import("./commands/gc.js")).defineGc,
  },
];
