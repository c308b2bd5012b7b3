import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { readOutputSchema } from "../../../../src/command/flags/output-schema.js";
import { temporaryDirectory } from "../../../support/sandbox.js";

let folder: string;

beforeEach(async () => {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory[Symbol.asyncDispose]());
  folder = directory.path;
});

describe("an output schema", () => {
  const { signal } = new AbortController();

  it("is a JSON object", async () => {
    writeFileSync(join(folder, "schema.json"), '{"type":"object"}');
    expect(await readOutputSchema(join(folder, "schema.json"), signal)).toEqual({ type: "object" });
  });

  it.each<[string, Buffer]>([
    ["UTF-8", Buffer.from('\ufeff{"type":"object"}')],
    ["UTF-16", Buffer.from('\ufeff{"type":"object"}', "utf16le")],
  ])("may begin with a byte order mark: %s", async (_, bytes) => {
    writeFileSync(join(folder, "schema.json"), bytes);
    expect(await readOutputSchema(join(folder, "schema.json"), signal)).toEqual({ type: "object" });
  });

  it.each(["[]", "7", "null", "{"])("is not %s", async (text) => {
    writeFileSync(join(folder, "schema.json"), text);
    await expect(readOutputSchema(join(folder, "schema.json"), signal)).rejects.toMatchObject({
      code: "usage.invalid",
    });
  });
});
