import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { leftOutOf, type TreeChange } from "../../../../src/sandbox/tree/tree-changes.js";
import { lineOf, type OverlayTree, openOverlayTree } from "../../../support/overlay-tree.js";

const bothDevices = [
  { place: "the same file system", onOtherDevice: false },
  { place: "another file system", onOtherDevice: true },
];

interface Case {
  name: string;
  /** Fills a directory before the tree is made. */
  base: string;
  /** What the agent does there. */
  script: string;
}

const listed: (Case & { lines: string[] })[] = [
  {
    name: "is what was added, modified and deleted, in the order of the bytes of the paths",
    base: "mkdir -p d/e gone/below; echo 1 > d/e/f; echo 1 > d/g; echo 1 > same; echo 1 > gone/below/x; ln -s a link",
    script: `echo 2 > d/e/f; rm d/g; rm -r gone; echo 1 > d-new; mkdir -p new/n; echo 1 > new/n/x; echo 1 > new-x
       ln -sfn b link; mkfifo pipe; perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new(Local => "sock", Listen => 1)'`,
    lines: [
      "added d-new (file)",
      "modified d/e/f (file)",
      "deleted d/g (file)",
      "deleted gone (directory)",
      "modified link (symlink)",
      "added new (directory)",
      "added new-x (file)",
      "added new/n (directory)",
      "added new/n/x (file)",
      "added pipe (fifo)",
      "added sock (socket)",
    ],
  },
  {
    name: "is nothing where files were touched, written as they were, or removed again",
    base: "mkdir d; echo 1 > d/f; echo 2 > g; ln -s t l; mkdir e; mkfifo p",
    script:
      "touch d/f e p; echo 2 > g; ln -sfn t l; echo 1 > tmp; rm tmp; mkdir e/x; rmdir e/x; chmod 700 d; chmod 755 d; rm d/f; echo 1 > d/f",
    lines: [],
  },
  {
    name: "is the mode of a file and of a directory",
    base: "mkdir d; echo 1 > f; echo 1 > d/x; mkfifo p",
    script: "chmod 755 f; chmod 700 d; chmod 600 p",
    lines: ["modified d (directory)", "modified f (file)", "modified p (fifo)"],
  },
  {
    name: "is the type of what has a name now",
    base: "mkdir -p d1/x d2/x; echo 1 > d1/x/y; echo 1 > f1; echo 1 > f2; ln -s t l1; ln -s t l2",
    script:
      "rm -r d1 d2; echo 1 > d1; ln -s t d2; rm f1 f2 l1 l2; mkdir f1; echo 1 > f1/new; ln -s t f2; mkdir l1; echo 1 > l2",
    lines: [
      "modified d1 (file, was directory)",
      "modified d2 (symlink, was directory)",
      "modified f1 (directory, was file)",
      "added f1/new (file)",
      "modified f2 (symlink, was file)",
      "modified l1 (directory, was symlink)",
      "modified l2 (file, was symlink)",
    ],
  },
  {
    name: "is what is missing in a directory that was deleted and made again",
    base: "mkdir -p d/sub/deep; echo 1 > d/a; echo 1 > d/b; echo 1 > d/sub/c; echo 1 > d/sub/deep/x",
    script: "rm -r d; mkdir -p d/sub; echo 1 > d/a; echo 1 > d/sub/new",
    lines: [
      "deleted d/b (file)",
      "deleted d/sub/c (file)",
      "deleted d/sub/deep (directory)",
      "added d/sub/new (file)",
    ],
  },
  {
    name: "is all of a directory of the base that was renamed",
    base: "mkdir -p old/sub; echo 1 > old/a; echo 1 > old/sub/b; mkdir stays",
    script: "mv old new; echo 2 > new/a; mv new stays/newer",
    lines: [
      "deleted old (directory)",
      "added stays/newer (directory)",
      "added stays/newer/a (file)",
      "added stays/newer/sub (directory)",
      "added stays/newer/sub/b (file)",
    ],
  },
  {
    name: "is what differs between directories that have changed places, although names, sizes and times are the same",
    base: `for d in a b; do mkdir -p $d/sub; echo $d > $d/sub/x; echo same > $d/sub/y; done
       find . -exec touch -hd '2020-01-01' {} +`,
    script: "mv a t; mv b a; mv t b",
    lines: ["modified a/sub/x (file)", "modified b/sub/x (file)"],
  },
  {
    name: "is found in a directory that was moved away and back",
    base: "mkdir -p a/sub; echo 1 > a/x; echo 1 > a/sub/y; echo 1 > a/z",
    script: "mv a b; echo 2 > b/sub/y; rm b/z; mv b a",
    lines: ["modified a/sub/y (file)", "deleted a/z (file)"],
  },
  {
    name: "is found through directories and files that nobody may read",
    base: "mkdir -p closed/d; echo 1 > closed/f; echo 1 > closed/d/g; echo 1 > secret; chmod 000 closed/d/g",
    script: `echo 2 > closed/f; chmod 644 closed/d/g; echo 2 > closed/d/g; echo 1 > closed/new; mkdir shut; echo 1 > shut/x
       chmod 000 closed/d/g closed/new closed/d secret shut/x shut; chmod 000 closed`,
    lines: [
      "modified closed (directory)",
      "modified closed/d (directory)",
      "modified closed/d/g (file)",
      "modified closed/f (file)",
      "added closed/new (file)",
      "modified secret (file)",
      "added shut (directory)",
      "added shut/x (file)",
    ],
  },
];

