import { describe, expect, it } from "vitest";
import { configSchema } from "../../../../src/agent/config/config-schema.js";
import { configuredGates } from "../../../../src/agent/open/configured-options.js";
import { isOffered, mergeGates } from "../../../../src/tools/tool-gates.js";

const gatesOf = (config: object) => configuredGates(configSchema.parse(config));

describe("Codex's list of tools for looking around", () => {
  it("switches off what it does not name, and says nothing where it is not there", () => {
    const some = mergeGates([
      { source: "config", gates: gatesOf({ experimental_supported_tools: ["grep_files", "x"] }) },
    ]);
    expect(["read_file", "list_dir", "grep_files"].map((name) => isOffered(name, some))).toEqual([
      false,
      false,
      true,
    ]);
    expect(gatesOf({ experimental_supported_tools: [] })).toMatchObject({
      read_file: false,
      list_dir: false,
    });
    expect(gatesOf({})).not.toHaveProperty("read_file");
  });

  it("gives way to the table of tools", () => {
    const config = {
      experimental_supported_tools: ["grep_files"],
      tools: { read_file: true, grep_files: false },
    };
    expect(gatesOf(config)).toMatchObject({ read_file: true, list_dir: false, grep_files: false });
  });
});
