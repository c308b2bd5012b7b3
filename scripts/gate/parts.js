// All that can be tested, in parts that each take less than half an hour on a quiet machine. `npm run test:all` runs them, and the check those
// that a change concerns.

const vitest = (...argv) => ["npx", "vitest", "run", "--config", "test/vitest.config.ts", ...argv];

/** What the runner's own tests and other engines test. */
const OF_ENGINES = ["images/toolbox/", "src/sandbox/channel/", "src/sandbox/docker/"];

/**
 * By name: the command, what it tests, and the paths after whose change the check runs it: `inCheck` instead of the whole where that is too much, and
 * nothing where that is null. Those with `isVitest` take more arguments of vitest's at the end; the others write vitest's JSON report to the file
 * BRIG_TEST_REPORT.
 */
export const PARTS = [
  {
    name: "unit",
    about: "everything without an engine",
    command: vitest("--project", "unit"),
    isVitest: true,
  },
  {
    name: "tools",
    about: "the scripts that test and measure",
    command: vitest("--project", "tools"),
    isVitest: true,
    after: [
      ".ci/battery",
      ".ci/results.mjs",
      ".ci/run",
      ".ci/still-running.mjs",
      "scripts/",
      "test/bench/",
      "test/unit/bench/",
      "test/unit/scripts/",
      "test/reporter.mjs",
    ],
  },
  {
    name: "containers",
    about: "sandboxes on the engine",
    command: vitest("--project", "docker"),
    isVitest: true,
  },
  { name: "programs", about: "the built programs", command: vitest("--project", "e2e"), isVitest: true },
  ...[1, 2, 3].map((shard) => ({
    name: `long-${shard}`,
    about: "long tests: batches, other programs, killed and disturbed sandboxes",
    command: vitest("--project", "slow", "--shard", `${shard}/3`),
    isVitest: true,
  })),
  {
    name: "deep",
    about: "figures, the runner's own tests with sanitizers, fuzzing",
    command: vitest("--project", "deep"),
    isVitest: true,
    after: ["images/toolbox/"],
    inCheck: vitest("--project", "deep", "test/docker/runner-native.test.ts"),
  },
  {
    name: "random",
    about: "the long forms of random tests",
    command: vitest("--project", "random"),
    isVitest: true,
  },
  {
    name: "sanitized",
    about: "sandboxes whose runner has sanitizers",
    command: vitest("--project", "sanitized"),
    isVitest: true,
    after: ["images/toolbox/", "src/sandbox/channel/"],
  },
  {
    name: "elsewhere",
    about: "unit tests as another user, on one processor, in another zone",
    command: [".ci/unit-elsewhere"],
    after: ["test/unit-elsewhere.json", ".ci/unit-elsewhere"],
  },
  {
    name: "gvisor",
    about: "sandboxes on gVisor",
    command: [".ci/gvisor"],
    after: [...OF_ENGINES, ".ci/gvisor", ".ci/debian.sh"],
  },
  {
    name: "arm64",
    about: "the toolbox compiled for arm64, by QEMU",
    command: [".ci/arm64"],
    after: ["images/toolbox/", ".ci/arm64", ".ci/arm64-images.mjs", ".ci/debian.sh"],
  },
  {
    name: "docker-26",
    about: "sandboxes on Docker 26",
    command: [".ci/docker-26"],
    after: [...OF_ENGINES, ".ci/docker-26", ".ci/debian.sh"],
    inCheck: [".ci/docker-26", "test/docker/sandbox/modes.test.ts", "test/docker/image-metadata.test.ts"],
  },
  ...["podman", "podman-5"].flatMap((name) =>
    [1, 2].map((shard) => ({
      name: `${name}-${shard}`,
      about: `sandboxes on ${name === "podman" ? "the installed Podman" : "Podman 5"}, half of the tests`,
      command: [`.ci/${name}`, ...(name === "podman" ? ["podman", ".ci/podman"] : []), `--shard=${shard}/2`],
      after: shard === 1 ? [...OF_ENGINES, `.ci/${name}`] : [],
      inCheck:
        name === "podman" ? [".ci/podman", "podman", ".ci/podman", "test/docker/podman.test.ts"] : null,
    })),
  ),
  {
    name: "cgroup-v2",
    about: "an emulated machine with control groups of version 2",
    command: [".ci/cgroup-v2"],
  },
  { name: "rootless", about: "an emulated machine where a user has the engine", command: [".ci/rootless"] },
];
