import type { Assertion } from "./assertion.js";

const authority = "unit/sandbox/policy/session-authority.test.ts";
const terminal = "unit/lib/terminal/terminal.test.ts";
const guard = "unit/lib/terminal/terminal-guard.test.ts";
const policies = "unit/sandbox/policy/load-policy.test.ts";
const refusedContainers = "isolation/sandboxes.test.ts";

/** What reaches people and models, and what brig itself decides. */
export const rules: readonly Assertion[] = [
  [
    "J1",
    "No control sequence of a command reaches the terminal.",
    [terminal, "nothing that comes out moves the cursor, changes the terminal or hides, but for colours"],
    [guard, "no string but a title, a link or a colour reaches the terminal"],
  ],
  [
    "J2",
    "Names and errors are neutralised as well.",
    ["unit/lib/terminal/table.test.ts", "keeps every row on one line and lets no cell act on the terminal"],
    ["unit/lib/json/json-text.test.ts", "holds nothing that a terminal obeys, and means what it meant"],
  ],
  [
    "J3",
    "What is cut is marked and counted.",
    ["docker/sandbox/results.test.ts", "head and tail are kept, and the text says exactly what is missing"],
  ],
  [
    "J4",
    "Bytes that are no text break nothing.",
    ["docker/sandbox/results.test.ts", "bytes that are not UTF-8 are replaced in text and kept in buffers"],
    ["docker/sandbox/results.test.ts", "a character that arrives in pieces is whole"],
  ],
  [
    "J5",
    "No output of a command is taken for brig's own.",
    ["docker/sandbox/secrets.test.ts", "gets nothing and harms nothing"],
    ["docker/sandbox/first-stream.test.ts", "is nothing that a command could read from or write to"],
  ],
  ["K1", "A mode that does not exist is refused.", [policies, "%j is refused"]],
  [
    "K2",
    "The request to the engine is a function of the plan, compared with a kept one.",
    ["unit/sandbox/plan/create-body.test.ts", "of … with network … is exactly the golden one"],
  ],
  [
    "K3",
    "A session that another one starts may do nothing that its parent may not.",
    [
      authority,
      "whatever parent and child are, a child without excess may do nothing that the parent may not",
    ],
  ],
  [
    "K4",
    "A model cannot choose mounts, users, images or capabilities by a tool's arguments.",
    ["unit/tools/registry.test.ts", "ignores argument keys it does not know"],
    ["docker/approvals-table.test.ts", "what is done with a command, by policy, mode and kind"],
  ],
  [
    "K5",
    "Nothing runs before the kernel has confirmed the policy.",
    ["docker/policy.test.ts", "a container weaker than its plan is told by the read-back:"],
    [refusedContainers, "with %s is refused once it runs, before any command, and is gone"],
  ],
  [
    "K6",
    "Known faults of the engine are listed, with what to do.",
    [
      "unit/sandbox/docker/diagnosis/advisories.test.ts",
      "says for each weakness of an old engine what to do",
    ],
  ],
  [
    "K7",
    "No file of a workspace chooses the engine or loosens a setting.",
    [
      "unit/agent/config/settings/tightening.test.ts",
      "whatever a workspace's files say, a session may do nothing more than without them",
    ],
    ["unit/sandbox/docker/discovery.test.ts", "prefers a given address to everything"],
  ],
  [
    "K8",
    "A policy or configuration that cannot be read is an error, never a default.",
    [policies, "that is missing is an error, not a default"],
    [
      policies,
      "never becomes a policy when a key is added anywhere or a value is replaced by something else",
    ],
  ],
  [
    "K9",
    "Nothing that only looks safe runs unasked.",
    [
      "unit/tools/command/real-shell.test.ts",
      "what is called safe makes a real shell run nothing but what is listed",
    ],
    [
      "unit/tools/command/real-shell.test.ts",
      "sees it where something else is run: the check is none that always passes",
    ],
  ],
  [
    "K10",
    "In a container that is refused nothing ran.",
    [refusedContainers, "is not started if it has another program, and nothing of it ran"],
    [refusedContainers, "would have run it: the control of the test above"],
  ],
];
