import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

/**
 * Files share a process, which saves loading the source for each of them: no test replaces a module, and vitest gives back after each test
 * what it has spied on or stubbed.
 */
const isolate = false;

const usesEngine = {
  testTimeout: 300_000,
  hookTimeout: 300_000,
  // A poll is for what happens in the end, and vitest's own second is short on a machine that has other work.
  expect: { poll: { timeout: 60_000 } },
  // The tests share one engine, often on a small machine; but much of their time they wait.
  maxWorkers: 3,
  globalSetup: ["test/support/global-setup.ts"],
};

/** What takes long and is rarely changed by a change: long runs, figures, the runner's own tests and fuzzing, and tests of this suite itself. */
const deep = [
  "test/docker/figures/*.test.ts",
  "test/docker/runner-native.test.ts",
  "test/docker/sandbox/soak.test.ts",
  "test/docker/test-run.test.ts",
];

/**
 * What takes long, and finds faults that the others do not find, after changes of few files: other people's programs and protocols,
 * sandboxes that are killed or disturbed, random changes, whole batches and conversations.
 */
const slow = [
  "test/e2e/{acp,batch*,bisect,codex-*,conversation-changes,exec-server,git-*,kept-changes,killed-*,login,mcp-*,package,queue*,serve*}.test.ts",
  "test/e2e/{agents,approvals,context,conversation,doctor-attack,lease,overlay,session-steps,sessions,settings,unread-output,view-*,wrap-*}.test.ts",
  "test/docker/{exec-server,mcp,queue,runs,serve}/**/*.test.ts",
  "test/docker/{base-image,engine,image-prune,podman}.test.ts",
  "test/docker/sandbox/egress/real-clients.test.ts",
  "test/docker/sandbox/{kill,killed-session,lease,memory-left,reconnect,removal,silence,trouble}.test.ts",
  "test/docker/sandbox/overlay/{fork-changes,killed,random-*}.test.ts",
  "test/docker/sandbox/tree/{changes,commit-killed,copy}.test.ts",
  "test/isolation/**/*.test.ts",
];

/**
 * Where the runner itself is what is tested: its commands, streams, files and connections. The other tests of sandboxes ask it for nothing else,
 * and the runner's own tests have the sanitizers as well.
 */
const ofTheRunner = [
  "test/docker/sandbox/{bad-input,bridge,ended,files,first-stream,kill,lease,pipes,pty,receipt,reconnect,results}.test.ts",
  "test/docker/sandbox/{runner-abuse,silence,stdin}.test.ts",
  "test/docker/sandbox/network/*.test.ts",
  "test/docker/sandbox/egress/allow-list.test.ts",
  "test/docker/sandbox/overlay/{diff,random-changes}.test.ts",
  "test/docker/sandbox/tree/{commit,copy}.test.ts",
];

/** Random tests of which `npm test` runs a short form. */
const shortOtherwise = ["test/docker/apply-patch-program.test.ts", "test/unit/**/random-*.test.ts"];

export default defineConfig({
  root: fileURLToPath(new URL("..", import.meta.url)),
  test: {
    restoreMocks: true,
    unstubEnvs: true,
    reporters: ["default", fileURLToPath(new URL("reporter.mjs", import.meta.url))],
    projects: [
      {
        extends: true,
        test: {
          name: "unit",
          include: ["test/unit/**/*.test.ts"],
          // No unit test may fail because the machine has other work: these limits are for what never ends.
          testTimeout: 120_000,
          hookTimeout: 120_000,
          expect: { poll: { timeout: 60_000 } },
          // By default vitest leaves one processor idle, which is half of a small machine.
          maxWorkers: "100%",
          isolate,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: "docker",
          include: ["test/docker/**/*.test.ts"],
          exclude: [...deep, ...slow],
          sequence: { groupOrder: 1 },
          isolate,
          ...usesEngine,
        },
      },
      {
        extends: true,
        test: {
          name: "slow",
          include: slow,
          sequence: { groupOrder: 5 },
          isolate,
          ...usesEngine,
        },
      },
      {
        extends: true,
        test: {
          name: "deep",
          include: [...deep, ...shortOtherwise],
          env: { BRIG_TEST_DEEP: "1" },
          sequence: { groupOrder: 4 },
          ...usesEngine,
        },
      },
      {
        extends: true,
        test: {
          name: "sanitized",
          include: ofTheRunner,
          env: { BRIG_TEST_TOOLBOX: "asan" },
          sequence: { groupOrder: 3 },
          ...usesEngine,
        },
      },
      {
        extends: true,
        test: {
          name: "e2e",
          include: ["test/e2e/**/*.test.ts"],
          exclude: slow,
          sequence: { groupOrder: 2 },
          isolate,
          ...usesEngine,
        },
      },
    ],
  },
});
