import type { DefineCommand } from "./context.js";

export interface CommandEntry {
  name: string;
  summary: string;
  load: () => Promise<DefineCommand>;
  /**
   * Exits with the code of the program in the sandbox, and with 125 for every failure of brig, bad usage too.
   */
  passesExitCodeOn?: boolean;
  /** With `--json` the command prints one event per line, so an error is printed as an event as well. */
  printsEvents?: boolean;
}

/** Every command, in the order of the help. Only the command that runs is loaded. */
export const commands: CommandEntry[] = [
  {
    name: "run",
    summary: "give a model a task; its tool calls run in a sandbox",
    load: async () => (await import("./commands/run.js")).defineRun,
    printsEvents: true,
  },
  {
    name: "resume",
    summary: "continue a session",
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
    summary: "log out",
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
    summary: "run a session's tool calls again and report what differs",
    load: async () => (await import("./commands/replay.js")).defineReplay,
  },
  {
    name: "exec-server",
    summary: "run the commands of an unchanged Codex in sandboxes",
    load: async () => (await import("./commands/exec-server.js")).defineExecServer,
  },
  {
    name: "setup",
    summary: "make another program use brig: setup codex",
    load: async () => (await import("./codex/setup-codex.js")).defineSetup,
  },
  {
    name: "doctor",
    summary: "check that this machine can run brig, and say how to fix what is wrong",
    load: async () => (await import("./commands/doctor.js")).defineDoctor,
  },
  {
    name: "image",
    summary: "build, list or prune brig's images",
    load: async () => (await import("./commands/image.js")).defineImage,
  },
  {
    name: "gc",
    summary: "remove containers, volumes and directories that dead sessions left behind",
    load: async () => (await import("./commands/gc.js")).defineGc,
  },
];
