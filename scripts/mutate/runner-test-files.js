/** The tests in containers that use a part of the runner, by how the names of its sources begin. The first that fits counts. */
const TESTS_OF = [
  [
    ["commit", "changes", "same-content", "copy"],
    ["tree/commit", "tree/changes", "tree/copy", "overlay/apply"],
  ],
  [
    ["file", "beneath", "sha256"],
    ["files", "overlay/tree", "tree/copy"],
  ],
  [
    [
      "address",
      "connect",
      "connection",
      "datagrams",
      "endpoint",
      "listener",
      "network",
      "reach",
      "socket-owners",
    ],
    ["network", "network/inside-connections", "network/connection-owners", "network/forwarded-ports"],
  ],
  [
    ["receipt", "sight", "names"],
    ["receipt", "causes"],
  ],
  [
    ["causes", "counters", "processor-waits"],
    ["causes", "progress", "silence", "cgroup-limits"],
  ],
  [["scheduling"], ["scheduling"]],
  [
    ["report", "main", "serve"],
    ["modes", "first-stream", "runtime"],
  ],
  [
    ["link", "wire", "buffer", "io", "bridge", "loop"],
    ["bridge", "reconnect", "first-stream"],
  ],
  [
    ["pool", "job", "worker", "rooms", "tree"],
    ["many-calls", "kill", "killed-session"],
  ],
];

/** What every part of it has to get through: its calls, files, terminals, kills and broken streams. */
const ALWAYS = [
  "results",
  "files",
  "stdin",
  "pty",
  "kill",
  "reconnect",
  "runner-abuse",
  "bridge",
  "pipes",
  "ended",
];

/** First those of the part, then the others: two lists of test files. */
export function runnerTestFiles(source) {
  const name = source.slice(source.lastIndexOf("/") + 1).replace(/\.c$/, "");
  const [, own] = TESTS_OF.find(([parts]) => parts.some((part) => isPart(name, part))) ?? [[], []];
  const others = ALWAYS.filter((one) => !own.includes(one));
  return [own, others].filter((list) => list.length > 0).map((list) => list.map(testFile));
}

function isPart(name, part) {
  return name === part || name.startsWith(`${part}-`);
}

function testFile(name) {
  const folder = name === "many-calls" ? "figures" : "sandbox";
  return `test/docker/${folder}/${name}.test.ts`;
}
