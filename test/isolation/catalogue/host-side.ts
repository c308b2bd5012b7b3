import type { Assertion } from "./assertion.js";

const files = "docker/sandbox/files.test.ts";
const bundle = "unit/batch/queue/bundle/bundle.test.ts";
const artifacts = "docker/runs/separate-verifier.test.ts";
const hostGit = "docker/sandbox/host-git.test.ts";
const arrival = "unit/sandbox/branch/arrival.test.ts";
const tightening = "unit/agent/config/settings/tightening.test.ts";
const safe = "docker/known-safe-commands.test.ts";

/** What the host does with files that a command made. */
export const hostSide: readonly Assertion[] = [
  [
    "C1",
    "Reading follows links as the sandbox sees them, never on the host.",
    [files, "a link never leads out of the sandbox"],
    ["docker/looking-tools.test.ts", "read_file follows a link as the sandbox sees it, not as the host does"],
  ],
  [
    "C2",
    "Writing goes through no link that leads out, however fast it appears.",
    ["docker/approvals.test.ts", "goes through no link, however fast the sandbox puts one in its way"],
    [
      "docker/sandbox/tree/commit.test.ts",
      "never writes through a symbolic link that takes a directory's place meanwhile",
    ],
  ],
  [
    "C4",
    "A FIFO keeps nobody waiting.",
    [files, "what is no regular file is refused and never waited for"],
    ["docker/looking-tools.test.ts", "read_file and view_image do not wait for a FIFO"],
  ],
  [
    "C5",
    "Devices and sockets are refused as files.",
    [files, "what is no regular file is refused and never waited for"],
  ],
  [
    "C6",
    "A file that claims to be huge costs nothing.",
    [files, "a sparse terabyte is refused at once, and read in ranges"],
  ],
  [
    "C7",
    "Names of any bytes arrive as they are.",
    [files, "odd names arrive as they are"],
    ["docker/sandbox/overlay/diff.test.ts", "goes through names that are not UTF-8"],
  ],
  [
    "C8",
    "Deep trees, loops of links and very many files end in bounded time.",
    [files, "a tree of 5 000 levels is removed"],
    [
      "docker/sandbox/receipt.test.ts",
      "ends in time in a tree of 200 000 files, and says so when it did not get through",
    ],
  ],
  [
    "C9",
    "An archive from a container or a worker writes nothing outside of its folder.",
    [bundle, "writes nothing through a link that it has"],
    [artifacts, "that are links are not followed, wherever they lead"],
  ],
  [
    "C10",
    "An archive that is too large, or none, is refused.",
    [bundle, "that is larger than allowed, or no archive, is refused"],
    [artifacts, "are cut off where they become too large, and keep what came before"],
  ],
  [
    "C12",
    "Files are copied out of a container through the engine only once nothing runs in it.",
    ["docker/archives.test.ts", "still gives its files, of every kind, as the kernel knows them"],
  ],
  [
    "C14",
    "What the host itself opens in a workspace is a plain file, though links are exchanged meanwhile.",
    [
      "unit/agent/config/file/workspace-file.test.ts",
      "never reads anything else while an agent exchanges file and directory for links",
    ],
  ],
  [
    "D1",
    "brig runs no git of the workspace.",
    [arrival, "git of the workspace is never run, whatever PATH says"],
  ],
  [
    "D2",
    "Where brig runs git itself, nothing of the repository's configuration runs.",
    [arrival, "neither hooks nor programs that settings name"],
  ],
  [
    "D3",
    "git on the host runs nothing that a command wrote, and would without protection.",
    [hostGit, "runs nothing that an agent wrote"],
  ],
  [
    "D4",
    "Hooks and included configuration that lie elsewhere are protected too.",
    [
      "unit/sandbox/git/git-paths.test.ts",
      "is held: hooks elsewhere, programs that settings name, and files that these name",
    ],
  ],
  [
    "D5",
    "What may run by itself later is listed at the end, with hashes.",
    ["docker/sandbox/receipt.test.ts", "names what runs by itself later, with hashes, as uid …"],
  ],
  [
    "D7",
    "A workspace's own configuration can only make a session stricter.",
    [tightening, "whatever a workspace's files say, a session may do nothing more than without them"],
    ["e2e/config.test.ts", "does not follow a link in the workspace"],
  ],
  [
    "D8",
    "Objects of git that share their file with another name are protected.",
    [hostGit, "reads no object that a hard link let an agent change"],
  ],
  [
    "D9",
    "Forged objects that a sandbox sends as commits are refused.",
    [arrival, "a tree with the same name twice, out of order, with a padded mode, or with an empty name"],
    ["docker/sandbox/branch/branch.test.ts", "refuses what a false git in the sandbox sends"],
  ],
  [
    "D10",
    "A command that runs unasked because it only looks starts nothing in a hostile directory.",
    [safe, "is what is known to be safe, every program of it"],
    [safe, "for uid $uid too, and what would does"],
  ],
];
