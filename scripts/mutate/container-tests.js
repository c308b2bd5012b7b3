/** The tests in containers that use a part of the runner, by how the names of its sources begin. The first that fits counts. */
const OF_RUNNER = [
  [
    ["commit", "changes", "same-content", "copy"],
    ["tree/commit", "tree/changes", "tree/copy", "overlay/apply"],
  ],
  [
    ["file", "files", "beneath", "sha256"],
    ["files", "overlay/tree", "tree/copy"],
  ],
  [
    ["address", "connect", "network", "reach", "socket-owners"],
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
    ["kill", "killed-session", "pool/pool"],
  ],
];

/** What every part of the runner has to get through: its calls, files, terminals, kills and broken streams. */
const EVERY_RUNNER = [
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

/** Those of the runner that wait for seconds on purpose. Most faults are noticed by others, so they come last. */
const LONG = ["causes", "ended", "kill", "modes", "receipt", "reconnect", "runner-abuse", "silence"];

/** The tests in containers that use a part of the host's side. What is not in test/docker/sandbox has its whole path. */
const OF_SOURCE = [
  ["src/sandbox/docker/podman", ["test/docker/podman.test.ts"]],
  [
    "src/sandbox/docker/calls",
    ["test/docker/engine.test.ts", "test/docker/archives.test.ts", "test/docker/image-metadata.test.ts"],
  ],
  ["src/sandbox/docker", ["test/docker/engine.test.ts"]],
  ["src/sandbox/policy", ["test/docker/policy.test.ts", "test/docker/approvals-table.test.ts", "modes"]],
  ["src/sandbox/attack", ["test/isolation/probes.test.ts"]],
  ["src/sandbox/open-beside", ["beside"]],
  ["src/sandbox/branch", ["branch/branch", "host-git"]],
  ["src/sandbox/changes", ["overlay/apply", "overlay/diff", "overlay/fork-changes", "overlay/fork"]],
  ["src/sandbox/channel", ["results", "stdin", "reconnect", "first-stream"]],
  [
    "src/sandbox/network/egress",
    ["egress/allow-list", "egress/secrets", "egress/masking", "egress/canaries", "secrets"],
  ],
  ["src/sandbox/files", ["files", "trouble"]],
  ["src/sandbox/git", ["host-git", "branch/branch", "modes"]],
  ["src/sandbox/network", ["network", "network/inside-connections", "network/forwarded-ports"]],
  ["src/sandbox/overlay", ["overlay/tree", "overlay/lifetime", "overlay/fork", "overlay/shared-tree"]],
  ["src/sandbox/points", ["overlay/restore-points", "overlay/point-trouble"]],
  ["src/sandbox/snapshots", ["overlay/fork", "overlay/restore-points", "overlay/point-trouble"]],
  ["src/sandbox/pool", ["pool/pool"]],
  ["src/sandbox/process", ["results", "stdin", "kill", "ended", "pty"]],
  ["src/sandbox/proof", ["modes", "cgroup-limits", "test/isolation/fault-matrix.test.ts"]],
  ["src/sandbox/plan", ["modes", "cgroup-limits", "devices", "workspace-parents", "config-directories"]],
  ["src/sandbox/receipt", ["receipt"]],
  ["src/sandbox/stopped-sandbox", ["trouble", "removal"]],
  ["src/sandbox/tree", ["tree/changes", "tree/commit", "tree/copy"]],
  ["src/sandbox/sweep", ["test/docker/sweep.test.ts", "lease"]],
  ["src/sandbox/diagnose-runtimes", ["runtime"]],
  ["src/sandbox/removal", ["removal"]],
];

/** What every part of a sandbox is used in. */
const EVERY_SOURCE = ["results", "bad-input", "removal", "trouble"];

/** One to three lists of test files: first those of the part, and of the runner first the short ones. */
export function containerTests(file) {
  const lists = file.startsWith("images/") ? listsOfRunner(file) : listsOfSource(file);
  return lists.filter((list) => list.length > 0).map((list) => list.map(testFile));
}

function listsOfRunner(file) {
  const own = ofRunner(file);
  const others = EVERY_RUNNER.filter((one) => !own.includes(one));
  const isLong = (one) => LONG.includes(one);
  const short = [...own, ...others].filter((one) => !isLong(one));
  return [short, own.filter(isLong), others.filter(isLong)];
}

function listsOfSource(file) {
  const own = ofSource(file);
  const every = file.startsWith("src/sandbox/") ? EVERY_SOURCE : [];
  return [own, every.filter((one) => !own.includes(one))];
}

function ofRunner(file) {
  const name = file.slice(file.lastIndexOf("/") + 1).replace(/\.c$/, "");
  const fits = (part) => name === part || name.startsWith(`${part}-`);
  return OF_RUNNER.find(([parts]) => parts.some(fits))?.[1] ?? [];
}

function ofSource(file) {
  return OF_SOURCE.find(([part]) => file.startsWith(`${part}/`) || file === `${part}.ts`)?.[1] ?? [];
}

function testFile(name) {
  return name.startsWith("test/") ? name : `test/docker/sandbox/${name}.test.ts`;
}
