import { describe, expect, it } from "vitest";
import { readSentRefs, sendPack } from "../../../../src/sandbox/branch/session-branch.js";
import { FrameType } from "../../../../src/sandbox/channel/protocol.js";
import { playedLink } from "../channel/played-link.js";

const tip = "a".repeat(40);
const longTip = "b".repeat(64);

interface Answer {
  stdout?: string;
  stderr?: string;
  exitCode?: number;
}

/** A sandbox in which one command after the other prints this. Keeps what each was asked, and its input. */
async function sandboxWith(answers: readonly Answer[]) {
  const { runner, link } = await playedLink();
  const asked: string[] = [];
  const input: string[] = [];
  runner.onFrame = ({ type, channel, payload }) => {
    if (type === FrameType.input) input.push(payload.toString("latin1"));
    if (type !== FrameType.spawn) return;
    const { stdout = "", stderr = "", exitCode = 0 } = answers[asked.length] ?? {};
    asked.push(payload.toString("latin1"));
    if (stdout !== "") runner.send(FrameType.stdout, channel, Buffer.from(stdout));
    if (stderr !== "") runner.send(FrameType.stderr, channel, Buffer.from(stderr));
    runner.exit(channel, exitCode);
  };
  const context = { link, cwd: "/", env: {}, onStuck: () => undefined };
  return { context, asked, input };
}

async function refsFrom(...answers: Answer[]) {
  const { context, asked } = await sandboxWith(answers);
  return { refs: readSentRefs(context, "/work"), asked };
}

describe("what the sandbox says of its commits", () => {
  it("is the commit that is checked out, and the branches that are not in it", async () => {
    const { refs, asked } = await refsFrom(
      { stdout: `${tip}\n` },
      { stdout: `${longTip} one\n${tip} two words\n` },
    );
    expect(await refs).toEqual({
      tip,
      branches: [
        { id: longTip, name: "one" },
        { id: tip, name: "two words" },
      ],
    });
    expect(asked[0]).toContain("HEAD^{commit}");
    expect(asked[1]).toContain(`--no-merged=${tip}`);
  });

  it.for<[string, Answer]>([
    ["git finds none", { exitCode: 1, stdout: `${tip}\n` }],
    ["its name is too short", { stdout: "a".repeat(39) }],
    ["its name is between the two lengths", { stdout: "a".repeat(41) }],
    ["something else is printed as well", { stdout: `--upload-pack=x ${tip}` }],
    ["its name has other letters", { stdout: "A".repeat(40) }],
  ])("is no commit where %s, so that all branches are asked for", async ([, answer]) => {
    const { refs, asked } = await refsFrom(answer, { stdout: `${tip} one\n` });
    expect(await refs).toEqual({ tip: null, branches: [{ id: tip, name: "one" }] });
    expect(asked[1]).not.toContain("--no-merged");
  });

  it("has no branches but those with the name of a commit and a short name", async () => {
    const { refs } = await refsFrom(
      { stdout: longTip },
      {
        stdout: `${"a".repeat(39)} one\n ${tip} two\n${tip} \n${tip} ${"n".repeat(201)}\n${tip} ${"n".repeat(200)}\n`,
      },
    );
    expect(await refs).toEqual({ tip: longTip, branches: [{ id: tip, name: "n".repeat(200) }] });
  });

  it("is refused where there is no git, and where git cannot read its repository", async () => {
    const { refs: withoutGit, asked } = await refsFrom({ exitCode: 127 });
    await expect(withoutGit).rejects.toMatchObject({
      code: "branch.refused",
      message: expect.stringContaining("has no git"),
      hint: expect.stringContaining("brig/base"),
    });
    expect(asked).toHaveLength(1);
    const { refs: broken } = await refsFrom(
      { exitCode: 1 },
      { exitCode: 128, stderr: "a\nfatal: \x1b[2J\n" },
    );
    await expect(broken).rejects.toMatchObject({
      code: "branch.refused",
      message: expect.stringContaining('"fatal: \\u001b[2J"'),
      hint: expect.stringContaining("the repository of this machine is unchanged"),
    });
  });
});

it("a pack is asked for without what both sides have, as far as this side has named it", async () => {
  const [shared, tag, foreign] = ["1", "2", "3"].map((digit) => digit.repeat(40));
  const { context, asked, input } = await sandboxWith([
    { stdout: `${shared} commit\n${tag} tag\n${foreign} commit\n${longTip} missing\n${tip} blob\n` },
    { stdout: "PACK" },
  ]);
  const known = [shared, tag, longTip, tip, shared].map(String);
  await using pack = await sendPack(context, { workspace: "/work", tip, known });
  const chunks: Uint8Array[] = [];
  for await (const chunk of pack.bytes) chunks.push(chunk);
  expect(Buffer.concat(chunks).toString()).toBe("PACK");
  expect(asked[0]).toContain("--batch-check=");
  expect(asked[1]).toContain("pack-objects");
  expect(input.join("")).toBe([shared, tag, longTip, tip, tip, `^${shared}`, `^${tag}`, ""].join("\n"));
});
