import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { hostFiles } from "../../../support/host-files.js";
import { patchCases } from "../../../support/patch-cases.js";
import { toolsEngine, tried } from "../../../support/patch-engines.js";

const parent = await realpath(await mkdtemp(join(tmpdir(), "brig-patch-")));
afterAll(() => rm(parent, { recursive: true }));

describe("the tools", () => {
  it.each(patchCases)("$what", async (given) => {
    const { seen, wanted } = await tried(toolsEngine(hostFiles), { parent, ...given });
    expect(seen).toEqual(wanted);
  });
});
