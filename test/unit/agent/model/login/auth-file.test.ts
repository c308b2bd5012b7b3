import { execFileSync } from "node:child_process";
import { chmod, mkdir, readdir, readFile, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import {
  authFilePath,
  changeAuthFile,
  readAuthFile,
  removeAuthFile,
} from "../../../../../src/agent/model/login/auth-file.js";
import { storeApiKey } from "../../../../../src/agent/model/login/store-login.js";
import { describeError } from "../../../../../src/command/error-text.js";
import { createLock, readCurrentProcess } from "../../../../../src/lib/file-lock.js";
import { temporaryDirectory } from "../../../../support/sandbox.js";

const secret = "sk-very-secret-4711";
let home: string;

beforeEach(async () => {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory[Symbol.asyncDispose]());
  home = join(directory.path, "home");
});

async function modeOf(path: string): Promise<string> {
  return ((await stat(path)).mode & 0o7777).toString(8);
}

describe("auth.json", () => {
  it("is closed to others, and so is the directory made for it, whatever the umask", async () => {
    const umask = process.umask(0);
    onTestFinished(() => void process.umask(umask));
    await storeApiKey(home, secret);
    expect([await modeOf(home), await modeOf(authFilePath(home))]).toEqual(["700", "600"]);
  });

  it("is written as Codex writes it", async () => {
    await storeApiKey(home, secret);
    expect(JSON.parse(await readFile(authFilePath(home), "utf8"))).toEqual({
      auth_mode: "apikey",
      OPENAI_API_KEY: secret,
      tokens: null,
    });
  });

  it("is replaced as a whole: no moment shows half of it, and nothing else stays in the directory", async () => {
    await storeApiKey(home, secret);
    const before = await stat(authFilePath(home));
    await writeFile(join(home, "auth.json.0123456789abcdef.tmp"), "left over by a killed process");
    await storeApiKey(home, "another");
    expect((await stat(authFilePath(home))).ino).not.toBe(before.ino);
    expect(await readdir(home)).toEqual(["auth.json"]);
  });

  it("is not changed while another process changes it: the wait ends with who that is", async () => {
    await storeApiKey(home, secret);
    const lock = createLock(authFilePath(home), await readCurrentProcess());
    const [claim = ""] = (await readdir(home)).filter((name) => name !== "auth.json");
    const change = async () => ({ OPENAI_API_KEY: "b" });
    await expect(changeAuthFile(home, change, { waitMs: 100 })).rejects.toMatchObject({
      code: "model.auth",
      message: `process ${process.pid} holds the lock of the login`,
      hint: expect.stringContaining(join(home, claim)),
    });
    lock.release();
    await changeAuthFile(home, change, { waitMs: 100 });
    expect(await readAuthFile(home)).toEqual({ OPENAI_API_KEY: "b" });
  });

  it("keeps what it does not know through a change", async () => {
    await mkdir(home);
    await writeFile(authFilePath(home), JSON.stringify({ OPENAI_API_KEY: "a", agent_identity: "b" }));
    await changeAuthFile(home, async (read) => ({ ...(await read()), OPENAI_API_KEY: "c" }));
    expect(await readAuthFile(home)).toEqual({ OPENAI_API_KEY: "c", agent_identity: "b" });
  });

  it("is nothing where there is no file, and no directory", async () => {
    expect(await readAuthFile(home)).toBeNull();
    expect(await removeAuthFile(home)).toBe(false);
    expect(await readAuthFile("/dev/null")).toBeNull();
  });

  it("is closed to others when it is found open", async () => {
    await storeApiKey(home, secret);
    await chmod(authFilePath(home), 0o644);
    expect(await readAuthFile(home)).toMatchObject({ OPENAI_API_KEY: secret });
    expect(await modeOf(authFilePath(home))).toBe("600");
  });

  it.each([
    ["everybody", 0o777, "755"],
    ["the group alone", 0o770, "750"],
    ["all but the group", 0o707, "705"],
  ])("takes from %s the right to replace files in a directory that was there", async (_, before, after) => {
    await mkdir(home);
    await chmod(home, before);
    await storeApiKey(home, secret);
    expect(await modeOf(home)).toBe(after);
  });

  it("is removed with what a killed process left", async () => {
    await storeApiKey(home, secret);
    await writeFile(join(home, "auth.json.0123456789abcdef.tmp"), secret);
    expect(await removeAuthFile(home)).toBe(true);
    expect(await readdir(home)).toEqual([]);
  });

  it("is not followed where it is a symbolic link: it is refused, and a login replaces the link alone", async () => {
    await mkdir(home);
    const target = join(home, "target");
    await writeFile(target, JSON.stringify({ OPENAI_API_KEY: "somebody's" }));
    await symlink(target, authFilePath(home));
    await expect(readAuthFile(home)).rejects.toMatchObject({
      code: "model.auth",
      message: expect.stringContaining("is a symbolic link"),
    });
    await storeApiKey(home, secret);
    expect(await readFile(target, "utf8")).toContain("somebody's");
    expect(await readAuthFile(home)).toMatchObject({ OPENAI_API_KEY: secret });
  });

  it.each([
    ["a FIFO", (path: string) => void execFileSync("mkfifo", [path])],
    ["a directory", async (path: string) => void (await mkdir(path))],
  ])("that is %s is refused at once", async (_name, make) => {
    await mkdir(home);
    await make(authFilePath(home));
    await expect(readAuthFile(home)).rejects.toMatchObject({
      code: "model.auth",
      message: expect.stringMatching(/is not a regular file/),
    });
  });

  it.each([
    ["half a file", `{"OPENAI_API_KEY": "${secret}`],
    ["a key in two lines", JSON.stringify({ OPENAI_API_KEY: `${secret}\r\nx-evil: 1` })],
    ["a key that is a number", JSON.stringify({ OPENAI_API_KEY: 1, other: secret })],
    [
      "tokens without a refresh token",
      JSON.stringify({ tokens: { id_token: secret, access_token: secret } }),
    ],
    ["a list", JSON.stringify([secret])],
    ["an empty file", ""],
    ["two megabytes", JSON.stringify({ OPENAI_API_KEY: secret, filler: "x".repeat(2 << 20) })],
  ])("with %s is refused, and its content not quoted", async (_name, content) => {
    await mkdir(home);
    await writeFile(authFilePath(home), content);
    const error = await readAuthFile(home).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "model.auth" });
    expect(describeError(error, { showsCauses: true })).not.toContain(secret.slice(0, 9));
  });

  it("that cannot be read does not stand in the way of a new login", async () => {
    await mkdir(home);
    await writeFile(authFilePath(home), "{");
    await storeApiKey(home, secret);
    expect(await readAuthFile(home)).toMatchObject({ OPENAI_API_KEY: secret });
  });

  it("has a home that must be a directory", async () => {
    await writeFile(home, "");
    await expect(storeApiKey(home, secret)).rejects.toMatchObject({
      code: "model.auth",
      message: `${home} cannot hold a login`,
    });
  });
});
