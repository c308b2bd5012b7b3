import { once } from "node:events";
import { chmod, mkdir, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { serviceSocket, socketProblem } from "../../../../../src/services/lasting/home/service-socket.js";
import { temporaryFolder } from "../../../../support/batch-runs.js";

async function listening(path: string, mode: number): Promise<void> {
  const server = createServer().listen(path);
  onTestFinished(() => void server.close());
  await once(server, "listening");
  await chmod(path, mode);
}

it("the socket is in $BRIG_HOME, and elsewhere only if its path would be too long", () => {
  expect(serviceSocket("/home/u/.brig", 7)).toEqual({
    path: "/home/u/.brig/service.sock",
    directory: "/home/u/.brig",
  });
  const longest = `/${"x".repeat(93)}`;
  expect(serviceSocket(longest, 4_000_000).directory).toBe(longest);
  const long = serviceSocket(`${longest}x`, 4_000_000);
  expect(long.directory).toBe("/tmp/brig-4000000");
  expect(Buffer.byteLength(long.path)).toBeLessThanOrEqual(107);
  expect(serviceSocket(`${longest}y`, 4_000_000).path).not.toBe(long.path);
});

it("a socket that only its user can open, and none at all, is no problem", async () => {
  const home = join(await temporaryFolder(), "home");
  const socket = serviceSocket(home);
  expect(socketProblem(socket)).toBeNull();
  await mkdir(home, { mode: 0o755 });
  expect(socketProblem(socket)).toBeNull();
  await listening(socket.path, 0o600);
  expect(socketProblem(socket)).toBeNull();
});

it("whatever somebody else could have put there is a problem", async () => {
  const home = await temporaryFolder();
  const socket = serviceSocket(home);
  await chmod(home, 0o770);
  expect(socketProblem(socket)).toContain("other users may write to");
  await chmod(home, 0o700);
  expect(socketProblem(socket, 4_000_000)).toContain("belongs to another user");
  const other = await temporaryFolder();
  await listening(join(other, "real.sock"), 0o600);
  await symlink(join(other, "real.sock"), socket.path);
  expect(socketProblem(socket)).toContain("is not a socket");
  const third = serviceSocket(await temporaryFolder());
  await listening(third.path, 0o666);
  expect(socketProblem(third)).toContain("other users may connect to");
  const fourth = serviceSocket(await temporaryFolder());
  await writeFile(fourth.path, "");
  expect(socketProblem(fourth)).toContain("is not a socket");
});
