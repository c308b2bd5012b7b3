import { readInstructions } from "../../../sandbox/index.js";
import type { TreeEntry } from "../files.js";
import { TaskNotes } from "../notes.js";
import type { TaskNetwork } from "../task.js";
import { hasCarriageReturn } from "../values.js";
import type { LintStep, Remark, Rule } from "./finding.js";

/** Rules in the order in which their findings are shown. */
export const rules: readonly Rule[] = [
  {
    name: "no-solution",
    level: "warning",
    check: ({ task, step }) =>
      remarkIf(task.format !== "plain" && step.solution === null, {
        message: "there is no solution, so nobody can show that the task can be solved",
      }),
  },
  {
    name: "no-timeout",
    level: "warning",
    check: ({ step }) =>
      remarkIf(step.agent.timeoutSec === null, {
        message: "the agent has no time limit: set agent.timeout_sec",
      }),
  },
  {
    name: "shared-verifier",
    level: "warning",
    check: ({ step, tests }) =>
      remarkIf(step.verifier.mode !== "separate" && !looksAtRunningProgram(tests), {
        message:
          "the tests run in the agent's container, though they look at no running program: set verifier.environment_mode to separate, and name the artifacts",
      }),
  },
  { name: "needs-running-program", level: "error", isForTerminalBench: true, check: neededPrograms },
  {
    name: "no-artifacts",
    level: "error",
    check: ({ step, tests }) =>
      remarkIf(
        step.verifier.mode !== "shared" && step.artifacts.length === 0 && !tests.includes("/logs/artifacts"),
        { message: "the verifier is separate and gets nothing of what the agent made: name the artifacts" },
      ),
  },
  {
    name: "verifier-network",
    level: "warning",
    check: (lint) =>
      remarkIf(verifierNetwork(lint).mode === "public", {
        message: "the verifier can reach the network, on which a grade should not depend",
      }),
  },
  {
    name: "tests-install",
    level: "warning",
    check: (lint) => {
      const command = installing.exec(withoutComments(lint.script))?.[0];
      if (command === undefined) return [];
      const fails = verifierNetwork(lint).mode === "no-network";
      const message = `the tests fetch from the network (${command.trim()}): put it into the image`;
      return [{ file: scriptFile(lint), level: fails ? "error" : "warning", message }];
    },
  },
  {
    name: "loads-code",
    level: "warning",
    check: ({ tests }) => {
      const call = loadingCode.exec(withoutComments(tests))?.[0];
      return remarkIf(call !== undefined, {
        message: `the tests load files by ${call?.trim()}, which runs code that is in them: load only data (JSON, safetensors, weights_only=True, yaml.safe_load), or load them as a user who can write neither the tests nor the reward`,
      });
    },
  },
  {
    name: "no-reward",
    level: "error",
    check: (lint) =>
      remarkIf(
        lint.step.verifier.check.kind === "reward-files" &&
          lint.testsFolder !== null &&
          !/reward\.(?:txt|json)/.test(lint.tests),
        {
          file: scriptFile(lint),
          message: "nothing in the tests writes /logs/verifier/reward.txt or reward.json",
        },
      ),
  },
  {
    name: "carriage-returns",
    level: "error",
    check: ({ tree, task, testsFolder, baseFolder, solutionFolder, setupScript }) =>
      [testsFolder, baseFolder, solutionFolder]
        .flatMap((folder) => (folder === null ? [] : (tree?.below(folder) ?? [])))
        .filter(({ kind, path }) => kind === "file" && /\.(?:sh|bash)$/.test(path))
        .map(({ path }) => path)
        .concat(setupScript ?? [])
        .filter((path) => hasCarriageReturn(tree?.text(path, new TaskNotes(task.source)) ?? ""))
        .map((path) => ({
          file: path,
          message: "its lines end with carriage returns, as on Windows, with which no shell can run it",
        })),
  },
  {
    name: "trivial-check",
    level: "error",
    check: ({ step: { verifier } }) =>
      remarkIf(
        verifier.check.kind === "command" &&
          /^\s*(?:true|:|exit 0|echo\b[^|;&]*)\s*$/.test(verifier.check.command),
        { message: "the check always succeeds" },
      ),
  },
  {
    name: "grader-in-image",
    level: "error",
    check: (lint) => [...copiedGraders(lint), ...gradersInEnvironment(lint)],
  },
  {
    name: "unnamed-files",
    level: "warning",
    check: ({ step, tests }) => {
      const paths = testedPaths(tests);
      const isNamed = (path: string) => step.instruction.includes(path.split("/").at(-1) ?? path);
      return remarkIf(paths.length > 0 && !paths.some(isNamed), {
        message: `the tests look at ${paths.slice(0, 3).join(", ")}, and the instruction names no such file`,
      });
    },
  },
  {
    name: "disk-limit",
    level: "warning",
    check: ({ task, tree }) => {
      const { storageMb } = task.environment.limits;
      const settings = tree?.text("task.toml", new TaskNotes(task.source)) ?? "";
      // Older tasks that say nothing have a default.
      return remarkIf(storageMb !== null && /^[^#]*\bstorage(?:_mb)?\s*=/m.test(settings), {
        file: "task.toml",
        message: `it asks for ${storageMb} MB of disk, which brig counts only every few seconds, while the agent works`,
      });
    },
  },
  {
    name: "moving-image",
    level: "warning",
    check: ({ task }) => {
      const { image } = task.environment;
      if (image.kind === "build" || image.reference.includes("@") || image.reference.startsWith("brig/"))
        return [];
      const [, tag] = /:([^/:]+)$/.exec(image.reference) ?? [];
      return remarkIf(tag === undefined || tag === "latest", {
        message: `the image ${image.reference} has no fixed version, so the task changes when it does`,
      });
    },
  },
];

