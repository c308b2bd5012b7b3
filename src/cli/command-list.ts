import type { DefineCommand } from "../command/index.js";

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
    name: "batch",
    summary: "run many attempts at many tasks, and grade them",
    load: async () => (await import("./batch/batch-command.js")).defineBatch,
    printsEvents: true,
  },
  {
    name: "diff",
    summary: "show what a session changed in a copy-on-write workspace",
    load: async () => (await import("./changes/diff-command.js")).defineDiff,
  },
  {
    name: "apply",
    summary: "bring the changes of a copy-on-write workspace to your files",
    load: async () => (await import("./changes/apply-command.js")).defineApply,
  },
  {
    name: "shell",
    summary: "open an interactive shell in a sandbox",
    load: async () => (await import("./commands/shell.js")).defineShell,
    passesExitCodeOn: true,
  },
  {
    name: "wrap",
    summary: "run another agent's program, such as codex, in a sandbox",
    load: async () => (await import("../services/index.js")).defineWrap,
    passesExitCodeOn: true,
  },
  {
    name: "ps",
    summary: "list the sandboxes that are open",
    load: async () => (await import("./ps/ps-command.js")).definePs,
  },
  {
    name: "port",
    summary: "list, open and close ports of sandboxes that are reachable from this machine",
    load: async () => (await import("./ports/port-command.js")).definePort,
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
    name: "mcp",
    summary: "list the MCP servers of the configuration, and check them",
    load: async () => (await import("./mcp/mcp-command.js")).defineMcp,
  },
  {
    name: "login",
    summary: "log in to the model's provider",
    load: async () => (await import("./commands/login/login.js")).defineLogin,
  },
  {
    name: "logout",
    summary: "log out",
    load: async () => (await import("./commands/login/logout.js")).defineLogout,
  },
  {
    name: "config",
    summary: "print the configuration and where each value comes from",
    load: async () => (await import("./commands/config.js")).defineConfig,
  },
  {
    name: "policy",
    summary: "print a mode as a policy file, or check such a file",
    load: async () => (await import("./policy/policy-command.js")).definePolicy,
  },
  {
    name: "sessions",
    summary: "list, show, fork, export or delete sessions",
    load: async () => (await import("./commands/sessions.js")).defineSessions,
  },
  {
    name: "bisect",
    summary: "find the tool call of a session that broke something",
    load: async () => (await import("./bisect/bisect-command.js")).defineBisect,
  },
  {
    name: "replay",
    summary: "run a session's tool calls again and report what differs",
    load: async () => (await import("./commands/replay.js")).defineReplay,
  },
  {
    name: "exec-server",
    summary: "run the commands of an unchanged Codex in sandboxes",
    load: async () => (await import("../services/index.js")).defineExecServer,
  },
  {
    name: "mcp-server",
    summary: "serve the agent, or with --tools its sandboxed tools, to MCP clients",
    load: async () => (await import("../services/index.js")).defineMcpServer,
  },
  {
    name: "serve",
    summary: "serve sandboxes and whole episodes over HTTP",
    load: async () => (await import("../services/index.js")).defineServe,
  },
  {
    name: "acp",
    summary: "be the agent of an editor, by the Agent Client Protocol",
    load: async () => {
      const { defineAcp } = await import("../services/index.js");
      return defineAcp(async () => (await import("./conversation/terminal-parts.js")).terminalParts);
    },
  },
  {
    name: "view",
    summary: "look at the results of a batch, or compare two",
    load: async () => (await import("./batch/view-command.js")).defineView,
  },
  {
    name: "worker",
    summary: "run attempts of batches that other machines put into a queue",
    load: async () => (await import("./queue/worker-command.js")).defineWorker,
    printsEvents: true,
  },
  {
    name: "queue",
    summary: "show what waits and runs in a queue of attempts, or cancel a run",
    load: async () => (await import("./queue/queue-command.js")).defineQueue,
  },
  {
    name: "setup",
    summary: "make another program use brig: setup codex",
    load: async () => (await import("./codex/setup-codex.js")).defineSetup,
  },
  {
    name: "demo",
    summary: "watch a scripted model find and fix a bug in a sandbox, without an account",
    load: async () => (await import("./demo/demo-command.js")).defineDemo,
    printsEvents: true,
  },
  {
    name: "doctor",
    summary: "check that this machine can run brig, and say how to fix what is wrong",
    load: async () => (await import("./commands/doctor.js")).defineDoctor,
  },
  {
    name: "image",
    summary: "build, list or prune brig's images",
    load: async () => (await import("./images/image-command.js")).defineImage,
  },
  {
    name: "gc",
    summary: "remove containers, volumes and directories that dead sessions left behind",
    load: async () => (await import("./commands/gc.js")).defineGc,
  },
];
