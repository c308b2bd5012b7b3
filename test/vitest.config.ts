import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
// @ts-expect-error -- a plain script without types
import { throughDoors } from "../scripts/doors.js";
import { deep, ofTheRunner, ofTools, shortOtherwise, slow } from "./projects.js";

/**
 * Files share a process, which saves loading the source for each of them: no test replaces a module, and what is spied on or stubbed is given
 * back (support/given-back.ts).
 */
const isolate = false;

const withoutEngine = {
  // No unit test may fail because the machine has other work: these limits are for what never ends.
  testTimeout: 120_000,
  hookTimeout: 120_000,
  // By default vitest leaves one processor idle, which is half of a small machine.
  maxWorkers: "100%",
};

const usesEngine = {
  testTimeout: 300_000,
  hookTimeout: 300_000,
  // The tests share one engine, often on a small machine; but much of their time they wait.
  maxWorkers: 3,
  globalSetup: ["test/support/global-setup.ts"],
};

export default defineConfig({
  root: fileURLToPath(new URL("..", import.meta.url)),
  // A test loads the files that it needs, and not each part of src as a whole.
  plugins: [throughDoors()],
  test: {
    setupFiles: ["test/support/given-back.ts"],
    restoreMocks: true,
    unstubEnvs: true,
    // A poll is for what happens in the end, and vitest's own second is short on a machine that has other work.
    expect: { poll: { timeout: 60_000 } },
    reporters: ["default", fileURLToPath(new URL("reporter.mjs", import.meta.url))],
    projects: [
      {
        extends: true,
        test: {
          name: "unit",
          include: ["test/unit/**/*.test.ts"],
          exclude: ofTools,
          isolate,
          sequence: { groupOrder: 0 },
          ...withoutEngine,
        },
      },
      {
        extends: true,
        test: { name: "tools", include: ofTools, sequence: { groupOrder: 0 }, isolate, ...withoutEngine },
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
          name: "e2e",
          include: ["test/e2e/**/*.test.ts"],
          exclude: slow,
          sequence: { groupOrder: 1 },
          isolate,
          ...usesEngine,
        },
      },
      {
        extends: true,
        test: { name: "slow", include: slow, sequence: { groupOrder: 1 }, isolate, ...usesEngine },
      },
      {
        extends: true,
        test: {
          name: "deep",
          include: deep,
          env: { BRIG_TEST_DEEP: "1" },
          sequence: { groupOrder: 2 },
          ...usesEngine,
        },
      },
      {
        extends: true,
        test: {
          name: "random",
          include: shortOtherwise,
          env: { BRIG_TEST_DEEP: "1" },
          sequence: { groupOrder: 3 },
          ...usesEngine,
        },
      },
      {
        extends: true,
        test: {
          name: "sanitized",
          include: ofTheRunner,
          env: { BRIG_TEST_TOOLBOX: "asan" },
          sequence: { groupOrder: 4 },
          ...usesEngine,
        },
      },
    ],
  },
});
