import { readFileSync } from "node:fs";
import { type ConnectionOpts, E2B, Sandbox, Secret, Template, TemplateBase, Volume } from "e2b";

/** A place in which each method of E2B's client is tried. */
export interface MethodPlace {
  sandbox: Sandbox;
  options: Required<Pick<ConnectionOpts, "apiUrl" | "apiKey" | "sandboxUrl">>;
}

/** What a method is tried with, and what the page says of it where that is more than the outcome. */
export type Attempt =
  | ((place: MethodPlace) => unknown)
  | { try: (place: MethodPlace) => unknown; differs?: string; refused?: string };

const wait = async (check: () => boolean) => {
  while (!check()) await new Promise((resolve) => setTimeout(resolve, 20));
};
const needs = (isTrue: boolean) => {
  if (!isTrue) throw new Error("the method has done something else");
};
const copies = "the files of the home directory are copied, no processes and no memory";
const capped = "a time beyond `--max-life` is cut to it; `endAt` says the truth";
const later = (run: (place: MethodPlace & { sandbox: Sandbox }) => unknown) => async (place: MethodPlace) => {
  const sandbox = await Sandbox.create(place.options);
  try {
    return await run({ ...place, sandbox });
  } finally {
    await sandbox.kill();
  }
};
const paused = (pause: (place: MethodPlace) => Promise<boolean>): Attempt => ({
  try: later(async (place) => needs(await pause(place))),
  differs: "the processes are frozen, and stay in the memory of the machine; see [sandboxes](#sandboxes)",
});
const snapshots = async (run: (place: MethodPlace, id: string) => unknown, place: MethodPlace) => {
  const { snapshotId } = await place.sandbox.createSnapshot({ name: "of-a-method" });
  try {
    return await run(place, snapshotId);
  } finally {
    await Sandbox.deleteSnapshot(snapshotId, place.options);
  }
};

