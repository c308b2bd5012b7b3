import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { modelNames } from "../../../../../../src/agent/mcp/client/tool-list/tool-names.js";
import type { ToolName } from "../../../../../../src/tools/catalogue.js";

const identity = fc.record({ server: fc.string({ minLength: 1 }), tool: fc.string({ minLength: 1 }) });
const long = "x".repeat(80);

describe("the names of MCP tools for a model", () => {
  it("are server and tool, with what a name may not have replaced", () => {
    expect(
      modelNames([
        { server: "git", tool: "log" },
        { server: "my server", tool: "daten/lösen.v2" },
      ]),
    ).toEqual(["git__log", "my_server__daten_l_sen_v2"]);
  });

  it("get a hash of what they stand for if they would be too long", () => {
    const [name = ""] = modelNames([{ server: "files", tool: long }]);
    expect(name).toMatch(/^files__x{44}_[0-9a-f]{12}$/);
    expect(name).toHaveLength(64);
    expect(modelNames([{ server: "files", tool: long }])).toEqual([name]);
  });

  it("get a hash, all of them, if they would be the same", () => {
    const names = modelNames([
      { server: "a", tool: "b.c" },
      { server: "a", tool: "b c" },
      { server: "a", tool: "d" },
    ]);
    expect(names[0]).toMatch(/^a__b_c_[0-9a-f]{12}$/);
    expect(names[1]).toMatch(/^a__b_c_[0-9a-f]{12}$/);
    expect(names[2]).toBe("a__d");
  });

  it("stay different if a server names a tool like another one's hash", () => {
    const [hashed = ""] = modelNames([{ server: "a", tool: long }]);
    const imitation = { server: "a", tool: hashed.slice("a__".length) };
    const names = modelNames([imitation, { server: "a", tool: long }]);
    expect(names[0]).toBe(hashed);
    expect(new Set(names).size).toBe(2);
  });

  it("are allowed and different, whatever the servers are called and offer", () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(identity, { selector: ({ server, tool }) => JSON.stringify([server, tool]) }),
        (identities) => {
          const names = modelNames(identities);
          expect(new Set(names).size).toBe(identities.length);
          for (const name of names) expect(name).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
        },
      ),
    );
  });

  it("are the same in whatever order the tools come, if none imitates a hash", () => {
    const tools = fc.uniqueArray(fc.constantFrom("a b", "a.b", "a_b", long, `${long}y`, "c"));
    fc.assert(
      fc.property(tools, (some) => {
        const identities = some.map((tool) => ({ server: "s", tool }));
        expect(modelNames(identities.toReversed()).toReversed()).toEqual(modelNames(identities));
      }),
    );
  });

  it("are never those of brig's own tools", () => {
    type Own<Name> = Name extends `${string}__${string}` ? Name : never;
    // A type error here means that a tool of brig has a name that a server could take.
    const taken: Own<ToolName> extends never ? "none" : "some" = "none";
    expect(taken).toBe("none");
  });
});
