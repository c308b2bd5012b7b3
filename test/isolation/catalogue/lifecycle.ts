import type { Assertion } from "./assertion.js";

const lease = "docker/sandbox/lease.test.ts";
const removal = "docker/sandbox/removal.test.ts";
const sweep = "docker/sweep.test.ts";
const trouble = "docker/sandbox/trouble.test.ts";

/** What is left, when and by whom it is removed. */
export const lifecycle: readonly Assertion[] = [
  [
    "H1",
    "When the host process is killed, its container ends with the lease.",
    [lease, "ends with its lease after %s"],
    [lease, "takes every background process with it"],
  ],
  [
    "H2",
    "A container that was never started is removed by brig gc.",
    [removal, "is removed by brig gc: $flags"],
  ],
  [
    "H3",
    "Ctrl-C at any moment of a start leaves no container.",
    ["docker/sandbox/bad-input.test.ts", "because it was called off: at every moment nothing is left"],
    ["e2e/cli.test.ts", "on SIGINT while the sandbox starts leaves no container"],
  ],
  [
    "H4",
    "A sweep removes what dead owners left.",
    [sweep, "removes what dead owners left and leaves everything else"],
  ],
  [
    "H5",
    "A sweep believes only records of brig's own, not labels.",
    [sweep, "believes no label that an image may have made"],
    ["docker/sandbox/killed-session.test.ts", "has no say over directories that are in use by another"],
  ],
  [
    "H6",
    "An engine that stops during a call ends it with what happened.",
    [trouble, "during a call: the call ends with what happened"],
  ],
  ["H7", "Names are never used twice.", [removal, "is removed by its name: %s"]],
  [
    "H8",
    "Removing may race with anything.",
    [sweep, "may race another sweep, and both end well"],
    ["docker/engine.test.ts", "kills and removes what is dead or gone without complaint"],
  ],
  [
    "H10",
    "No volume is left.",
    ["docker/sandbox/overlay/tree.test.ts", "leaves no volume and no container when it is closed"],
    ["docker/sandbox/branch/branch.test.ts", "leaves no volume and no container"],
  ],
  [
    "H11",
    "Nothing grows in the host process over thousands of calls.",
    ["docker/sandbox/soak.test.ts", "no lost byte, no wrong code, nothing that grows (seed …)"],
  ],
  [
    "H12",
    "A lease belongs to its container alone: no process has to live for it.",
    [lease, "ends with its lease after %s"],
  ],
  [
    "H13",
    "A container that somebody else removes is reported as gone.",
    [trouble, "while nobody calls: the next call says so"],
  ],
  [
    "H14",
    "Empty directories for protected names go after their container, never before.",
    [
      removal,
      "is told when the engine goes on failing, and what holds protected names stays while something may run: %s",
    ],
    [
      "docker/sandbox/killed-session.test.ts",
      "gives the places it held back at the next start, wherever that is",
    ],
  ],
  [
    "H15",
    "An engine that fails at any one request leaves no container after the lease, and nobody waits without end.",
    ["isolation/fault-matrix.test.ts", "$action: $request $fault"],
    ["isolation/fault-matrix.test.ts", "has no other request to fail at"],
  ],
];
