import { type Assertion, probed } from "./assertion.js";

const policy = "docker/policy.test.ts";
const strictness = "unit/sandbox/policy/strictness.test.ts";
const decide = "unit/sandbox/egress/rules/decide.test.ts";
const http = "unit/sandbox/egress/proxy/http-proxy.test.ts";
const tunnels = "unit/sandbox/egress/proxy/tunnels.test.ts";

/** What a command reaches. */
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
    ["unit/sandbox/policy/network.test.ts", "is none or full by that name only"],
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
    ["unit/sandbox/policy/network.test.ts", "with an empty allow-list allows no host, and is not full"],
    [strictness, "of two networks"],
  ],
  [
    "E8",
    "With an allow-list there is still no interface but loopback, and no way but through brig.",
    ["docker/sandbox/egress/allow-list.test.ts", "has no other way out: no interface, no address, no names"],
  ],
  [
    "E10",
    "A host is matched exactly, and before it is looked up.",
    [decide, "a target is decided by its name"],
  ],
  [
    "E11",
    "A host that can be read in two ways is none.",
    [decide, "a target that can be read in two ways is none"],
    [http, "with %s is refused"],
  ],
  [
    "E12",
    "The address that a name stands for is checked, and the checked one is dialled.",
    [http, "does not reach an address that no rule names, and dials the address that it checked"],
    [decide, "an address that an allowed name stands for"],
  ],
  [
    "E13",
    "A connection that is for another host than it leads to is cut.",
    [tunnels, "is cut if the TLS connection is for another host, and the program gets an alert"],
    [
      "unit/sandbox/egress/tunnel/first-bytes.test.ts",
      "do not pass with an encrypted name, even beside the right one",
    ],
  ],
  [
    "E14",
    "Other protocols than HTTP and TLS pass only where a rule names the port.",
    [tunnels, "carries another protocol only to a port that a rule names"],
  ],
  [
    "E15",
    "The target of a redirect is decided anew.",
    [http, "follows no redirect, so that the next host is decided, too"],
  ],
  ["E16", "There is no UDP.", [tunnels, "refuses SOCKS requests for %s"]],
  [
    "E18",
    "Ambiguous, malformed and endless requests are refused.",
    [http, "with %s is refused"],
    [http, "is cut off if its head never ends"],
  ],
];