const ofSandbox: Record<string, Attempt> = {
  "Sandbox.create": {
    try: async ({ options }) =>
      needs(await (await Sandbox.create("base", { ...options, timeoutMs: 30_000 })).kill()),
    differs: `a template is \`base\`, a name in \`[templates]\`, a snapshot or an image; refused: \`lifecycle\` with \`keepMemory: false\`, \`mcp\`, \`iam\`, \`volumeMounts\`, \`network.egressProxy\`, \`network.httpsPorts\`; ${capped}`,
  },
  "Sandbox.connect": async ({ sandbox, options }) =>
    needs(await (await Sandbox.connect(sandbox.sandboxId, options)).isRunning()),
  "Sandbox.list": async ({ options }) => needs((await Sandbox.list(options).nextItems()).length > 0),
  "Sandbox.kill": later(async ({ sandbox, options }) =>
    needs(await Sandbox.kill(sandbox.sandboxId, options)),
  ),
  "Sandbox.fork": {
    try: async ({ sandbox, options }) => await endAll(await Sandbox.fork(sandbox.sandboxId, options)),
    differs: copies,
  },
  "Sandbox.getInfo": async ({ sandbox, options }) => await Sandbox.getInfo(sandbox.sandboxId, options),
  "Sandbox.getFullInfo": async ({ sandbox, options }) =>
    await Sandbox.getFullInfo(sandbox.sandboxId, options),
  "Sandbox.getMetrics": {
    try: async ({ sandbox, options }) =>
      needs((await Sandbox.getMetrics(sandbox.sandboxId, options)).length === 1),
    differs: "one entry, of the moment; those of the disk are 0",
  },
  "Sandbox.setTimeout": {
    try: async ({ sandbox, options }) => await Sandbox.setTimeout(sandbox.sandboxId, 60_000, options),
    differs: capped,
  },
  "Sandbox.updateNetwork": {
    try: async ({ sandbox, options }) => await Sandbox.updateNetwork(sandbox.sandboxId, {}, options),
    differs: "see [the network](#the-network)",
  },
  "Sandbox.pause": paused(async ({ sandbox, options }) => await Sandbox.pause(sandbox.sandboxId, options)),
  "Sandbox.betaPause": paused(
    async ({ sandbox, options }) => await Sandbox.betaPause(sandbox.sandboxId, options),
  ),
  "Sandbox.createSnapshot": {
    try: async (place) => await snapshots(({ options }) => Sandbox.listSnapshots(options).nextItems(), place),
    differs: copies,
  },
  "Sandbox.listSnapshots": async (place) =>
    await snapshots(
      async ({ sandbox: { sandboxId }, options }) =>
        needs((await Sandbox.listSnapshots({ ...options, sandboxId }).nextItems()).length === 1),
      place,
    ),
  "Sandbox.deleteSnapshot": async ({ sandbox, options }) =>
    needs(await Sandbox.deleteSnapshot((await sandbox.createSnapshot()).snapshotId, options)),
  "sandbox.connect": async ({ sandbox }) => needs((await sandbox.connect()) === sandbox),
  "sandbox.fork": { try: async ({ sandbox }) => await endAll(await sandbox.fork()), differs: copies },
  "sandbox.getHost": {
    try: ({ sandbox }) => needs(sandbox.getHost(3000).startsWith(`3000-${sandbox.sandboxId}.`)),
    differs: "see [ports](#ports)",
  },
  "sandbox.isRunning": async ({ sandbox }) => needs(await sandbox.isRunning()),
  "sandbox.setTimeout": { try: async ({ sandbox }) => await sandbox.setTimeout(60_000), differs: capped },
  "sandbox.updateNetwork": {
    try: async ({ sandbox }) => await sandbox.updateNetwork({ allowInternetAccess: false }),
    differs: "see [the network](#the-network)",
  },
  "sandbox.kill": later(async ({ sandbox }) => needs(await sandbox.kill())),
  "sandbox.pause": paused(async ({ sandbox }) => await sandbox.pause()),
  "sandbox.betaPause": paused(async ({ sandbox }) => await sandbox.betaPause()),
  "sandbox.createSnapshot": {
    try: async (place) => await snapshots(() => undefined, place),
    differs: copies,
  },
  "sandbox.listSnapshots": async (place) =>
    await snapshots(
      async ({ sandbox }) => needs((await sandbox.listSnapshots().nextItems()).length === 1),
      place,
    ),
  "sandbox.getInfo": async ({ sandbox }) => needs((await sandbox.getInfo()).sandboxId === sandbox.sandboxId),
  "sandbox.getMetrics": {
    try: async ({ sandbox }) => needs((await sandbox.getMetrics()).length === 1),
    differs: "one entry, of the moment; those of the disk are 0",
  },
  "sandbox.getMcpUrl": {
    try: ({ sandbox }) => sandbox.getMcpUrl(),
    differs: "nothing answers there: there is no MCP gateway",
  },
  "sandbox.getMcpToken": {
    try: async ({ sandbox }) => await sandbox.getMcpToken(),
    refused: "there is no MCP gateway, and no file with its token",
  },
  "sandbox.uploadUrl": async ({ sandbox }) => {
    const body = new FormData();
    body.append("file", new Blob(["sent"]), "sent.txt");
    await fetch(await sandbox.uploadUrl("sent.txt", { useSignatureExpiration: 60 }), {
      method: "POST",
      body,
    });
    needs((await sandbox.files.read("sent.txt")) === "sent");
  },
  "sandbox.downloadUrl": async ({ sandbox }) => {
    await sandbox.files.write("got.txt", "got");
    needs((await (await fetch(await sandbox.downloadUrl("got.txt"))).text()) === "got");
  },
  "paginator.nextItems": async ({ options }) => needs((await Sandbox.list(options).nextItems()).length > 0),
  "paginator.hasNext": ({ options }) => needs(Sandbox.list(options).hasNext),
  "paginator.nextToken": ({ options }) => needs(Sandbox.list(options).nextToken === undefined),
};

async function endAll(forks: (Sandbox | Error)[]): Promise<void> {
  for (const fork of forks) {
    if (fork instanceof Error) throw fork;
    await fork.kill();
  }
}

