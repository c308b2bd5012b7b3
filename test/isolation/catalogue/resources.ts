import { type Assertion, probed } from "./assertion.js";

const policy = "docker/policy.test.ts";
const weaker = "a container weaker than its plan is told by the read-back:";
const trouble = "docker/sandbox/trouble.test.ts";
const kill = "docker/sandbox/kill.test.ts";
const left = "docker/sandbox/memory-left.test.ts";
const starts = "%s, and python3, node and git start all the same";
const results = "docker/sandbox/results.test.ts";

/** What a command can use up. */
export const resources: readonly Assertion[] = [
  [
    "F1",
    "Memory, processes and CPU have limits in the kernel, not only in the request.",
    probed,
    [policy, weaker],
    [policy, "all that %s promises, by what the kernel says inside"],
  ],
  ["F2", "There is no swap beyond the memory.", [policy, weaker]],
  [
    "F3",
    "A command that takes too much memory is killed, and the session lives.",
    [
      "docker/sandbox/cgroup-limits.test.ts",
      "end a command that takes more memory, which says why, and the session lives",
    ],
  ],
  ["F4", "Memory that is filled and left keeps no later command from starting.", [left, starts]],
  ["F5", "A fork bomb ends with its call.", [kill, "even of a fork bomb that has used up the process limit"]],
  [
    "F6",
    "Where no process can be started, brig itself goes on.",
    [
      "docker/sandbox/runner-abuse.test.ts",
      "while no process can be started, calls say so, files can be read and PID 1 rests",
    ],
    [trouble, "processes that outlive their command and leave no place: the next call ends them and runs"],
  ],
  [
    "F7",
    "After a bomb nothing is left and nothing unreaped.",
    ["docker/sandbox/runner-abuse.test.ts", "leaves nothing unreaped, whatever it left behind"],
  ],
  ["F8", "Scratch space has a limit of files.", [trouble, "files in scratch space: no more than so many"]],
  [
    "F10",
    "No log grows on the host's disk.",
    probed,
    ["unit/sandbox/plan/create-body.test.ts", "of … with network … is exactly the golden one"],
  ],
  [
    "F11",
    "Output that nobody reads is held back.",
    ["docker/sandbox/stdin.test.ts", "100 MB are read at the reader's pace"],
    [results, "a slow one holds the command back, and nobody else"],
  ],
  [
    "F12",
    "Output without line breaks passes in bounded memory.",
    [results, "200 MB without a newline pass in bounded memory, and no byte goes uncounted"],
  ],
  ["F13", "Processors are limited.", [policy, weaker]],
  [
    "F14",
    "Core dumps, and files that are open at once, are limited.",
    [policy, weaker],
    [trouble, "open files: commands are held to it, and the runner goes on"],
  ],
  ["F15", "A timeout ends a command.", [kill, "a timeout ends the whole tree"]],
  [
    "F16",
    "The clock cannot be set.",
    [
      policy,
      "answers EPERM to everything it refuses, which without it reaches the kernel (N1, N4, N6 to N10, N13, N14)",
    ],
  ],
  [
    "F17",
    "Shared memory is freed with its last user.",
    [left, "shared memory goes with the last process that uses it"],
  ],
  ["F18", "Segments, semaphores and queues of System V and POSIX are limited.", [left, starts]],
  [
    "F20",
    "A sandbox has terminals of its own, and no more than so many.",
    [policy, weaker],
    [
      "docker/sandbox/machine-share.test.ts",
      "takes no more terminals than its own, and a leftover that has them all goes",
    ],
  ],
  [
    "F21",
    "Who takes more than a share of what the machine counts for nobody is ended, with the reason.",
    ["docker/sandbox/machine-share.test.ts", "is ended when it takes too much of %s, and says so"],
  ],
  [
    "F22",
    "Memory that a process left behind holds keeps no later command from running.",
    [
      "docker/sandbox/machine-share.test.ts",
      "that holds the memory goes once it has cost a command its life",
    ],
  ],
  ["F19", "Every directory in memory has a limit of files.", probed, [left, starts]],
];
