import { type Assertion, probed } from "./assertion.js";

const policy = "docker/policy.test.ts";
const families = [
  policy,
  "opens sockets of UNIX, INET, INET6 and NETLINK, and of no other family (N2 to N5)",
] as const;
const refused = [
  policy,
  "answers EPERM to everything it refuses, which without it reaches the kernel (N1, N4, N6 to N10, N13, N14)",
] as const;
const scheduling = "docker/sandbox/scheduling.test.ts";

/** What the kernel is asked, and refuses. */
export const systemCalls: readonly Assertion[] = [
  ["N1", "io_uring is refused.", refused],
  ["N2", "Sockets of AF_VSOCK are refused.", families],
  ["N3", "Sockets of AF_ALG are refused.", families],
  ["N4", "Sockets of AF_PACKET and AF_XDP are refused.", probed, families, refused],
  ["N5", "No family of sockets but UNIX, INET, INET6 and NETLINK opens.", families],
  ["N6", "userfaultfd and the kernel's keys are refused.", probed, refused],
  ["N7", "bpf, perf_event_open and fanotify_init are refused.", probed, refused],
  ["N8", "Files cannot be named or opened by a handle.", refused],
  ["N9", "The newer calls for mounts are refused.", refused],
  [
    "N10",
    "Modules, kexec, reboot, swap, accounting, quotas, clocks and ports of the machine are refused.",
    refused,
  ],
  [
    "N11",
    "clone3 is answered as by a kernel without it, so that programs fall back.",
    [policy, "answers ENOSYS where callers fall back on an older call (N11)"],
  ],
  [
    "N12",
    "The 32-bit entry of the kernel is closed.",
    [policy, "kills a program that enters by the 32-bit door (N12)"],
  ],
  ["N13", "ptrace, process_vm_readv and their like are refused.", probed, refused],
  ["N14", "memfd_secret and vmsplice are refused.", refused],
  [
    "N15",
    "The filter in force is the one that was asked for.",
    [policy, "a container weaker than its plan is told by the read-back:"],
    ["unit/sandbox/policy/seccomp.test.ts", "that is missing or broken is an error, never an absent filter"],
  ],
  [
    "N16",
    "Ordinary programs work under the filter.",
    [policy, "lets git, python, node, bash, curl, tar and their like work"],
    ["docker/sandbox/ordinary-programs.test.ts", "programs of every day do their work in a small project"],
  ],
  [
    "N17",
    "Asynchronous I/O, of which the machine has so many events for all, is refused as by a kernel without it.",
    [policy, "answers as a kernel without them to what takes of the machine's numbers and counts for nobody"],
    [
      "unit/sandbox/policy/seccomp.test.ts",
      "N11: answers ENOSYS and the like where callers then do without, as on a kernel without it",
    ],
  ],
  [
    "S1",
    "A command cannot run before the runner or take its turn.",
    [scheduling, "goes behind the runner, and cannot get before it"],
  ],
  [
    "S2",
    "A command cannot put the runner or a supervisor behind itself.",
    [scheduling, "puts neither the runner nor a supervisor behind"],
  ],
  [
    "S3",
    "Hundreds of busy processes keep no kill waiting.",
    [scheduling, "and 399 like it that spin keep no kill of theirs waiting"],
  ],
  [
    "L1",
    "No lease of a file can be taken.",
    probed,
    [policy, "keeps root from leaving devices, and from what no task needs, in danger-full-access too"],
  ],
  [
    "L4",
    "No lock of an open file can be taken, whose memory counts for nobody.",
    ["unit/sandbox/policy/seccomp.test.ts", "answers to locks of open files as a kernel without them"],
  ],
  [
    "L2",
    "Locks that a command keeps on files of the workspace stop neither brig nor git.",
    ["isolation/sandboxes.test.ts", "keep neither the next sandbox nor git on the host waiting"],
  ],
  [
    "L3",
    "Over netlink nothing can be changed, and no events of the machine arrive.",
    probed,
    [
      policy,
      "answers as a kernel without them to protocols of NETLINK other than ROUTE, where the host's events arrive",
    ],
  ],
];