const ofCommands: Record<string, Attempt> = {
  "commands.run": async ({ sandbox }) =>
    needs((await sandbox.commands.run("echo $((6 * 7))")).stdout === "42\n"),
  "commands.list": async ({ sandbox }) => {
    const { pid, kill } = await inBackground(sandbox);
    needs((await sandbox.commands.list()).some((one) => one.pid === pid));
    await kill();
  },
  "commands.connect": async ({ sandbox }) => {
    const { pid, kill } = await inBackground(sandbox);
    needs((await sandbox.commands.connect(pid)).pid === pid);
    await kill();
  },
  "commands.sendStdin": async ({ sandbox }) => {
    const handle = await sandbox.commands.run("read line; echo got $line", { background: true, stdin: true });
    await sandbox.commands.sendStdin(handle.pid, "it\n");
    needs((await handle.wait()).stdout === "got it\n");
  },
  "commands.closeStdin": async ({ sandbox }) => {
    const handle = await sandbox.commands.run("cat; echo end", { background: true, stdin: true });
    await sandbox.commands.closeStdin(handle.pid);
    needs((await handle.wait()).stdout === "end\n");
  },
  "commands.kill": async ({ sandbox }) =>
    needs(await sandbox.commands.kill((await inBackground(sandbox)).pid)),
  "commands.supportsStdinClose": ({ sandbox }) => needs(sandbox.commands.supportsStdinClose),
  "handle.wait": async ({ sandbox }) =>
    needs((await (await sandbox.commands.run("echo x", { background: true })).wait()).stdout === "x\n"),
  "handle.disconnect": async ({ sandbox }) => {
    const handle = await sandbox.commands.run("sleep 1000", { background: true });
    await handle.disconnect();
    needs((await sandbox.commands.list()).some(({ pid }) => pid === handle.pid));
    await sandbox.commands.kill(handle.pid);
  },
  "handle.kill": async ({ sandbox }) =>
    needs(await (await sandbox.commands.run("sleep 1000", { background: true })).kill()),
  "handle.sendStdin": async ({ sandbox }) => {
    const handle = await sandbox.commands.run("read line; echo got $line", { background: true, stdin: true });
    await handle.sendStdin("it\n");
    needs((await handle.wait()).stdout === "got it\n");
  },
  "handle.closeStdin": async ({ sandbox }) => {
    const handle = await sandbox.commands.run("cat", { background: true, stdin: true });
    await handle.closeStdin();
    await handle.wait();
  },
  ...Object.fromEntries(
    (["exitCode", "error", "stdout", "stderr"] as const).map((name) => [
      `handle.${name}`,
      async ({ sandbox }: MethodPlace) => {
        const handle = await sandbox.commands.run("echo out; echo err >&2", { background: true });
        await handle.wait();
        needs({ exitCode: 0, error: undefined, stdout: "out\n", stderr: "err\n" }[name] === handle[name]);
      },
    ]),
  ),
  "pty.create": async ({ sandbox }) => await (await terminal(sandbox)).kill(),
  "pty.connect": async ({ sandbox }) => {
    const { pid, kill } = await terminal(sandbox);
    needs((await sandbox.pty.connect(pid)).pid === pid);
    await kill();
  },
  "pty.sendInput": async ({ sandbox }) => {
    const { pid, seen, kill } = await terminal(sandbox);
    await sandbox.pty.sendInput(pid, Buffer.from("echo $((6 * 7))\n"));
    await wait(() => seen().includes("42"));
    await kill();
  },
  "pty.resize": async ({ sandbox }) => {
    const { pid, seen, kill } = await terminal(sandbox);
    await sandbox.pty.resize(pid, { cols: 91, rows: 17 });
    await sandbox.pty.sendInput(pid, Buffer.from("stty size\n"));
    await wait(() => seen().includes("17 91"));
    await kill();
  },
  "pty.kill": async ({ sandbox }) => needs(await sandbox.pty.kill((await terminal(sandbox)).pid)),
};

