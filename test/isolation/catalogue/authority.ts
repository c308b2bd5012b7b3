import { type Assertion, probed } from "./assertion.js";

const policy = "docker/policy.test.ts";
const weaker = "a container weaker than its plan is told by the read-back:";
const modes = "docker/sandbox/modes.test.ts";
const secrets = "docker/sandbox/secrets.test.ts";
const images = "docker/image-metadata.test.ts";
const created = "unit/sandbox/proof/compare-created.test.ts";
const promises = "all that %s promises, by what the kernel says inside";
const body = [
  "unit/sandbox/plan/create-body.test.ts",
  "never asks for privileges, devices, host namespaces or more capabilities, in any mode",
] as const;

/** What a command is, and what it can see. */
export const authority: readonly Assertion[] = [
  ["A1", "The engine's socket is not inside.", probed],
  ["A2", "The container is not privileged and has no device of the machine.", probed, body],
  ["A3", "All sets of capabilities are empty.", [policy, promises], [policy, weaker]],
  ["A4", "No program gains privileges by being started.", [policy, promises], [policy, weaker]],
  ["A5", "A filter of system calls is in force.", [policy, promises], [policy, weaker]],
  [
    "A6",
    "Commands run as the host's user, without further groups.",
    [policy, weaker],
    [modes, "what it makes belongs to the host's user"],
  ],
  [
    "A7",
    "What brig itself starts in a running container is neither root nor privileged.",
    ["isolation/sandboxes.test.ts", "is run as a user whom no command is, without privileges"],
  ],
  [
    "A8",
    "Processes of the host and of other sandboxes cannot be seen.",
    probed,
    [modes, "two sandboxes see neither each other's processes nor each other's scratch space"],
  ],
  [
    "A9",
    "Host name, IPC, network and control groups are the container's own.",
    probed,
    body,
    [policy, weaker],
  ],
  [
    "A10",
    "A setuid program gives no privileges, and none can be made.",
    probed,
    [modes, "no setuid bit can be set, neither in the workspace nor in scratch space"],
  ],
  [
    "A11",
    "Settings of the kernel and the machine can be neither changed nor read where that matters.",
    probed,
  ],
  ["A12", "The kernel's log cannot be read.", probed],
  [
    "A13",
    "No mount, no namespace and no other root can be made.",
    probed,
    [
      policy,
      "answers EPERM to everything it refuses, which without it reaches the kernel (N1, N4, N6 to N10, N13, N14)",
    ],
  ],
  [
    "A14",
    "No device can be made.",
    probed,
    [modes, "no device and no file capability can be left in the workspace"],
  ],
  [
    "A15",
    "A working directory leads to no directory of the host.",
    [
      "isolation/sandboxes.test.ts",
      "that is a descriptor of another process leads to no directory of the host",
    ],
    ["docker/sandbox/bad-input.test.ts", "a working directory that cannot be"],
  ],
  ["A16", "No cloud's metadata service can be reached.", probed],
  ["A17", "Files of the host that are in no directory of the policy are not there.", probed],
  [
    "A19",
    "PID 1 can be neither traced nor read.",
    [secrets, "PID 1 keeps its %s to itself"],
    [
      policy,
      "answers EPERM to everything it refuses, which without it reaches the kernel (N1, N4, N6 to N10, N13, N14)",
    ],
  ],
  [
    "A20",
    "No variable of the host is in any process.",
    probed,
    [secrets, "does not come in, and what is given to commands is in no description"],
  ],
  [
    "A21",
    "The container's own environment has no secret.",
    ["unit/sandbox/plan/create-body.test.ts", "has no secret, and nothing of the caller's environment"],
    [policy, weaker],
  ],
  [
    "A22",
    "No argument that the engine shows has a secret.",
    [secrets, "does not come in, and what is given to commands is in no description"],
    [secrets, "is nowhere inside"],
  ],
  ["A23", "Keys and logins of home directories are not there.", probed],
  [
    "A24",
    "The memory of PID 1 cannot be opened.",
    probed,
    [secrets, "PID 1 keeps its %s to itself"],
    [secrets, "no descriptor of PID 1 can be opened"],
  ],
  [
    "A25",
    "Two sandboxes cannot reach each other.",
    probed,
    [modes, "two sandboxes see neither each other's processes nor each other's scratch space"],
  ],
  ["A26", "The program of PID 1 cannot be opened for writing.", probed],
  ["A27", "Control groups cannot be changed.", probed],
  [
    "M1",
    "A health check of the image never runs.",
    [images, "never runs, as it would in a plain container, for uid $uid"],
  ],
  [
    "M2",
    "Variables of the image that make programs run something do not reach commands.",
    [images, "reaches commands, but for what runs by itself"],
  ],
  [
    "M3",
    "A volume of an image is a directory in memory within the policy's limits, or refused; the engine makes none.",
    [images, "is an empty directory in memory, of a part of what the policy allows"],
    [images, "leaves no volume of the engine behind"],
    ["unit/sandbox/plan/image-settings.test.ts", "is refused where it cannot be a directory in memory: %s"],
  ],
  [
    "M4",
    "Labels of the image mean nothing to brig or to other programs.",
    [images, "labels of the image are blank, and brig's own hold"],
    ["docker/sweep.test.ts", "believes no label that an image may have made"],
  ],
  [
    "M5",
    "User, directory, entry point, command and stop signal of the image are overridden.",
    [images, "user, directory, command and stop signal of the image are not brig's"],
    [created, "takes a container that is as it was asked for, with what engines add themselves"],
  ],
];
