import { afterEach, describe, expect, it } from "vitest";
import type { Engine } from "../../../../src/sandbox/docker/engine-types.js";
import { readBuildContext } from "../../../../src/sandbox/images/build-context.js";
import { compiledTags } from "../../../../src/sandbox/images/compiled-tags.js";
import { type ImageName, imageDefinitions } from "../../../../src/sandbox/images/definition.js";
import { findImage } from "../../../../src/sandbox/images/find-image.js";

const arch = "amd64";
/** The build of the program writes it; while its sources run it is empty. */
const compiled: Record<string, string> = compiledTags;

afterEach(() => {
  for (const name of Object.keys(compiled)) delete compiled[name];
});

/** Looks at an engine that has nothing, and notes what it was asked for. */
async function lookFor(name: ImageName) {
  const asked: string[] = [];
  const engine = {
    async inspectImage(tag: string) {
      asked.push(tag);
      return null;
    },
  } as Partial<Engine> as Engine;
  const outcome = await findImage(engine, { name, arch }).catch((error: unknown) => error);
  return { outcome, asked };
}

describe("the toolbox's files, against those that brig was compiled with", () => {
  it("are refused where they have changed since, and the engine is not asked for them", async () => {
    const { tag } = await readBuildContext(imageDefinitions.toolbox, arch);
    compiled[arch] = "brig/toolbox:000000000000";
    const { outcome, asked } = await lookFor("toolbox");
    expect(outcome).toMatchObject({
      code: "image.missing",
      message: `the files in images/toolbox have changed since brig was compiled; they now make ${tag}`,
      hint: "compile brig again: npm run build",
    });
    expect(asked).toEqual([]);
  });

  it("are looked for where they are the same", async () => {
    const { tag } = await readBuildContext(imageDefinitions.toolbox, arch);
    compiled[arch] = tag;
    const { outcome, asked } = await lookFor("toolbox");
    expect(outcome).toMatchObject({ name: "toolbox", context: { tag }, image: null });
    expect(asked).toEqual([tag]);
  });

  it("are looked for where nothing was compiled for the architecture, and other images always", async () => {
    const { tag } = await readBuildContext(imageDefinitions.toolbox, arch);
    compiled.arm64 = "brig/toolbox:000000000000";
    expect((await lookFor("toolbox")).asked).toEqual([tag]);
    compiled[arch] = "brig/toolbox:000000000000";
    expect((await lookFor("base")).outcome).toMatchObject({ name: "base", image: null });
  });
});