async function inBackground(sandbox: Sandbox) {
  const { pid } = await sandbox.commands.run("sleep 1000", { background: true });
  return { pid, kill: async () => needs(await sandbox.commands.kill(pid)) };
}

async function terminal(sandbox: Sandbox) {
  let text = "";
  const onData = (data: Uint8Array) => {
    text += Buffer.from(data).toString();
  };
  const { pid } = await sandbox.pty.create({ cols: 80, rows: 24, onData });
  return { pid, seen: () => text, kill: async () => void (await sandbox.pty.kill(pid)) };
}

const ofFiles: Record<string, Attempt> = {
  "files.read": async ({ sandbox }) => {
    await sandbox.files.write("read", "text");
    needs((await sandbox.files.read("read")) === "text");
    needs((await sandbox.files.read("read", { format: "bytes" })).length === 4);
  },
  "files.write": async ({ sandbox }) =>
    needs((await sandbox.files.write("a/new/file", "text")).name === "file"),
  "files.writeFiles": async ({ sandbox }) =>
    needs(
      (
        await sandbox.files.writeFiles([
          { path: "one", data: "1" },
          { path: "two", data: "2" },
        ])
      ).length === 2,
    ),
  "files.list": async ({ sandbox }) => {
    await sandbox.files.write("listed/file", "");
    needs((await sandbox.files.list("listed"))[0]?.name === "file");
  },
  "files.makeDir": async ({ sandbox }) => needs(await sandbox.files.makeDir(`made-${Date.now()}`)),
  "files.rename": async ({ sandbox }) => {
    await sandbox.files.write("before", "");
    needs((await sandbox.files.rename("before", "after")).name === "after");
  },
  "files.remove": async ({ sandbox }) => {
    await sandbox.files.write("removed", "");
    await sandbox.files.remove("removed");
    needs(!(await sandbox.files.exists("removed")));
  },
  "files.exists": async ({ sandbox }) => needs(!(await sandbox.files.exists("nothing"))),
  "files.getInfo": async ({ sandbox }) => {
    await sandbox.files.write("info", "1234");
    needs((await sandbox.files.getInfo("info")).size === 4);
  },
  "files.watchDir": async ({ sandbox }) => await (await watch(sandbox)).stop(),
  "watch.stop": async ({ sandbox }) => await (await watch(sandbox)).stop(),
};

async function watch(sandbox: Sandbox) {
  await sandbox.files.makeDir("watched");
  const names: string[] = [];
  const handle = await sandbox.files.watchDir("watched", ({ name }) => void names.push(name));
  await sandbox.files.write("watched/file", "");
  await wait(() => names.includes("file"));
  return handle;
}

/** Each in a repository of its own, with a commit and a remote that is another directory. */
const inRepository =
  (run: (git: Sandbox["git"], path: string, place: MethodPlace) => unknown) => async (place: MethodPlace) => {
    const path = `/home/user/repository-${Math.random().toString(36).slice(2)}`;
    await place.sandbox.commands.run(
      `git init -q --bare ${path}.git && git init -q -b main ${path} && cd ${path} && git config user.name me && git config user.email me@example.com &&
       echo 1 > file && git add file && git commit -qm first && git remote add origin ${path}.git && git push -q -u origin main`,
    );
    return await run(place.sandbox.git, path, place);
  };

