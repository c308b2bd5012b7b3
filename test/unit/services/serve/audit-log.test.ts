import { readFile, rename, rm, symlink, writeFile } from "node:fs/promises";
import { createServer, request } from "node:http";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { isBrigError } from "../../../../src/errors.js";
import { listenOnLoopback } from "../../../../src/lib/http/loopback.js";
import { AuditLog, maskedArguments } from "../../../../src/services/serve/audit-log.js";
import { temporaryDirectory } from "../../../support/sandbox.js";

/** Has a request answered with 204, which is noted. */
async function noteOne(log: AuditLog, path = "/"): Promise<void> {
  const server = createServer((incoming, outgoing) => {
    log.watch(incoming, outgoing);
    outgoing.writeHead(204).end();
  });
  const [host, port] = (await listenOnLoopback(server, 0)).split(":");
  await new Promise((resolve) => request({ host, port, path, agent: false }, resolve).end());
  await new Promise((resolve) => server.close(resolve));
}

describe("an audit log", () => {
  it("is appended to, and never by the way of a link", async () => {
    await using directory = await temporaryDirectory();
    const path = join(directory.path, "log");
    await writeFile(path, "earlier\n", { mode: 0o644 });
    {
      await using log = await AuditLog.open(path, () => undefined);
      await noteOne(log, `/\u2028"${"x".repeat(3000)}?secret`.replaceAll("\u2028", "%0a"));
    }
    const [earlier, line = "", end] = (await readFile(path, "utf8")).split("\n");
    expect([earlier, end]).toEqual(["earlier", ""]);
    expect(JSON.parse(line).path.length).toBe(1024);
    expect(line).not.toContain("secret");
    await symlink(path, join(directory.path, "link"));
    await expect(AuditLog.open(join(directory.path, "link"), () => undefined)).rejects.toMatchObject({
      code: "usage.invalid",
    });
  });

  it("counts what it cannot write, says so once, and goes on when it can again", async () => {
    await using directory = await temporaryDirectory();
    const path = join(directory.path, "log");
    const warnings: unknown[] = [];
    await using log = await AuditLog.open(path, (warning) => warnings.push(warning));
    // From now on there is nothing at the path that can be written.
    await rename(path, `${path}.moved`);
    await symlink("/dev/full", path);
    await expect
      .poll(async () => {
        await noteOne(log);
        return log.lostCount;
      })
      .toBeGreaterThan(20);
    expect(warnings.length).toBe(1);
    expect(isBrigError(warnings[0], "store.failed")).toBe(true);
    await rm(path);
    await expect
      .poll(async () => {
        await noteOne(log);
        return await readFile(path, "utf8").catch(() => "");
      })
      .toContain('"status":204');
    expect(warnings.length).toBe(1);
  });
});

it.each([
  [
    ["curl", "-H", "Authorization: Bearer abc"],
    ["curl", "-H", "Authorization: ***"],
  ],
  [
    ["sh", "-c", "curl -H 'Authorization: Bearer abc' x"],
    ["sh", "-c", "curl -H 'Authorization: ***' x"],
  ],
  [
    ["x", "--api-key", "abc", "-v"],
    ["x", "--api-key", "***", "-v"],
  ],
  [
    ["x", "--api-key=abc"],
    ["x", "--api-key=***"],
  ],
  [
    ["sh", "-c", "login --password abc -v"],
    ["sh", "-c", "login --password *** -v"],
  ],
  [
    ["env", "AWS_SECRET_ACCESS_KEY=abc", "make"],
    ["env", "AWS_SECRET_ACCESS_KEY=***", "make"],
  ],
  [
    ["git", "clone", "https://me:abc@host/x"],
    ["git", "clone", "https://***@host/x"],
  ],
  [
    ["make", "test"],
    ["make", "test"],
  ],
  [
    ["x", "y".repeat(300)],
    ["x", `${"y".repeat(256)}…`],
  ],
])("of %j the log has %j", (argv, shown) => {
  expect(maskedArguments(argv)).toEqual(shown);
});

it("has only so many arguments, and looks through long ones in no time that grows with their square", () => {
  const shown = maskedArguments(Array.from({ length: 100_000 }, () => "token".repeat(10_000)));
  expect(shown.length).toBe(33);
  expect(shown.at(-1)).toBe("… 99968 more");
});
