import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { execa } from "execa";
import { testProgram } from "./test-program.js";

const { path: sshd, missing } = await testProgram("openssh-server");

/** Why tests with ssh cannot run here; null if this machine has all that they need. */
export const missingForSsh =
  missing ??
  ["ssh", "ssh-keygen", "docker"].find((program) => spawnSync(program, ["--help"]).error !== undefined) ??
  null;

/** OpenSSH's server on loopback, into which this user may log in, and a `ssh` in the PATH of this process that knows it. */
export interface SshServer extends AsyncDisposable {
  /** As `DOCKER_HOST` spells it. */
  readonly endpoint: string;
  /** The private key of this user. */
  readonly clientKey: string;
  /** A file in which another key is known for it. */
  readonly wrongKnownHosts: string;
  /** Puts these lines before the configuration of the client. */
  configure(lines: string): Promise<void>;
  /** How many connections it has accepted. */
  logins(): number;
}

export async function sshServer(): Promise<SshServer> {
  const directory = await mkdtemp(join(tmpdir(), "brig-ssh-"));
  const file = (name: string) => join(directory, name);
  for (const name of ["host", "other-host", "client"])
    await execa("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-C", name, "-f", file(name)]);
  await execa("cp", [file("client.pub"), file("authorized")]);
  const port = await freePort();
  // As root it insists on this empty directory, which Debian's service makes.
  if (userInfo().uid === 0) await mkdir("/run/sshd", { recursive: true, mode: 0o755 });
  await writeFile(
    file("sshd_config"),
    [
      `Port ${port}`,
      "ListenAddress 127.0.0.1",
      `HostKey ${file("host")}`,
      `AuthorizedKeysFile ${file("authorized")}`,
      ...["PidFile none", "UsePAM no", "StrictModes no", "PasswordAuthentication no", "PermitRootLogin yes"],
    ].join("\n"),
  );
  const server = spawn(sshd, ["-D", "-e", "-f", file("sshd_config")], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  let log = "";
  server.stderr.setEncoding("utf8").on("data", (text: string) => {
    log += text;
  });
  for (let round = 0; !log.includes("listening") && round < 100; round++) await sleep(50);
  if (!log.includes("listening")) throw new Error(`sshd does not start: ${log}`);

  for (const name of ["host", "other-host"])
    await writeFile(
      file(`${name}.known`),
      `[127.0.0.1]:${port} ${await readFile(file(`${name}.pub`), "utf8")}`,
    );
  const usual = `IdentityFile ${file("client")}\nUserKnownHostsFile ${file("host.known")}\n`;
  const configure = (lines: string) =>
    writeFile(
      file("config"),
      `${lines}\n${usual}IdentitiesOnly yes\nIdentityAgent none\nGlobalKnownHostsFile none\n`,
    );
  await configure("");
  // OpenSSH reads the home of the user from the system's list, whatever HOME says.
  const { stdout: ssh } = await execa("which", ["ssh"]);
  await writeFile(file("ssh"), `#!/bin/sh\nexec ${ssh} -F ${file("config")} "$@"\n`);
  await chmod(file("ssh"), 0o755);
  const { PATH = "" } = process.env;
  process.env.PATH = `${directory}:${PATH}`;
  return {
    endpoint: `ssh://${userInfo().username}@127.0.0.1:${port}`,
    clientKey: file("client"),
    wrongKnownHosts: file("other-host.known"),
    configure,
    logins: () => log.split("Accepted publickey").length - 1,
    async [Symbol.asyncDispose]() {
      process.env.PATH = PATH;
      server.kill();
      await once(server, "exit");
      await rm(directory, { recursive: true, force: true });
    },
  };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
}