const ofGit: Record<string, Attempt> = {
  "git.clone": inRepository(async (git, path) => await git.clone(`${path}.git`, { path: `${path}-clone` })),
  "git.init": inRepository(async (git, path) => await git.init(`${path}-new`)),
  "git.remoteAdd": inRepository(async (git, path) => await git.remoteAdd(path, "other", `${path}.git`)),
  "git.remoteGet": inRepository(async (git, path) =>
    needs((await git.remoteGet(path, "origin")) === `${path}.git`),
  ),
  "git.status": inRepository(async (git, path) => needs((await git.status(path)).currentBranch === "main")),
  "git.branches": inRepository(async (git, path) =>
    needs((await git.branches(path)).branches.includes("main")),
  ),
  "git.createBranch": inRepository(async (git, path) => await git.createBranch(path, "new")),
  "git.checkoutBranch": inRepository(async (git, path) => {
    await git.createBranch(path, "new");
    await git.checkoutBranch(path, "main");
  }),
  "git.deleteBranch": inRepository(async (git, path) => {
    await git.createBranch(path, "new");
    await git.checkoutBranch(path, "main");
    await git.deleteBranch(path, "new");
  }),
  "git.add": inRepository(async (git, path) => await git.add(path)),
  "git.commit": inRepository(async (git, path, { sandbox }) => {
    await sandbox.files.write(`${path}/file`, "2");
    await git.add(path);
    await git.commit(path, "second");
  }),
  "git.reset": inRepository(async (git, path) => await git.reset(path, { mode: "hard" })),
  "git.restore": inRepository(
    async (git, path) => await git.restore(path, { paths: ["file"], worktree: true }),
  ),
  "git.push": inRepository(async (git, path) => await git.push(path)),
  "git.pull": inRepository(async (git, path) => await git.pull(path)),
  "git.setConfig": inRepository(
    async (git, path) => await git.setConfig("a.b", "c", { scope: "local", path }),
  ),
  "git.getConfig": inRepository(async (git, path) =>
    needs((await git.getConfig("user.name", { scope: "local", path })) === "me"),
  ),
  "git.dangerouslyAuthenticate": async ({ sandbox }) =>
    await sandbox.git.dangerouslyAuthenticate({ username: "me", password: "secret" }),
  "git.configureUser": async ({ sandbox }) => await sandbox.git.configureUser("me", "me@example.com"),
};

const volume = async (options: MethodPlace["options"], run: (volume: Volume) => unknown = () => undefined) =>
  await run(await Volume.create("v", options));

const ofVolumes: Record<string, Attempt> = {
  "Volume.create": async ({ options }) => await volume(options),
  "Volume.connect": async ({ options }) => await Volume.connect("v", options),
  "Volume.getInfo": async ({ options }) => await Volume.getInfo("v", options),
  "Volume.list": async ({ options }) => await Volume.list(options),
  "Volume.destroy": async ({ options }) => await Volume.destroy("v", options),
  // There is no volume whose methods could be called.
  "volume.list": async ({ options }) => await volume(options, (one) => one.list("/")),
  "volume.makeDir": async ({ options }) => await volume(options, (one) => one.makeDir("/a")),
  "volume.getInfo": async ({ options }) => await volume(options, (one) => one.getInfo("/a")),
  "volume.exists": async ({ options }) => await volume(options, (one) => one.exists("/a")),
  "volume.updateMetadata": async ({ options }) =>
    await volume(options, (one) => one.updateMetadata("/a", {})),
  "volume.readFile": async ({ options }) => await volume(options, (one) => one.readFile("/a")),
  "volume.writeFile": async ({ options }) => await volume(options, (one) => one.writeFile("/a", "")),
  "volume.remove": async ({ options }) => await volume(options, (one) => one.remove("/a")),
};

const withHeader = async ({ sandbox }: MethodPlace, value: string) =>
  await sandbox.updateNetwork({ rules: { "example.com": [{ transform: { headers: { "X-Own": value } } }] } });

const ofSecrets: Record<string, Attempt> = {
  "Secret.create": async ({ options }) => await Secret.create("s", "value", options),
  "Secret.update": async ({ options }) => await Secret.update("s", "value", options),
  "Secret.getInfo": async ({ options }) => await Secret.getInfo("s", options),
  "Secret.list": async ({ options }) => await Secret.list(options).nextItems(),
  "Secret.exists": async ({ options }) => await Secret.exists("s", options),
  "Secret.destroy": async ({ options }) => await Secret.destroy("s", options),
  // These two ask nobody; what they make is refused where it is used.
  "Secret.fill": async (place) => await withHeader(place, Secret.fill("s")),
  "Secret.iamToken": async ({ options }) => {
    const token = Secret.iamToken({ audience: "a", tokenType: "t" } as Parameters<typeof Secret.iamToken>[0]);
    await Sandbox.create("base", { ...options, iam: { tokens: { t: token } } });
  },
};