const sameFile = {
  name: "says which names are of one file",
  base: "echo 1 > a; ln a b; echo 1 > c",
  script: "echo 2 > n1; ln n1 n2; mkdir d; ln n1 d/n3; echo 2 > a; ln c c2",
};
const holes = {
  name: "does not read the holes of a file of a terabyte",
  base: "truncate -s 1T both; truncate -s 1T end",
  script:
    "rm both end; truncate -s 1T both; truncate -s 1T end; truncate -s 1T new; echo 1 | dd of=end bs=1 seek=900G conv=notrunc status=none",
};
const bytes = {
  name: "keeps every byte of a name and of a link's target",
  base: "echo 1 > $'b\\xfe\\n'",
  script: "mkdir $'a\\n\\xff\\'\\e[31m'; ln -s $'t\\xff\\n' $'a\\n\\xff\\'\\e[31m/l'; rm $'b\\xfe\\n'",
};
const cases: Case[] = [...listed, sameFile, holes, bytes];

// The cases have a directory each in one tree, which is scanned once.
describe.for(bothDevices)("what was changed in a tree whose base is on $place", ({ onOtherDevice }) => {
  let changed: TreeChange[];

  beforeAll(async () => {
    const base = cases.map((one, index) => `mkdir ${index}; (cd ${index}; ${one.base})`).join("\n");
    await using tree = await openOverlayTree({ base, onOtherDevice });
    expect((await tree.scan()).lines).toEqual([]);
    for (const [index, { script }] of cases.entries()) await tree.agent.shell(`cd /repo/${index}; ${script}`);
    changed = (await tree.scan({ signal: AbortSignal.timeout(60_000) })).changes;
  });

  /** The changes in the directory of a case, with paths from there. */
  function changesOf(one: Case): TreeChange[] {
    const directory = Buffer.from(`${cases.indexOf(one)}/`);
    return changed
      .filter(({ path }) => path.subarray(0, directory.length).equals(directory))
      .map((change) => ({ ...change, path: change.path.subarray(directory.length) }));
  }

  it.for(listed)("$name", (one) => {
    expect(changesOf(one).map(lineOf)).toEqual(one.lines);
  });

  it("has nothing outside of what was changed", () => {
    expect(changed.length).toBe(cases.flatMap(changesOf).length);
  });

  it(sameFile.name, () => {
    const changes = changesOf(sameFile);
    const found = changes.map(({ path, change, now }) => [path.toString(), change, now?.links] as const);
    expect(found).toEqual([
      ["a", "modified", 1],
      ["c2", "added", 2],
      ["d", "added", 2],
      ["d/n3", "added", 3],
      ["n1", "added", 3],
      ["n2", "added", 3],
    ]);
    const inodes = changes.filter(({ path }) => /n\d$/.test(path.toString())).map(({ now }) => now?.ino);
    expect(new Set(inodes).size).toBe(1);
  });

  it(holes.name, () => {
    const changes = changesOf(holes);
    expect(changes.map(lineOf)).toEqual(["modified end (file)", "added new (file)"]);
    expect(changes[1]?.now?.sizeBytes).toBe(2 ** 40);
  });

  it(bytes.name, () => {
    const name = Buffer.from("a\n\xff'\x1b[31m", "latin1");
    const changes = changesOf(bytes);
    expect(changes.map(({ change }) => change)).toEqual(["added", "added", "deleted"]);
    expect(changes[0]?.path).toEqual(name);
    expect(changes[1]?.path).toEqual(Buffer.concat([name, Buffer.from("/l")]));
    expect(changes[1]?.now?.linkTarget).toEqual(Buffer.from("t\xff\n", "latin1"));
    expect(changes[2]?.path).toEqual(Buffer.from("b\xfe\n", "latin1"));
  });
});

