import type { Assertion } from "./assertion.js";

const kill = "docker/sandbox/kill.test.ts";
const results = "docker/sandbox/results.test.ts";
const badInput = "docker/sandbox/bad-input.test.ts";
const pipes = "docker/sandbox/pipes.test.ts";
const trouble = "docker/sandbox/trouble.test.ts";
const abuse = "docker/sandbox/runner-abuse.test.ts";
const secrets = "docker/sandbox/secrets.test.ts";
const link = "unit/sandbox/channel/runner-link.test.ts";
const frames = "unit/sandbox/channel/frames.test.ts";
const tree = [kill, "a timeout ends the whole tree"] as const;

const causes = "docker/sandbox/causes.test.ts";
/** How commands start, speak and end. */
export const commands: readonly Assertion[] = [
  ["G1", "A timeout ends the whole tree.", tree],
  [
    "G2",
    "A cancel ends the whole tree, and what it was about to do is not done.",
    [kill, "an abort ends the whole tree"],
    [kill, "what it was about to write is never written"],
  ],
  [
    "G3",
    "No session, fork, empty environment or closed stream escapes that.",
    tree,
    ["docker/sandbox/kill.test.ts", "takes its leftovers along though it has killed its supervisor"],
  ],
  [
    "G4",
    "A background process neither holds a call up nor costs it output.",
    [pipes, "does not hold up the call, which has its output and its code"],
    [pipes, "costs nothing of what was printed just before, however much"],
  ],
  ["G5", "Every exit code arrives as it is.", [results, "every exit code from 0 to 255 arrives as it is"]],
  [
    "G6",
    "A program that does not start is told from one that printed an error.",
    [badInput, "a program that cannot be started is a result"],
    ["docker/sandbox/stdin.test.ts", "a program that cannot be started says so on stderr and in its exit"],
  ],
  [
    "G7",
    "126 and 127 mean what they mean in a shell.",
    [badInput, "not executable, or a directory: 126"],
    [badInput, "not found: 127"],
  ],
  [
    "G8",
    "NUL in an argument is refused.",
    [badInput, "a command that no kernel could run"],
    ["docker/sandbox/bad-input.test.ts", "NUL in an argument"],
  ],
  [
    "G9",
    "Arguments beyond what the kernel takes are refused.",
    [badInput, "three megabytes of arguments are more than the kernel takes"],
  ],
  [
    "G10",
    "Input can end while the answer is still to come.",
    ["docker/sandbox/stdin.test.ts", "closing stdin half-closes: the answer still comes"],
  ],
  [
    "G11",
    "The stream is understood in whatever pieces it comes, and noise ends it.",
    [frames, "parse the same in whatever pieces they come"],
    [frames, "that are noise are refused and nothing else"],
  ],
  [
    "G12",
    "Both streams through one pipe keep their order.",
    ["docker/sandbox/stdin.test.ts", "both streams through one pipe keep their exact order"],
  ],
  [
    "G14",
    "No output is lost, however fast a command ends.",
    ["docker/sandbox/soak.test.ts", "no lost byte, no wrong code, nothing that grows (seed …)"],
  ],
  [
    "G18",
    "A container that is gone, stopped or paused is told apart.",
    ["docker/engine.test.ts", "tells an exec in a stopped or removed container from other failures"],
    [trouble, "holds its calls up and loses none of them"],
  ],
  [
    "G19",
    "A container that is killed during calls ends each with what happened.",
    [trouble, "during calls: each ends with what happened, and the host goes on"],
  ],
  [
    "G20",
    "A paused container holds calls up and can be closed.",
    [trouble, "holds its calls up and loses none of them"],
    [trouble, "can be closed"],
  ],
  [
    "G21",
    "A stream that breaks leaves no command behind and loses none.",
    ["docker/sandbox/reconnect.test.ts", "does nothing twice"],
    ["docker/sandbox/reconnect.test.ts", "does not lose an abort"],
  ],
  ["G22", "A command that ignores SIGTERM is ended.", tree],
  ["G23", "No zombie is left.", [abuse, "leaves nothing unreaped, whatever it left behind"]],
  [
    "G24",
    "No signal of a command reaches PID 1.",
    [kill, "no signal that could be handled reaches PID 1"],
    [kill, "SIGKILL and SIGSTOP do not reach PID 1 either"],
  ],
  [
    "G25",
    "A command that kills everything ends its call, and the session goes on.",
    [kill, "everything killed: the call ends and the session goes on"],
  ],
  [
    "G26",
    "A command can neither speak for the runner nor open its descriptors.",
    [secrets, "no descriptor of PID 1 can be opened"],
    [secrets, "cannot speak for the host through a runner of its own"],
  ],
  [
    "G27",
    "Calls at the same time get their own results.",
    [abuse, "very many calls at once each get their own result"],
  ],
  [
    "G28",
    "A runner that breaks the protocol ends the session, and nothing else.",
    [link, "in any way at all ends in a refusal or in nothing, never in another failure"],
  ],
  [
    "G29",
    "A command that kills or stops its own supervisor gains nothing.",
    [kill, "its supervisor killed: it goes too, with what it started"],
    [kill, "its supervisor stopped: the call still ends"],
  ],
  [
    "G30",
    "Limits of PID 1 cannot be lowered by a command of the same user.",
    [kill, "no limit of PID 1 can be lowered, the command's own can"],
  ],
  [
    "G31",
    "The causes of a failed command are what the kernel and brig have counted of it, whatever it prints.",
    [causes, "memory: the command whose process was killed has the limit as its cause"],
    [causes, "a full directory is no cause of what has nothing to do with it"],
    [causes, "a full directory: a command beside the one that fills it does not have its cause"],
    [causes, "a refused connection: with the host, and only for the command that made it"],
  ],
];