const image = () => Template().fromImage("debian");
const only = "describes a template, which cannot be built";
const described = (run: () => unknown): Attempt => ({ try: run, differs: only });

const ofTemplates: Record<string, Attempt> = {
  "Template.build": async ({ options }) => await Template.build(image(), "t", options),
  "Template.buildInBackground": async ({ options }) =>
    await Template.buildInBackground(image(), "t", options),
  "Template.getBuildStatus": async ({ options }) =>
    await Template.getBuildStatus({ templateId: "t", buildId: "b" }, options),
  "Template.exists": async ({ options }) => {
    needs(await Template.exists("base", options));
    needs(!(await Template.exists("no-template", options)));
  },
  "Template.aliasExists": async ({ options }) => needs(await Template.aliasExists("base", options)),
  "Template.assignTags": async ({ options }) => await Template.assignTags("t", "a", options),
  "Template.removeTags": async ({ options }) => await Template.removeTags("t", "a", options),
  "Template.getTags": async ({ options }) => await Template.getTags("t", options),
  "Template.toJSON": described(() => Template.toJSON(image(), false)),
  "Template.toDockerfile": described(() => needs(Template.toDockerfile(image()).startsWith("FROM debian"))),
  ...Object.fromEntries(
    ["Debian", "Ubuntu", "Fedora", "Alpine", "Arch", "Python", "Node", "Bun", "Base"].map((name) => {
      const method = `from${name}Image` as "fromDebianImage";
      return [`template.${method}`, described(() => Template()[method]())];
    }),
  ),
  "template.fromImage": described(() => Template().fromImage("a")),
  "template.fromTemplate": described(() => Template().fromTemplate("a")),
  "template.fromDockerfile": described(() => Template().fromDockerfile("FROM debian\nRUN true\n")),
  "template.fromAWSRegistry": described(() =>
    Template().fromAWSRegistry("a", { accessKeyId: "a", secretAccessKey: "b", region: "c" }),
  ),
  "template.fromGCPRegistry": described(() => Template().fromGCPRegistry("a", { serviceAccountJSON: {} })),
  "template.copy": described(() => image().copy("a", "/b")),
  "template.copyItems": described(() => image().copyItems([{ src: "a", dest: "/b" }])),
  "template.remove": described(() => image().remove("/a")),
  "template.rename": described(() => image().rename("/a", "/b")),
  "template.makeDir": described(() => image().makeDir("/a")),
  "template.makeSymlink": described(() => image().makeSymlink("/a", "/b")),
  "template.runCmd": described(() => image().runCmd("true")),
  "template.setWorkdir": described(() => image().setWorkdir("/a")),
  "template.setUser": described(() => image().setUser("a")),
  "template.pipInstall": described(() => image().pipInstall("a")),
  "template.npmInstall": described(() => image().npmInstall("a")),
  "template.bunInstall": described(() => image().bunInstall("a")),
  "template.aptInstall": described(() => image().aptInstall("a")),
  "template.addMcpServer": described(() =>
    Template().fromTemplate("mcp-gateway").addMcpServer("browserbase"),
  ),
  "template.gitClone": described(() => image().gitClone("https://example.com/a.git")),
  "template.setStartCmd": described(() => image().setStartCmd("true", "true")),
  "template.setReadyCmd": described(() => image().setReadyCmd("true")),
  "template.setEnvs": described(() => image().setEnvs({ A: "b" })),
  "template.skipCache": described(() => image().skipCache()),
  "template.betaDevContainerPrebuild": described(() =>
    Template().fromTemplate("devcontainer").betaDevContainerPrebuild("/a"),
  ),
  "template.betaSetDevContainerStart": described(() =>
    Template().fromTemplate("devcontainer").betaSetDevContainerStart("/a"),
  ),
};

