import type { CommandEntry } from "./command-entry.js";

const agents = "Agents and their sessions:";
const sandboxes = "Sandboxes:";
const services = "For other programs and machines:";
const machine = "Settings and this machine:";

/** Every command, in the order of the help. Only the command that runs is loaded. */
export const commands: CommandEntry[] = [
  {
    name: "run",
    group: agents,
    summary: "give a model a task; its tool calls run in a sandbox",
    load: async () => (await import("./commands/run.js")).defineRun,
    printsEvents: true,
  },
  {
    name: "resume",
    group: agents,
    summary: "continue a session",
    load: async () => (await import("./commands/resume.js")).defineResume,
    printsEvents: true,
  },
  {
    name: "review",
    group: agents,
    summary: "let a model review changes, and print its findings",
    load: async () => (await import("./review/review-command.js")).defineReview,
  },
  {
    name: "exec",
    group: sandboxes,
    summary: "run one command in a sandbox",
    load: async () => (await import("./commands/exec.js")).defineExec,
    passesExitCodeOn: true,
  },
  {
    name: "batch",
    group: agents,
    summary: "run many attempts at many tasks, and grade them",
    load: async () => (await import("./batch/batch-command.js")).defineBatch,
    printsEvents: true,
  },
  {
    name: "diff",
    group: agents,
    summary: "show what a session or a sandbox changed in a copy-on-write workspace",
    load: async () => (await import("./changes/diff-command.js")).defineDiff,
  },
  {
    name: "apply",
    group: agents,
    summary: "bring the changes of a copy-on-write workspace to your files",
    load: async () => (await import("./changes/apply-command.js")).defineApply,
  },
  {
    name: "shell",
    group: sandboxes,
    summary: "open an interactive shell in a sandbox",
    load: async () => (await import("./commands/shell.js")).defineShell,
    passesExitCodeOn: true,
  },
  {
    name: "wrap",
    group: agents,
    summary: "run another agent's program, such as codex, in a sandbox",
    load: async () => (await import("../services/index.js")).defineWrap,
    passesExitCodeOn: true,
  },
  {
    name: "up",
    group: sandboxes,
    summary: "start a sandbox that lasts, for brig exec --in",
    load: async () => (await import("./lasting/up-command.js")).defineUp,
  },
  {
    name: "ps",
    group: sandboxes,
    summary: "list the sandboxes that are open",
    load: async () => (await import("./ps/ps-command.js")).definePs,
  },
  {
    name: "attach",
    group: sandboxes,
    summary: "join the shared shell of a sandbox of brig up",
    load: async () => (await import("./lasting/attach-command.js")).defineAttach,
    passesExitCodeOn: true,
  },
  {
    name: "logs",
    group: sandboxes,
    summary: "print the output of the commands of a sandbox of brig up",
    load: async () => (await import("./lasting/logs-command.js")).defineLogs,
  },
  {
    name: "cp",
    group: sandboxes,
    summary: "copy files between this machine and a sandbox of brig up",
    load: async () => (await import("./lasting/cp-command.js")).defineCp,
  },
  {
    name: "stats",
    group: sandboxes,
    summary: "show what sandboxes of brig up use",
    load: async () => (await import("./lasting/stats-command.js")).defineStats,
  },
  {
    name: "undo",
    group: sandboxes,
    summary: "take back what the last command of a sandbox of brig up has changed",
    load: async () => (await import("./lasting/undo-command.js")).defineUndo,
  },
  {
    name: "fork",
    group: sandboxes,
    summary: "start another sandbox on a copy of the files of one of brig up",
    load: async () => (await import("./lasting/fork-command.js")).defineFork,
  },
  {
    name: "stop",
    group: sandboxes,
    summary: "end sandboxes of brig up, and keep their names",
    load: async () => (await import("./lasting/end-commands.js")).defineStop,
  },
  {
    name: "rm",
    group: sandboxes,
    summary: "end sandboxes of brig up, and forget them",
    load: async () => (await import("./lasting/end-commands.js")).defineRm,
  },
  {
    name: "port",
    group: sandboxes,
    summary: "list, open and close ports of sandboxes that are reachable from this machine",
    load: async () => (await import("./ports/port-command.js")).definePort,
  },
  {
    name: "tool",
    group: sandboxes,
    summary: "make one tool call",
    load: async () => (await import("./commands/tool.js")).defineTool,
  },
  {
    name: "tools",
    group: machine,
    summary: "list the tools, and why each is on or off",
    load: async () => (await import("./commands/tools.js")).defineTools,
  },
  {
    name: "mcp",
    group: machine,
    summary: "list the MCP servers of the configuration, and check them",
    load: async () => (await import("./mcp/mcp-command.js")).defineMcp,
  },
  {
    name: "login",
    group: machine,
    summary: "log in to the model's provider",
    load: async () => (await import("./commands/login/login.js")).defineLogin,
  },
  {
    name: "logout",
    group: machine,
    summary: "log out",
    load: async () => (await import("./commands/login/logout.js")).defineLogout,
  },
  {
    name: "config",
    group: machine,
    summary: "print the configuration and where each value comes from",
    load: async () => (await import("./commands/config.js")).defineConfig,
  },
  {
    name: "policy",
    group: machine,
    summary: "print a mode as a policy file, or check such a file",
    load: async () => (await import("./policy/policy-command.js")).definePolicy,
  },
  {
    name: "sessions",
    group: agents,
    summary: "list, show, fork, export or delete sessions",
    load: async () => (await import("./commands/sessions.js")).defineSessions,
  },
  {
    name: "bisect",
    group: agents,
    summary: "find the tool call of a session that broke something",
    load: async () => (await import("./bisect/bisect-command.js")).defineBisect,
  },
  {
    name: "replay",
    group: agents,
    summary: "run a session's tool calls again and report what differs",
    load: async () => (await import("./commands/replay.js")).defineReplay,
  },
  {
    name: "exec-server",
    group: services,
    summary: "run the commands of an unchanged Codex in sandboxes",
    load: async () => (await import("../services/index.js")).defineExecServer,
  },
  {
    name: "mcp-server",
    group: services,
    summary: "serve the agent, or with --tools its sandboxed tools, to MCP clients",
    load: async () => (await import("../services/index.js")).defineMcpServer,
  },
  {
    name: "serve",
    group: services,
    summary: "serve sandboxes and whole episodes over HTTP",
    load: async () => (await import("../services/index.js")).defineServe,
  },
  {
    name: "acp",
    group: services,
    summary: "be the agent of an editor, by the Agent Client Protocol",
    load: async () => {
      const { defineAcp } = await import("../services/index.js");
      return defineAcp(async () => (await import("./conversation/terminal-parts.js")).terminalParts);
    },
  },
  {
    name: "view",
    group: agents,
    summary: "look at the results of a batch, or compare two",
    load: async () => (await import("./batch/view-command.js")).defineView,
  },
  {
    name: "worker",
    group: services,
    summary: "run attempts of batches that other machines put into a queue",
    load: async () => (await import("./queue/worker-command.js")).defineWorker,
    printsEvents: true,
  },
  {
    name: "queue",
    group: services,
    summary: "show what waits and runs in a queue of attempts, or cancel a run",
    load: async () => (await import("./queue/queue-command.js")).defineQueue,
  },
  {
    name: "setup",
    group: services,
    summary: "make another program use brig: setup claude, setup codex",
    load: async () => (await import("./setup/setup-command.js")).defineSetup,
  },
  {
    name: "demo",
    group: agents,
    summary: "watch a scripted model find and fix a bug in a sandbox, without an account",
    load: async () => (await import("./demo/demo-command.js")).defineDemo,
    printsEvents: true,
  },
  {
    name: "init",
    group: machine,
    summary:
      "propose image, set-up and network for a project, each with its reason, and keep them as a profile",
    load: async () => (await import("./init/init-command.js")).defineInit,
  },
  {
    name: "doctor",
    group: machine,
    summary: "check that this machine can run brig, and say how to fix what is wrong",
    load: async () => (await import("./commands/doctor.js")).defineDoctor,
  },
  {
    name: "image",
    group: machine,
    summary: "build, list or prune brig's images",
    load: async () => (await import("./images/image-command.js")).defineImage,
  },
  {
    name: "gc",
    group: machine,
    summary: "remove containers, volumes and directories that dead sessions left behind",
    load: async () => (await import("./commands/gc.js")).defineGc,
  },
  {
    name: "version",
    group: machine,
    summary: "print the version",
    load: async () => (await import("./commands/version.js")).defineVersion,
  },
  {
    name: "completion",
    group: machine,
    summary: "print a script that completes brig's commands in bash, zsh or fish",
    load: async () => (await import("./completion/completion-command.js")).defineCompletion,
  },
  {
    name: "complete",
    summary: "what may follow the words of a command line",
    load: async () => (await import("./completion/completion-command.js")).completeOf(commands),
    isHidden: true,
  },
  {
    name: "man",
    summary: "print the manual page",
    load: async () => (await import("./usage/man-command.js")).manOf(commands),
    isHidden: true,
  },
  {
    name: "claude-hook",
    summary: "decide about a command of Claude Code",
    load: async () => (await import("./claude/claude-hook.js")).defineClaudeHook,
    isHidden: true,
  },
  {
    name: "claude-shell",
    summary: "run a command of Claude Code in the sandbox of its project",
    load: async () => (await import("./claude/claude-shell.js")).defineClaudeShell,
    isHidden: true,
    passesExitCodeOn: true,
  },
  {
    name: "owner",
    summary: "keep the sandboxes of brig up",
    load: async () => (await import("./lasting/owner-command.js")).defineOwner,
    isHidden: true,
  },
];
