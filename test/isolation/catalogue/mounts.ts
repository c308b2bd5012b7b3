import { type Assertion, probed } from "./assertion.js";

const policy = "docker/policy.test.ts";
const weaker = "a container weaker than its plan is told by the read-back:";
const modes = "docker/sandbox/modes.test.ts";
const parents = "docker/sandbox/workspace-parents.test.ts";
const listeners = "docker/sandbox/listeners.test.ts";
const workspace = "unit/sandbox/plan/workspace.test.ts";
const probes = "isolation/probes.test.ts";

/** What is mounted, and how. */
export const mounts: readonly Assertion[] = [
  [
    "B1",
    "The system's files are read-only.",
    probed,
    [modes, "the rest of the host is not there, and the system is read-only"],
  ],
  [
    "B2",
    "In read-only mode the workspace is the same afterwards, byte by byte.",
    probed,
    [modes, "not one byte of the workspace can be changed"],
    ["docker/tools/every-mode.test.ts", "nothing that a command tries changes the tree"],
  ],
  [
    "B3",
    "A read-only workspace with other mounts below it is refused where the engine cannot make them read-only.",
    [policy, "comes with a writable workspace and is never writable in a read-only one"],
  ],
  ["B4", "What can be written is exactly what the policy says.", probed, [policy, weaker]],
  [
    "B5",
    "Every directory in memory has a limit of bytes.",
    probed,
    [
      "docker/sandbox/trouble.test.ts",
      "scratch space: the writer is told, the session lives, and space can be freed",
    ],
  ],
  ["B6", "No program runs where the policy says that none does.", probed, [policy, weaker]],
  ["B8", "No mount made inside would appear on the host.", probed],
  [
    "B9",
    "Directories of the machine, of the engine and of keys are refused as a workspace.",
    [workspace, "may not be the home directory, what holds it, or what holds secrets in it"],
    [workspace, "may not hold the engine's data or socket"],
  ],
  [
    "B10",
    "What is mounted is the directory that was checked.",
    [policy, weaker],
    [workspace, "is judged by where a link leads, on either side"],
  ],
  [
    "B11",
    "Protected names are read-only.",
    probed,
    [modes, "protected names stay as they are, present or absent"],
  ],
  [
    "B12",
    "Protected names, and what they lie in, cannot be moved away.",
    [modes, "a protected name cannot be moved out of the way"],
    ["docker/sandbox/host-git.test.ts", "runs nothing that an agent wrote"],
  ],
  [
    "B13",
    "Protected names that are not there cannot be created.",
    [modes, "git init makes no repository at the top, and does one further down"],
  ],
  [
    "B14",
    "What a .git file points to is protected as well.",
    [modes, "the directory that a .git file points to is held too, with what lies on the way"],
    [policy, "whose repository is writable too has the repository's .git protected"],
  ],
  [
    "B15",
    "What commands make belongs to the host's user.",
    [modes, "what it makes belongs to the host's user"],
  ],
  [
    "B16",
    "Setuid files, devices, sockets and FIFOs that are left are reported, and bits taken away.",
    [
      "docker/sandbox/receipt.test.ts",
      "with all that an engine gives takes setuid bits, capabilities and devices away and says so",
    ],
  ],
  [
    "B17",
    "The container is made from the image that was checked.",
    [
      "unit/sandbox/proof/compare-created.test.ts",
      "takes a container that is as it was asked for, with what engines add themselves",
    ],
    [
      "docker/sandbox/pool/pool.test.ts",
      "does not hand over a sandbox of an image whose name stands for another one by now",
    ],
  ],
  [
    "B18",
    "Nothing of /dev can be replaced.",
    [
      "docker/sandbox/devices.test.ts",
      "no device can be replaced, changed or added, and an empty stdin stays empty",
    ],
  ],
  [
    "B19",
    "The workspace's path leads to the workspace, whatever a command moves or makes.",
    [parents, "cannot be replaced by a forged one"],
    [parents, "could be, without the mount above it"],
  ],
  [
    "B20",
    "After each mode no device, no setuid file and no file of another user is left in the workspace.",
    [probes, "nothing is left in the workspace that would act for somebody else later (B20)"],
    [probes, "a device, a setuid file and a file of somebody else are left: the control of B20"],
  ],
  [
    "B21",
    "brig's own configuration is read-only wherever a command could write.",
    ["docker/sandbox/config-directories.test.ts", "cannot be written, replaced or moved away"],
    ["docker/sandbox/config-directories.test.ts", "could be, were it not brig's"],
  ],
  [
    "B22",
    "No program of the host that listens in the workspace is reached, however it listens.",
    [listeners, "is not reached in …, however it listens"],
    [listeners, "would be reached by each of these ways without a cover"],
    [listeners, "ends the sandbox before its next command"],
  ],
];
