import { parse } from "smol-toml";
import { describe, expect, it } from "vitest";
import { addBrigEnvironment } from "../../../../src/cli/codex/environments-toml.js";

const add = (text: string, program = "brig") =>
  addBrigEnvironment(text, { program, file: "environments.toml" });

const fresh = `default = "brig"
include_local = false

[[environments]]
id = "brig"
program = "brig"
args = ["exec-server", "--listen", "stdio"]
`;

describe("Codex's environments.toml", () => {
  it("is written where there is none", () => {
    expect(add("").text).toBe(fresh);
  });

  it("is left as it is once everything is there", () => {
    expect(add(fresh)).toEqual({ text: fresh, changes: [] });
  });

  it("keeps what it has, comments included", () => {
    const before = `# mine
default = "box" # for now
[[environments]]
id = "box" # over there
url = "ws://127.0.0.1:1"
`;
    const { text, changes } = add(before);
    expect(text).toBe(`include_local = false
# mine
default = "brig" # for now
[[environments]]
id = "box" # over there
url = "ws://127.0.0.1:1"

[[environments]]
id = "brig"
program = "brig"
args = ["exec-server", "--listen", "stdio"]
`);
    expect(changes).toEqual([
      'default = "brig" (was "box")',
      "include_local = false: no command runs on this machine itself",
      'environment "brig" added: brig exec-server --listen stdio',
    ]);
  });

  it("has brig's own environment brought up to date, with its other settings", () => {
    const before = `default = "brig"
include_local = false
[[environments]] # ours
id = "brig"
url = "ws://127.0.0.1:1"
auth_bearer_token = "x"
initialize_timeout_sec = 30 # slow
[[environments]]
id = "z"
program = "z"
`;
    const { text } = add(before, "/opt/my brig");
    expect(parse(text)).toEqual({
      default: "brig",
      include_local: false,
      environments: [
        {
          id: "brig",
          program: "/opt/my brig",
          args: ["exec-server", "--listen", "stdio"],
          initialize_timeout_sec: 30,
        },
        { id: "z", program: "z" },
      ],
    });
    expect(text).toContain("[[environments]] # ours\n");
    expect(text).toContain("initialize_timeout_sec = 30 # slow\n");
  });

  it.each([
    ["tables in a line", 'environments = [{ id = "a", program = "b" }]\n'],
    ["a value over several lines", 'default = """\nbox"""\n[[environments]]\nid = "box"\nprogram = "x"\n'],
    ["arguments over several lines", '[[environments]]\nid = "brig"\nprogram = "x"\nargs = [\n  "a",\n]\n'],
  ])("is not changed where that could lose something: %s", (_, text) => {
    expect(() => add(text)).toThrow(
      expect.objectContaining({
        code: "config.invalid",
        hint: expect.stringContaining("include_local = false"),
      }),
    );
  });

  it.each([
    ["no TOML", "default = ", /^environments\.toml:1:\d+: /],
    ["another type", "default = 1\n", /not what Codex reads/],
    ["an environment without a name", '[[environments]]\nprogram = "x"\n', /not what Codex reads/],
  ])("is refused as it is: %s", (_, text, message) => {
    expect(() => add(text)).toThrow(
      expect.objectContaining({ code: "config.invalid", message: expect.stringMatching(message) }),
    );
  });
});
