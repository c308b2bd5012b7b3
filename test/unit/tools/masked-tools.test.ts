import { expect, it } from "vitest";
import { MaskedTools } from "../../../src/tools/masked-tools.js";
import type { Tool, ToolActivity, ToolOutput } from "../../../src/tools/tool.js";
import type { ToolSandbox } from "../../../src/tools/tool-sandbox.js";

const maskSecrets = (text: string) => text.replaceAll("secret", "******");
const withSecrets = { maskSecrets } as ToolSandbox;
const without = {} as ToolSandbox;

function tool(output: ToolOutput, activity?: ToolActivity): Tool & { made: number } {
  return {
    ...{ name: "tool", description: "", supportsParallel: true, made: 0 },
    get spec() {
      this.made++;
      return { type: "local_shell" as const };
    },
    async execute(_, call) {
      if (activity !== undefined) call?.onActivity?.(activity);
      return output;
    },
  };
}

it("hides secrets in all texts that a tool returns and reports", async () => {
  const seen: ToolActivity[] = [];
  const output = { content: "a secret", success: true, more: [{ path: "/secret" }], parts: [] };
  const parts = [{ type: "input_text", text: "a secret" } as const];
  const masked = new MaskedTools(withSecrets, { waits: false }).over(
    tool({ ...output, parts }, { kind: "advice", text: "a secret" }),
  );
  const onActivity = (activity: ToolActivity) => void seen.push(activity);
  expect(await masked.execute({}, { onActivity })).toEqual({
    ...{ content: "a ******", success: true, more: [{ path: "/******" }] },
    parts: [{ type: "input_text", text: "a ******" }],
  });
  expect(seen).toEqual([{ kind: "advice", text: "a ******" }]);
});

it("leaves out an image with a secret, which asterisks would break", async () => {
  const image = (name: string) =>
    ({ type: "input_image", image_url: `data:image/png;base64,${name}` }) as const;
  const masked = new MaskedTools(withSecrets, { waits: false }).over(
    tool({ content: "", success: true, parts: [image("fine"), image("xsecretx")] }),
  );
  const { parts } = await masked.execute({});
  expect(parts).toEqual([
    image("fine"),
    { type: "input_text", text: "[an image was left out, because a secret is in it]" },
  ]);
});

it("waits for a sandbox that is starting where an output may come from elsewhere", async () => {
  let start: (sandbox: ToolSandbox) => void = () => undefined;
  const starting = new Promise<ToolSandbox>((resolve) => {
    start = resolve;
  });
  const masked = new MaskedTools(starting, { waits: true }).over(tool({ content: "secret", success: true }));
  const output = masked.execute({});
  start(withSecrets);
  expect((await output).content).toBe("******");
});

it("gives the outputs of a sandbox that could not start", async () => {
  const failed = Promise.reject<ToolSandbox>(new Error("no engine"));
  const masked = new MaskedTools(failed, { waits: true }).over(tool({ content: "text", success: true }));
  expect((await masked.execute({})).content).toBe("text");
});

it("changes nothing without secrets, and makes no declaration before it is asked for", async () => {
  const output = { content: "secret", success: true };
  const original = tool(output);
  const masked = new MaskedTools(without, { waits: false }).over(original) as typeof original;
  expect(await masked.execute({})).toBe(output);
  expect(masked.made).toBe(0);
  expect(masked.spec).toEqual({ type: "local_shell" });
  expect(masked).toMatchObject({ name: "tool", supportsParallel: true, made: 1 });
});
