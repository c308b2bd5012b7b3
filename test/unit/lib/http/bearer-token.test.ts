import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { hasToken, newToken, readTokenFile } from "../../../../src/lib/http/bearer-token.js";
import { temporaryDirectory } from "../../../support/sandbox.js";

const token = "0123456789abcdef";

describe("a token", () => {
  it("is long, of one word, and another one each time", () => {
    expect(newToken()).toMatch(/^[0-9a-f]{64}$/);
    expect(newToken()).not.toBe(newToken());
  });

  it("is recognised in the Authorization header alone", () => {
    expect(hasToken({ authorization: `Bearer ${token}` }, token)).toBe(true);
    expect(hasToken({ authorization: `bearer ${token}` }, token)).toBe(true);
    for (const authorization of [
      "",
      token,
      `Basic ${token}`,
      `Bearer ${token} `,
      `Bearer ${token}0`,
      "Bearer ",
    ])
      expect(hasToken({ authorization }, token), authorization).toBe(false);
    expect(hasToken({}, token)).toBe(false);
  });

  it("is read from a file, with white space around it", async () => {
    await using directory = await temporaryDirectory();
    const file = join(directory.path, "token");
    await writeFile(file, `${token}\n`);
    expect(await readTokenFile(file)).toBe(token);
  });

  it.each(["", "short", "two words that are long enough", `${token}\u00e9`])(
    "that a file with %j does not hold is refused",
    async (content) => {
      await using directory = await temporaryDirectory();
      const file = join(directory.path, "token");
      await writeFile(file, content);
      await expect(readTokenFile(file)).rejects.toMatchObject({
        code: "usage.invalid",
        message: expect.stringMatching(/does not hold one word of at least 16 characters$/),
      });
    },
  );

  it("in a file that does not exist is refused", async () => {
    await expect(readTokenFile("/proc/no/such/file")).rejects.toMatchObject({
      message: 'the token file "/proc/no/such/file" does not exist',
    });
  });
});