/** What each public method is tried with, by the class or the object that it is called on. */
export const attempts: Readonly<Record<string, Attempt>> = {
  ...ofSandbox,
  ...ofCommands,
  ...ofFiles,
  ...ofGit,
  "E2B.Sandbox": async ({ options }) => needs((await new E2B(options).Sandbox.list().nextItems()).length > 0),
  "E2B.Volume": async ({ options }) => await new E2B(options).Volume.list(),
  "E2B.Template": async ({ options }) => await new E2B(options).Template.exists("t"),
  "E2B.Secret": async ({ options }) => await new E2B(options).Secret.list().nextItems(),
  ...ofVolumes,
  ...ofSecrets,
  ...ofTemplates,
};

const declarations = readFileSync(new URL("../../node_modules/e2b/dist/index.d.ts", import.meta.url), "utf8");

/** The public methods that the package itself has, by the same names. */
export async function publicMethods({ sandbox, options }: MethodPlace): Promise<string[]> {
  const handle = await sandbox.commands.run("true", { background: true });
  const watched = await watch(sandbox);
  await watched.stop();
  const statics: Record<string, [object, string]> = {
    Sandbox: [Sandbox, "Sandbox"],
    Volume: [Volume, "Volume"],
    Secret: [Secret, "Secret"],
    Template: [TemplateBase, "TemplateBase"],
  };
  const objects: Record<string, [object, string]> = {
    sandbox: [Sandbox.prototype, "Sandbox"],
    paginator: [Object.getPrototypeOf(Sandbox.list(options)), "SandboxPaginator"],
    commands: [Object.getPrototypeOf(sandbox.commands), "Commands"],
    handle: [Object.getPrototypeOf(handle), "CommandHandle"],
    pty: [Object.getPrototypeOf(sandbox.pty), "Pty"],
    files: [Object.getPrototypeOf(sandbox.files), "Filesystem"],
    watch: [Object.getPrototypeOf(watched), "WatchHandle"],
    git: [Object.getPrototypeOf(sandbox.git), "Git"],
    volume: [Volume.prototype, "Volume"],
    template: [TemplateBase.prototype, "TemplateBase"],
  };
  const names = [
    ...Object.entries(statics).flatMap(([on, [from, of]]) =>
      namesOf(from, { of, top: Function.prototype }).map((name) => `${on}.${name}`),
    ),
    ...Object.entries(objects).flatMap(([on, [from, of]]) =>
      namesOf(from, { of, top: Object.prototype }).map((name) => `${on}.${name}`),
    ),
    ...Object.keys(new E2B(options)).map((name) => `E2B.${name}`),
  ];
  return names.toSorted();
}

/** Those that its declarations do not call private or protected. */
function namesOf(from: object, { of, top }: { of: string; top: object }): string[] {
  const names = new Set<string>();
  for (let one = from; one !== top && one !== null; one = Object.getPrototypeOf(one))
    for (const [name, { get, value }] of Object.entries(Object.getOwnPropertyDescriptors(one)))
      if (
        name !== "constructor" &&
        (get !== undefined || (typeof value === "function" && !/^[A-Z]/.test(name)))
      )
        names.add(name);
  const hidden = hiddenIn(of, top === Function.prototype);
  return [...names].filter((name) => !hidden.has(name));
}

function hiddenIn(name: string, isStatic: boolean): Set<string> {
  const [, parent, body = ""] =
    new RegExp(
      `^declare (?:abstract )?class ${name}(?:<[^{]*?>)?(?: extends (\\w+)[^{]*)?(?: implements [^{]*)? \\{\\n([\\s\\S]*?)^\\}`,
      "m",
    ).exec(declarations) ?? [];
  const own = [...body.matchAll(/^ {2}(?:private|protected) (static )?(?:readonly )?(?:get )?(\w+)/gm)]
    .filter(([, ofClass]) => (ofClass !== undefined) === isStatic)
    .map(([, , hidden = ""]) => hidden);
  return new Set([...own, ...(parent === undefined ? [] : hiddenIn(parent, isStatic))]);
}
