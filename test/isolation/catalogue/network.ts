import { type Assertion, probed } from "./assertion.js";

const policy = "docker/policy.test.ts";
const strictness = "unit/policy/strictness.test.ts";

/** What a command reaches. The rows of an allow-list (E8 to E19) are in not-tested.ts. */
export const network: readonly Assertion[] = [
  ["E1", "There is no interface but loopback.", probed, [policy, "the same without a workspace"]],
  [
    "E2",
    "Neither the host nor the internet can be reached.",
    probed,
    ["docker/approvals.test.ts", "is the network: ENETUNREACH inside, reached once it is approved"],
  ],
  [
    "E3",
    "No name can be asked for, and no datagram leaves.",
    probed,
    [
      "docker/sandbox/network.test.ts",
      "without a network programs reach each other by name, and nothing else",
    ],
  ],
  ["E4", "The host's loopback is another one.", probed],
  [
    "E5",
    "A network is none or full by that name only.",
    ["unit/policy/network.test.ts", "is none or full by that name only"],
  ],
  [
    "E6",
    "No port is published, and no host is added.",
    ["unit/sandbox/plan/create-body.test.ts", "of … with network … is exactly the golden one"],
    ["docker/sandbox/network.test.ts", "what names mean cannot be changed inside"],
  ],
  [
    "E7",
    "No family of sockets goes around the empty network.",
    [policy, "opens sockets of UNIX, INET, INET6 and NETLINK, and of no other family (N2 to N5)"],
  ],
  [
    "E9",
    "An empty allow-list allows nothing.",
    ["unit/policy/network.test.ts", "with an empty allow-list allows no host, and is not full"],
    [strictness, "of two networks"],
  ],
];