describe("a scan of twenty thousand files", () => {
  let tree: OverlayTree;
  beforeAll(async () => {
    tree = await openOverlayTree();
    await tree.agent.shell("cd /repo; for d in {1..20}; do mkdir $d; (cd $d; touch {1..1000}); done");
  });
  afterAll(async () => await tree?.[Symbol.asyncDispose]());

  it("lists them, in order, while the host takes its time", async () => {
    let calls = 0;
    let count = 0;
    await tree.scan({
      onChanges: async (changes) => {
        calls++;
        count += changes.length;
        await new Promise((resolve) => setImmediate(resolve));
      },
    });
    expect(count).toBe(20_020);
    expect(calls).toBeGreaterThan(10);
  });

  it("ends when it is cancelled", async () => {
    const controller = new AbortController();
    const reason = new Error("enough");
    const scan = tree.scan({ signal: controller.signal, onChanges: () => controller.abort(reason) });
    await expect(scan).rejects.toBe(reason);
    expect((await tree.scan()).changes).toHaveLength(20_020);
  });
});

describe("a scan of what has changed since another", () => {
  let tree: OverlayTree;
  beforeAll(async () => {
    tree = await openOverlayTree();
  });
  afterAll(async () => await tree?.[Symbol.asyncDispose]());

  it.for([
    ["vanishes", "rm e/x"],
    ["is moved with its directory", "mv e f"],
    ["changes places with another", "mv e t; mv g e; mv t g"],
  ])("notices that something it leaves out %s", async ([, script]) => {
    // What has the time at which a scan begins is never left out, so the clock of files has to move on.
    await tree.agent.shell("cd /repo; rm -rf *; mkdir e g; echo 1 > e/x; echo 2 > g/x; sleep 0.05");
    const first = await tree.scan({ listSame: true });
    await tree.agent.shell(`cd /repo; sleep 0.05; ${script}`);
    const second = await tree.scan({ listSame: true, since: first.scan.startedNs });
    const reported = new Set(second.changes.map(({ path }) => path.toString()));
    const rest = first.changes.filter(({ path }) => !reported.has(path.toString()));
    expect(second.scan.leftOut).not.toEqual(leftOutOf(rest));
  });
});