function remarkIf(isSo: boolean, remark: Remark): Remark[] {
  return isSo ? [remark] : [];
}

function verifierNetwork({ task, step: { verifier } }: LintStep): TaskNetwork {
  return verifier.network ?? verifier.environment?.network ?? task.environment.network;
}

/** Files can be handed over; a process or a service cannot. */
function looksAtRunningProgram(tests: string): boolean {
  return /localhost|127\.0\.0\.1|0\.0\.0\.0|\b(?:pgrep|pidof|systemctl|service|ss|netstat|lsof|tmux|docker|psql|redis-cli)\s|\/proc\/|\bps\s+(?:-|aux)/.test(
    tests,
  );
}

const installing =
  /\b(?:apt(?:-get)?\s+(?:-\S+\s+)*(?:install|update)|apk\s+add|dnf\s+install|yum\s+install|pip3?\s+install|uv\s+(?:pip|add|sync|run)|uvx|npm\s+(?:install|ci|i)\b|npx|yarn\s+add|pnpm\s+(?:add|install)|cargo\s+install|go\s+(?:install|get)|gem\s+install|(?:curl|wget)\b[^\n|;&]*https?:\/\/(?!localhost|127\.)\S+)/;

/** Loaders that do what a file says. */
const loadingCode =
  /\b(?:c?[pP]ickle|dill|cloudpickle|joblib|shelve)\.(?:load|loads|open|Unpickler)\b|\bpd\.read_pickle\b|\ballow_pickle\s{0,8}=\s{0,8}True|\bweights_only\s{0,8}=\s{0,8}False|\byaml\.(?:unsafe_load|full_load)\b|\byaml\.load\((?![^()\n]{0,200}SafeLoader)/;

function withoutComments(script: string): string {
  return script.replace(/^\s*#.*$/gm, "");
}

function scriptFile({ testsFolder, step }: LintStep): string | null {
  const { check } = step.verifier;
  return testsFolder === null || !("script" in check) ? null : `${testsFolder}/${check.script}`;
}

/** Paths of files that belong to the task, as far as they are written out in the tests. */
function testedPaths(tests: string): string[] {
  const paths =
    tests.match(/(?<![\w./])\/(?:app|workspace|work|srv|home|root|data|repo|testbed)\/[\w./-]*\w/g) ?? [];
  return [...new Set(paths)].filter((path) => /\.\w+$/.test(path) && !path.includes("/."));
}

/** Tests that ask a program on their own machine, or look for it among those that run. */
const asksProgram =
  /\bhttps?:\/\/(?:localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1\])|(?:localhost|127\.0\.0\.1|\[::1\])["']?\s*(?::|,)\s*["']?\d{2,5}\b|\b(?:nc|ncat|telnet)\s+(?:-\w+\s+)*(?:localhost|127\.0\.0\.1)\b|\b(?:curl|wget|ssh|psql|mysql|redis-cli|mongosh?)\b[^\n]*(?:@|\s)(?:localhost|127\.0\.0\.1)\b|\b(?:pgrep|pidof)\s+[-\w]|\bsystemctl\s+(?:is-active|status)\b|\bservice\s+\S+\s+status\b|\b(?:ss|netstat)\s+-\w*l|\blsof\s+-i/;

/** Commands that start a program that goes on running: a shell's `&`, managers of services, and usual options of daemons. */
const startsInShell =
  /[^&>|\\]&\s*(?:#.*)?$|\b(?:nohup|setsid|daemonize|supervisord|start-stop-daemon)\b|\bsystemctl\s+(?:(?:re)?start|enable\s+--now)\b|\bservice\s+\S+\s+(?:re)?start\b|\/etc\/init\.d\/\S+\s+(?:re)?start\b|\btmux\s+new\S*\s[^\n]*-d\b|\bscreen\s+-\w*dm|\bdocker\s+(?:compose\s+)?(?:run|up)\b[^\n]*\s-d\b|\bpg_ctl(?:cluster)?\b[^\n]*\bstart\b|\bpm2\s+start\b|\s--?(?:daemon(?:ize|ized)?|fork)\b|^\s*(?:sudo\s+)?(?:\/\S*\/)?(?:nginx|sshd|redis-server|postfix\s+start|apache(?:2)?ctl\s+(?:-k\s+)?(?:re)?start)\s*(?:$|[;&|])/m;

/** Code that starts such a program in the languages that tests are written in, and libraries that serve in the process of the tests. */
const startsInCode =
  /\b(?:Popen|create_subprocess_(?:exec|shell)|spawn|execFile|fork)\s*\(|\bmultiprocessing\b|\bThread\s*\(|\b(?:TestClient|live_server|xprocess|testcontainers|httptest|serve_forever|HTTPServer|TCPServer|createServer)\b|\.listen\s*\(|\buvicorn\.run\b|\bapp\.run\s*\(/;

/**
 * Tests that need a program which only the agent can have started: it is ended before they run. That is known where the task's solution
 * starts one, or where there is no solution.
 */
function neededPrograms({ step, tests, solution }: LintStep): Remark[] {
  const asked = asksProgram.exec(withoutComments(tests))?.[0];
  if (asked === undefined || step.verifier.keepsServices === true) return [];
  if (startsInShell.test(withoutComments(tests)) || startsInCode.test(tests)) return [];
  // A solution that is not seen to start one may do so in a way that nobody sees here, or the tests may.
  if (step.solution !== null && !startsInShell.test(withoutComments(solution))) return [];
  const kept =
    step.verifier.mode === "shared"
      ? ", or set keep_services = true for the verifier if they may share the container"
      : "";
  return [
    {
      message: `the tests ask a running program (${asked.trim()}) and start none, and what the agent started is ended before them: let them start it${kept}`,
    },
  ];
}

/** Smaller files are equal by chance. */
const LEAST_BYTES = 40;

/** Dockerfiles that copy the tests or the solution into the image of the agent. */
function copiedGraders({ tree, task }: LintStep): Remark[] {
  const { image } = task.environment;
  if (tree === null || image.kind !== "build") return [];
  const file = `${image.context.slice(tree.root.length + 1)}/${image.dockerfile}`;
  const text = tree.text(file, new TaskNotes(task.source)) ?? "";
  return copiedSources(text)
    .filter((source) => /(?:^|\/)(?:tests|solution|solve\.sh|test\.sh|test_outputs\.py)\/?$/.test(source))
    .map((source) => ({ file, message: `it copies ${source} into the image, where the agent can read it` }));
}

/** Scripts of the tests, and anything of the solution, that also lie in the environment. */
function gradersInEnvironment({ tree, testsFolder, solutionFolder }: LintStep): Remark[] {
  if (tree === null) return [];
  const graders = new Map<string, string>();
  for (const folder of [testsFolder, solutionFolder]) {
    for (const entry of folder === null ? [] : tree.below(folder))
      if (isFile(entry) && (folder === solutionFolder || isProgram(entry.path)))
        graders.set(entry.sha256, entry.path);
  }
  return tree
    .below("environment")
    .filter(isFile)
    .flatMap(({ path, sha256 }) => {
      const grader = graders.get(sha256);
      return grader === undefined
        ? []
        : [{ file: path, message: `it is the same as ${grader}, which the agent must not see` }];
    });
}

function isFile(entry: TreeEntry): entry is TreeEntry & { kind: "file" } {
  return entry.kind === "file" && entry.bytes >= LEAST_BYTES;
}

function isProgram(path: string): boolean {
  return /\.(?:sh|bash|py|js|mjs|ts|rb|pl|go|rs|c|cc|cpp|java)$/.test(path);
}

/** Sources in the build context of COPY and ADD. */
function copiedSources(dockerfile: string): string[] {
  return readInstructions(dockerfile.split("\n")).flatMap(({ name, text }) => {
    if ((name !== "COPY" && name !== "ADD") || /(?:^|\s)--from=/.test(text)) return [];
    return text
      .replace(/^(?:--\S+\s+)+/, "")
      .replace(/^\[|\]$|[",]/g, " ")
      .trim()
      .split(/\s+/)
      .slice(0, -1);
  });
}