describe("a scan of a tree", () => {
  it("leaves out what it is asked to, with all that is below", async () => {
    await using tree = await openOverlayTree({ base: "mkdir -p .git sub/dir" });
    await tree.agent.shell(
      "cd /repo; echo 1 > .git/config; echo 1 > sub/dir/x; echo 1 > sub/y; echo 1 > .gitx",
    );
    const { lines } = await tree.scan({ leftOut: [".git", Buffer.from("sub/dir")] });
    expect(lines).toEqual(["added .gitx (file)", "added sub/y (file)"]);
  });

  it("reports only what has changed since the last one, and proves that the rest is as it was", async () => {
    await using tree = await openOverlayTree({
      base: "mkdir d; echo 1 > d/a; echo 1 > d/b; echo 1 > touched",
    });
    await tree.agent.shell(
      "cd /repo; echo 2 > d/a; echo 1 > new; touch touched; mkdir e; echo 1 > e/x; sleep 0.05",
    );
    const first = await tree.scan({ listSame: true });
    expect(first.lines).toContain("same touched (file)");
    expect(first.scan.leftOut.count).toBe(0);
    await tree.agent.shell("echo 3 > /repo/d/b");
    const second = await tree.scan({ listSame: true, since: first.scan.startedNs });
    expect(second.lines).toContain("modified d/b (file)");
    expect(second.lines).not.toContain("modified d/a (file)");
    const reported = new Set(second.changes.map(({ path }) => path.toString()));
    const rest = first.changes.filter(({ path }) => !reported.has(path.toString()));
    expect(second.scan.leftOut).toEqual(leftOutOf(rest));
    expect(rest.length).toBeGreaterThan(2);
  });

  it("takes a file that changes while it is compared for a change", async () => {
    await using tree = await openOverlayTree({ base: "head -c 64M /dev/zero > large" });
    await tree.agent.shell("touch /repo/large");
    expect((await tree.scan()).lines).toEqual([]);
    const writing = tree.agent.shell(
      "cd /repo; until test -e stop; do head -c 1 /dev/zero | dd of=large bs=1 seek=60M conv=notrunc status=none; done; rm stop",
    );
    let lines: string[] = [];
    while (lines.length === 0) lines = (await tree.scan()).lines;
    await tree.keeper.shell("touch /merged/stop");
    await writing;
    expect(lines).toEqual(["modified large (file)"]);
    expect((await tree.scan()).lines).toEqual([]);
  });

  it("follows no symbolic link that takes a directory's place while it walks", async () => {
    await using tree = await openOverlayTree({ base: "mkdir -p a/d; touch a/d/x" });
    // One process, since to start one for each step would take most of the time.
    const swap =
      'symlink "/etc", "swap"; unlink "swap"; mkdir "swap"; open my $in, ">", "swap/in"; unlink "swap/in"; rmdir "swap"';
    const swapping = tree.agent.shell(
      `cd /repo; mkdir real; touch real/{1..50}; perl -e 'for (1..1000) { ${swap} }'`,
    );
    const paths = new Set<string>();
    let isOver = false;
    void swapping.finally(() => {
      isOver = true;
    });
    while (!isOver) for (const { path } of (await tree.scan()).changes) paths.add(path.toString());
    await swapping;
    const expected = new Set([
      "real",
      ...Array.from({ length: 50 }, (_, i) => `real/${i + 1}`),
      "swap",
      "swap/in",
    ]);
    expect([...paths].filter((path) => !expected.has(path))).toEqual([]);
  });

  it("goes as deep as a path can be named, and counts what is deeper", async () => {
    await using tree = await openOverlayTree();
    await tree.agent.shell(`cd /repo; mkdir z; perl -e 'for (1..2500) { mkdir "d"; chdir "d" or die }'`);
    const { changes, scan } = await tree.scan();
    expect(changes.at(-1)?.path.toString()).toBe("z");
    expect(changes.length).toBe(2049);
    expect(scan.notEntered).toBe(1);
  });

  it("fails when a directory is not there", async () => {
    await using tree = await openOverlayTree();
    await expect(tree.scan({ base: "/no" })).rejects.toMatchObject({ code: "file.not-found" });
    await writeFile(join(tree.base, "late"), "of the host");
    expect((await tree.scan()).lines).toEqual([]);
  });
});
